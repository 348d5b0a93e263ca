"""Densities that are constant but for steps, of which differences of values tell nothing."""

from __future__ import annotations

import numpy as np

from surrokit.capabilities import GRADIENT
from surrokit.cost.recording import RecordingPotential
from surrokit.targets.bounds import labels_on_line, transform_of
from surrokit.types import FloatArray

_LEVEL = 1e-7
"""Slope of the density, in nats to the unit of the line, that is none but for rounding."""

_SHORT = (1e-6, 1e-5, 1e-4)
_LONG = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Moves along a number on which a staircase is constant, and by which it is not."""


def stairs_along(
    target: RecordingPotential, positions: FloatArray, values: FloatArray, gradients: FloatArray
) -> list[str]:
    """Return the numbers along which a density is constant but for steps.

    Only where all differences vanish is anything evaluated: sixteen values for such a number.

    Parameters
    ----------
    target
        The target, whose gradients are differences of values.
    positions : ndarray of shape (n, dim)
        Where these were taken, on the line.
    values : ndarray of shape (n,)
        U there.
    gradients : ndarray of shape (n, dim)
        The differences.
    """
    transform = transform_of(target.target)
    if len(positions) < 2 or GRADIENT not in target.capabilities:
        return []
    own = gradients + transform.log_jacobian_gradient(positions)
    level = _LEVEL * np.maximum(np.abs(values), 1.0)[:, None]
    suspects = np.flatnonzero((np.abs(own) <= level).all(axis=0))
    at, labels = positions[int(np.argmin(values))], labels_on_line(target.target)
    return [labels[i] for i in suspects if _is_staircase(target, at, int(i))]


def _is_staircase(target: RecordingPotential, at: FloatArray, i: int) -> bool:
    moves = np.outer([*_SHORT, *_LONG], [1.0, -1.0]).ravel()
    there = np.vstack([at, at + np.outer(moves, np.eye(len(at))[i])])
    with np.errstate(all="ignore"):
        density = target.value(there) + transform_of(target.target).log_jacobian(there)
        rises = np.abs(density[1:] - density[0])
    level = _LEVEL * max(abs(float(density[0])), 1.0)
    n = 2 * len(_SHORT)
    return bool((rises[:n] <= level).all() and not (rises[n:] <= level).all())
