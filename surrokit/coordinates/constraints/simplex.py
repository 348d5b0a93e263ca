"""Positive numbers that sum to 1."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.coordinates.constraints.constraint import CLOSE, every, only_where
from surrokit.types import BoolArray, FloatArray


@attrs.frozen
class Simplex:
    """Vectors of ``size`` positive numbers that sum to 1.

    q = softmax(V z) with orthonormal columns V that sum to zero: the inverse of the isometric
    log ratio (Egozcue et al. 2003, doi:10.1023/A:1023818214614), as in Stan's reference manual.
    Volumes are those of the first ``size - 1`` numbers.
    """

    size: int
    name = "simplex"
    meaning = "positive numbers that sum to 1"
    _basis: FloatArray = attrs.field(init=False, repr=False, eq=False)

    @_basis.default
    def _helmert(self) -> FloatArray:
        basis = np.zeros((self.size, self.size - 1))
        for i in range(1, self.size):
            basis[:i, i - 1] = 1.0 / i
            basis[i, i - 1] = -1.0
            basis[:, i - 1] *= np.sqrt(i / (i + 1.0))
        return basis

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of q."""
        return (self.size,)

    @property
    def free(self) -> int:
        """Numbers in z."""
        return self.size - 1

    @property
    def varies(self) -> BoolArray:
        """All numbers vary."""
        return every(self.size)

    def to_bounded(self, z: FloatArray) -> FloatArray:
        """Return softmax(V z)."""
        return np.exp(self._log(z))

    def to_unbounded(self, q: FloatArray) -> FloatArray:
        """Return V^T log q."""
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = (q > 0.0).all(axis=1) & (np.abs(q.sum(axis=1) - 1.0) < CLOSE)
            return only_where(inside, np.log(q) @ self._basis)

    def log_jacobian(self, z: FloatArray) -> FloatArray:
        """Return sum log q_i + log(size) / 2."""
        return np.asarray(self._log(z).sum(axis=1) + 0.5 * np.log(self.size))

    def log_jacobian_gradient(self, z: FloatArray) -> FloatArray:
        """Return -size V^T q."""
        return -self.size * (self.to_bounded(z) @ self._basis)

    def vjp(self, z: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return V^T (diag(q) - q q^T) g."""
        q = self.to_bounded(z)
        mean = np.einsum("nk,nk->n", q, gradient)
        return np.asarray((q * (gradient - mean[:, None])) @ self._basis)

    def _log(self, z: FloatArray) -> FloatArray:
        y = z @ self._basis.T
        y = y - y.max(axis=1, keepdims=True)
        return np.asarray(y - np.log(np.exp(y).sum(axis=1, keepdims=True)))
