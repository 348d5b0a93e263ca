"""Covariance and correlation matrices."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.coordinates.constraints.constraint import CLOSE, every, only_where
from surrokit.types import BoolArray, FloatArray


@attrs.frozen
class Covariance:
    """Positive definite symmetric matrices of ``size`` rows.

    q = L L^T with the logs of L's diagonal and what is below it in z, as in Stan's reference
    manual. Volumes are those of the numbers on and below the diagonal of q. A gradient may be that
    of a function of all numbers of the matrix; above and below the diagonal are added up.
    """

    size: int
    name = "covariance"
    meaning = "a symmetric positive definite matrix"

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of q."""
        return (self.size, self.size)

    @property
    def free(self) -> int:
        """Numbers in z."""
        return self.size * (self.size + 1) // 2

    @property
    def varies(self) -> BoolArray:
        """All numbers vary."""
        return every(self.size**2)

    def to_bounded(self, z: FloatArray) -> FloatArray:
        """Return L L^T."""
        return _squared(self._factor(z))

    def to_unbounded(self, q: FloatArray) -> FloatArray:
        """Return the Cholesky factor, with logs on its diagonal."""
        factor, inside = _factors(q, self.size)
        rows, columns = np.tril_indices(self.size)
        on = rows == columns
        z = factor[:, rows, columns]
        z[:, on] = np.log(z[:, on])
        return only_where(inside, z)

    def log_jacobian(self, z: FloatArray) -> FloatArray:
        """Return size log 2 + sum_k (size - k + 2) log L_kk, k = 1, 2, ..."""
        return np.asarray(self.size * np.log(2.0) + z @ self._weights)

    def log_jacobian_gradient(self, z: FloatArray) -> FloatArray:
        """Return size - k + 2 on the diagonal."""
        return np.broadcast_to(self._weights, z.shape).copy()

    def vjp(self, z: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return (G + G^T) L, with the derivative of exp on the diagonal."""
        factor = self._factor(z)
        found = _to_factor(factor, gradient, self.size)
        rows, columns = np.tril_indices(self.size)
        on = rows == columns
        pulled = found[:, rows, columns]
        pulled[:, on] *= factor[:, rows[on], columns[on]]
        return pulled

    @property
    def _weights(self) -> FloatArray:
        rows, columns = np.tril_indices(self.size)
        return np.where(rows == columns, self.size - rows + 1.0, 0.0)

    def _factor(self, z: FloatArray) -> FloatArray:
        factor = np.zeros((len(z), self.size, self.size))
        rows, columns = np.tril_indices(self.size)
        on = rows == columns
        with np.errstate(over="ignore"):
            factor[:, rows, columns] = np.where(on, np.exp(np.where(on, z, 0.0)), z)
        return factor


@attrs.frozen
class Correlation:
    """Correlation matrices of ``size`` rows: positive definite, with ones on the diagonal.

    tanh(z) are canonical partial correlations (Lewandowski, Kurowicka and Joe 2009,
    doi:10.1016/j.jmva.2009.04.008), as in Stan's reference manual. Volumes are those of the numbers
    below the diagonal of q. A gradient may be that of a function of all numbers of the matrix;
    above and below the diagonal are added up.
    """

    size: int
    name = "correlation"
    meaning = "a symmetric positive definite matrix with ones on its diagonal"

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of q."""
        return (self.size, self.size)

    @property
    def free(self) -> int:
        """Numbers in z."""
        return self.size * (self.size - 1) // 2

    @property
    def varies(self) -> BoolArray:
        """All but the diagonal vary."""
        return ~np.eye(self.size, dtype=bool).ravel()

    def to_bounded(self, z: FloatArray) -> FloatArray:
        """Return L L^T, with ones on the diagonal."""
        q = _squared(self._factor(z)).reshape(len(z), self.size, self.size)
        q[:, np.arange(self.size), np.arange(self.size)] = 1.0
        return q.reshape(len(z), -1)

    def to_unbounded(self, q: FloatArray) -> FloatArray:
        """Return atanh of the partial correlations."""
        factor, inside = _factors(q, self.size)
        diagonal = np.einsum("nkk->nk", q.reshape(-1, self.size, self.size))
        inside &= (np.abs(diagonal - 1.0) < CLOSE).all(axis=1)
        left = 1.0 - np.cumsum(np.square(factor), axis=2) + np.square(factor)
        rows, columns = np.tril_indices(self.size, -1)
        with np.errstate(divide="ignore", invalid="ignore"):
            partial = factor[:, rows, columns] / np.sqrt(left[:, rows, columns])
            return only_where(inside, np.arctanh(partial))

    def log_jacobian(self, z: FloatArray) -> FloatArray:
        """Return sum over i > j of (size - j + 1) log(1 - w_ij^2) / 2, j = 1, 2, ..."""
        return np.asarray(_log_sech_squared(z) @ self._weights)

    def log_jacobian_gradient(self, z: FloatArray) -> FloatArray:
        """Return its gradient: d log(1 - tanh^2) = -2 tanh."""
        return -2.0 * self._weights * np.tanh(z)

    def vjp(self, z: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return (G + G^T) L, led back through the rows of L from their ends."""
        n, k = len(z), self.size
        w, sech = self._below(np.tanh(z), 0.0), self._below(_sech(z), 1.0)
        room = _room(sech)
        slope = _to_factor(self._factor(z), gradient, k)
        found = np.zeros((n, k, k))
        rest = np.einsum("nkk->nk", slope).copy()  # derivative by what is left of a row's length
        for j in range(k - 2, -1, -1):
            below = slice(j + 1, None)
            here, left = slope[:, below, j], room[:, below, j]
            by_w, tail = here * left, rest[:, below] * left
            found[:, below, j] = by_w * np.square(sech[:, below, j])
            found[:, below, j] -= tail * w[:, below, j] * sech[:, below, j]
            rest[:, below] = here * w[:, below, j] + rest[:, below] * sech[:, below, j]
        rows, columns = np.tril_indices(k, -1)
        return found[:, rows, columns]

    @property
    def _weights(self) -> FloatArray:
        _, columns = np.tril_indices(self.size, -1)
        return (self.size - columns) / 2.0

    def _below(self, values: FloatArray, elsewhere: float) -> FloatArray:
        """Return matrices with ``values (n, free)`` below the diagonal."""
        rows, columns = np.tril_indices(self.size, -1)
        found = np.full((len(values), self.size, self.size), elsewhere)
        found[:, rows, columns] = values
        return found

    def _factor(self, z: FloatArray) -> FloatArray:
        room = _room(self._below(_sech(z), 1.0))
        factor = self._below(np.tanh(z), 0.0) * room
        at = np.arange(self.size)
        factor[:, at, at] = room[:, at, at]
        return factor


def _room(sech: FloatArray) -> FloatArray:
    """Return the length that is left of each row of L before each of its numbers."""
    room = np.ones_like(sech)
    room[:, :, 1:] = np.cumprod(sech, axis=2)[:, :, :-1]
    return np.tril(room)


def _log_sech_squared(z: FloatArray) -> FloatArray:
    """Return log(1 - tanh(z)^2), also far out."""
    size = np.abs(z)
    return np.asarray(2.0 * (np.log(2.0) - size - np.log1p(np.exp(-2.0 * size))))


def _sech(z: FloatArray) -> FloatArray:
    return np.asarray(np.exp(0.5 * _log_sech_squared(z)))


def _squared(factor: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray((factor @ np.swapaxes(factor, 1, 2)).reshape(len(factor), -1))


def _to_factor(factor: FloatArray, gradient: FloatArray, size: int) -> FloatArray:
    """Return the gradient by L of what has a gradient by L L^T."""
    matrices = gradient.reshape(-1, size, size)
    return np.asarray((matrices + np.swapaxes(matrices, 1, 2)) @ factor)


def _factors(q: FloatArray, size: int) -> tuple[FloatArray, BoolArray]:
    """Return Cholesky factors, and whether the matrices have one and are symmetric."""
    matrices = q.reshape(-1, size, size)
    factors, inside = np.broadcast_to(np.eye(size), matrices.shape).copy(), every(len(matrices))
    for i, matrix in enumerate(matrices):
        try:
            factors[i] = np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            inside[i] = False
        inside[i] &= bool(np.allclose(matrix, matrix.T, rtol=0.0, atol=CLOSE))
    return factors, inside
