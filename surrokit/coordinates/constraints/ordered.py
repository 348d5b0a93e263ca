"""Numbers in increasing order."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.coordinates.constraints.constraint import every, only_where
from surrokit.types import BoolArray, FloatArray


@attrs.frozen
class Ordered:
    """Vectors of ``size`` numbers, each larger than the one before it.

    q_1 = z_1 and q_k = q_{k-1} + exp(z_k), as in Stan's reference manual.
    """

    size: int
    name = "ordered"
    meaning = "numbers in increasing order"

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of q."""
        return (self.size,)

    @property
    def free(self) -> int:
        """Numbers in z."""
        return self.size

    @property
    def varies(self) -> BoolArray:
        """All numbers vary."""
        return every(self.size)

    def to_bounded(self, z: FloatArray) -> FloatArray:
        """Return cumulative sums of z_1, exp(z_2), exp(z_3), ..."""
        return np.asarray(np.cumsum(self._steps(z), axis=1))

    def to_unbounded(self, q: FloatArray) -> FloatArray:
        """Return the first number, and logs of the steps after it."""
        steps = np.diff(q, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = np.asarray(np.isfinite(q).all(axis=1) & (steps > 0.0).all(axis=1))
            return only_where(inside, np.concatenate([q[:, :1], np.log(steps)], axis=1))

    def log_jacobian(self, z: FloatArray) -> FloatArray:
        """Return z_2 + z_3 + ..."""
        return np.asarray(z[:, 1:].sum(axis=1))

    def log_jacobian_gradient(self, z: FloatArray) -> FloatArray:
        """Return 0, 1, 1, ..."""
        gradient = np.ones_like(z)
        gradient[:, 0] = 0.0
        return gradient

    def vjp(self, z: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return sums of the gradient from each number on, times the steps' derivatives."""
        later = np.cumsum(gradient[:, ::-1], axis=1)[:, ::-1]
        steps = self._steps(z)
        steps[:, 0] = 1.0
        return np.asarray(later * steps)

    def _steps(self, z: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.concatenate([z[:, :1], np.exp(z[:, 1:])], axis=1)
