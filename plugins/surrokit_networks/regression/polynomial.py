"""A quadratic or linear function of positions: what a trend is once it is fitted."""

from __future__ import annotations

import attrs
import numpy as np
from scipy.linalg import solve_triangular

from surrokit.surrogate.whitening import Whitening
from surrokit.types import FloatArray

LEAST_CURVATURE = 0.1
"""Least eigenvalue left to a trend's matrix in whitened coordinates, where a normal has 1."""


@attrs.frozen(kw_only=True, eq=False)
class Polynomial:
    """slope . (q - centre) + (q - centre)^T matrix (q - centre) / 2.

    Parameters
    ----------
    centre : ndarray of shape (dim,)
        Where it is zero.
    slope : ndarray of shape (dim,)
        Its gradient there.
    matrix : ndarray of shape (dim, dim)
        Its second derivatives; symmetric.
    """

    centre: FloatArray
    slope: FloatArray
    matrix: FloatArray

    @classmethod
    def of_whitened(cls, slope: FloatArray, matrix: FloatArray, whitening: Whitening) -> Polynomial:
        """Return slope . z + z^T matrix z / 2 of whitened z, as a function of raw positions."""
        inverse = whitening.inverse
        own = inverse.T @ matrix @ inverse
        return cls(
            centre=whitening.mean, slope=slope @ inverse, matrix=np.asarray(0.5 * (own + own.T))
        )

    def value(self, positions: FloatArray) -> FloatArray:
        """Return the function, shape (n,), at positions (n, dim)."""
        return self.value_and_gradient(positions)[0]

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return its gradient, shape (n, dim)."""
        gradient: FloatArray = (positions - self.centre) @ self.matrix
        gradient += self.slope
        return gradient

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the function, shape (n,), and its gradient, shape (n, dim)."""
        away = positions - self.centre
        pull = away @ self.matrix
        value = np.einsum("nd,nd->n", away, 0.5 * pull + self.slope)
        pull += self.slope
        return value, pull

    def normal(self) -> tuple[FloatArray, FloatArray]:
        """Return mean (dim,) and factor L (dim, dim) of the density that this is a potential of.

        L is lower triangular, and L L^T is the inverse of the matrix, which must be positive
        definite.
        """
        # matrix = R R^T with R upper triangular, the factor of the matrix turned round; L = R^-T
        root = np.linalg.cholesky(self.matrix[::-1, ::-1])[::-1, ::-1]
        factor = solve_triangular(root, np.eye(len(root)), lower=False).T
        mean = self.centre - factor @ (factor.T @ self.slope)
        return np.asarray(mean), np.ascontiguousarray(factor, dtype=np.float64)

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return the matrix, once for each position: shape (n, dim, dim)."""
        return np.broadcast_to(self.matrix, (len(positions), *self.matrix.shape)).copy()


def with_least_curvature(matrix: FloatArray, least: float = LEAST_CURVATURE) -> FloatArray | None:
    """Return a symmetric matrix with its eigenvalues raised to a least one; None if none is less.

    A quadratic fitted to few points has directions of negative curvature, and paths run off along
    them.

    Parameters
    ----------
    matrix : ndarray of shape (dim, dim)
        In whitened coordinates.
    least
        Positive.
    """
    eigenvalues, vectors = np.linalg.eigh(matrix)
    if eigenvalues[0] >= least:
        return None
    return np.asarray((vectors * np.maximum(eigenvalues, least)) @ vectors.T)
