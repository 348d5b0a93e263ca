"""Priors that stand beside the parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from surrokit.coordinates.parameters import Parameters
from surrokit.types import FloatArray

_STEP = np.finfo(np.float64).eps ** (1.0 / 3.0)


@attrs.frozen(eq=False)
class Priors:
    """Independent priors of single numbers.

    Their slopes are central differences of log densities, which cost no exact call.

    Parameters
    ----------
    by_slice
        Pairs of numbers' place in a position, and their frozen distribution of SciPy.
    """

    by_slice: tuple[tuple[slice, Any], ...]

    @classmethod
    def of(cls, parameters: Parameters) -> Priors | None:
        """Return the priors of parameters; None where there are none."""
        specs: Mapping[str, Any] = parameters.specs
        pairs = [
            (where, specs[name].prior)
            for name, where in parameters.slices().items()
            if specs[name].prior is not None
        ]
        return cls(tuple(pairs)) if pairs else None

    def value(self, positions: FloatArray) -> FloatArray:
        """Return minus the sum of log densities, shape (n,), at ``positions (n, dim)``."""
        total = np.zeros(len(positions))
        for where, prior in self.by_slice:
            total -= np.asarray(prior.logpdf(positions[:, where])).sum(axis=1)
        return total

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return its gradient, shape (n, dim)."""
        found = np.zeros_like(positions)
        for where, prior in self.by_slice:
            at = positions[:, where]
            step = _STEP * np.maximum(np.abs(at), _STEP)
            above, below = at + step, at - step
            with np.errstate(invalid="ignore"):
                found[:, where] = (prior.logpdf(below) - prior.logpdf(above)) / (above - below)
        return found

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return both."""
        return self.value(positions), self.gradient(positions)
