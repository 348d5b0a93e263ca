"""Directions in which several parameters change together, and their names."""

from __future__ import annotations

import numpy as np

from surrokit.contracts.potential import Potential
from surrokit.coordinates.blocks import Scaled
from surrokit.targets.bounds import labels_on_line, transform_of
from surrokit.types import FloatArray

_PARTS = 12.0  # of the largest coefficient, which take in halves, thirds and quarters
_NEAR = 0.02  # of the largest coefficient, from which on another one is taken to be such a part
_SHOWN = 1e-3  # of the largest coefficient, below which another one is left out of a name


def simplified(potential: Potential, direction: FloatArray) -> FloatArray | None:
    """Return a direction (dim,) of simple coefficients near one; None where there is none.

    Those that models hold undetermined are simple as a rule, such as a sum or a difference, while
    those that are estimated hold errors that grow with the distance.
    """
    line = _on_line(potential, direction)
    simple = np.round(_PARTS * line) / _PARTS
    if np.abs(simple - line).max() > _NEAR:
        return None
    transform = transform_of(potential)
    if not isinstance(transform, Scaled):
        return np.asarray(simple)
    return np.asarray(np.linalg.solve(transform.scaling.matrix, simple))


def name_of(potential: Potential, direction: FloatArray) -> str:
    """Return a direction (dim,) in words, such as ``a + 0.5 b``."""
    transform = transform_of(potential)
    line, labels = _on_line(potential, direction), labels_on_line(potential)
    if isinstance(transform, Scaled):
        labels = [label.removesuffix(" (scaled)") for label in labels]
    words = ""
    for i in np.flatnonzero(np.abs(line) > _SHOWN):
        size = abs(line[i])
        factor = "" if abs(size - 1.0) < _SHOWN else f"{size:.3g} "
        sign = "-" if line[i] < 0 else "+"
        words += f" {sign} {factor}{labels[i]}" if words else f"{factor}{labels[i]}"
    return words


def _on_line(potential: Potential, direction: FloatArray) -> FloatArray:
    """Return a direction on the line, its largest coefficient 1, and its first one positive."""
    transform = transform_of(potential)
    line = transform.scaling.matrix @ direction if isinstance(transform, Scaled) else direction
    line = line / np.abs(line).max()
    first = line[np.flatnonzero(np.abs(line) > _SHOWN)[0]]
    return np.asarray(line * np.sign(first))
