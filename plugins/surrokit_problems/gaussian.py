"""A Gaussian target: the exact answer is known."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from surrokit import capabilities as can
from surrokit.arguments import check_matrices, check_positions, check_vectors
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.shown.target import ShownTarget
from surrokit.types import Capabilities, FloatArray


class GaussianPotential(ShownTarget):
    """U(q) = (q - mean)^T covariance^-1 (q - mean) / 2, in nats.

    Parameters
    ----------
    mean : array_like of shape (dim,)
        Of the target.
    covariance : array_like of shape (dim, dim)
        Of the target.

    Raises
    ------
    ConfigurationError
        If the covariance is not symmetric and positive definite, or an entry is not finite.
    ShapeError
        If the shapes do not agree; the methods, if positions are not rows of ``dim`` numbers.
    """

    capabilities: ClassVar[Capabilities] = frozenset(
        {can.GRADIENT, can.GRADIENT_ALONE, *can.HESSIANS, can.CONVEX, can.GAUSSIAN, *can.METRICS}
    )
    """What it offers besides the value."""

    def __init__(self, mean: npt.ArrayLike, covariance: npt.ArrayLike) -> None:
        self.mean: FloatArray = np.array(mean, dtype=np.float64)
        self.covariance: FloatArray = np.array(covariance, dtype=np.float64)
        self.factor = _cholesky(self.mean, self.covariance)
        whitening = np.linalg.inv(self.factor)
        self._precision = whitening.T @ whitening

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return len(self.mean)

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at positions of shape (n, dim)."""
        return self.value_and_gradient(positions)[0]

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient, shape (n, dim)."""
        offsets = check_positions(positions, self.dim) - self.mean
        with np.errstate(over="ignore", invalid="ignore"):
            gradient = offsets @ self._precision
            value = 0.5 * np.einsum("nd,nd->n", offsets, gradient)
        return np.where(np.isfinite(value), value, np.inf), gradient

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient alone, shape (n, dim)."""
        offsets = check_positions(positions, self.dim) - self.mean
        with np.errstate(over="ignore", invalid="ignore"):
            gradient: FloatArray = offsets @ self._precision
        return gradient

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return the precision matrix for each position, shape (n, dim, dim)."""
        q = check_positions(positions, self.dim)
        return np.tile(self._precision, (len(q), 1, 1))

    def hessian_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the precision times u, shape (n, dim), with u in ``vectors (n, dim)``."""
        u = check_vectors(vectors, check_positions(positions, self.dim))
        return np.asarray(u @ self._precision)

    def hessian_diagonal(self, positions: FloatArray) -> FloatArray:
        """Return the diagonal of the precision for each position, shape (n, dim)."""
        q = check_positions(positions, self.dim)
        return np.tile(np.diag(self._precision), (len(q), 1))

    def hessian_diagonal_gradient(self, positions: FloatArray, weights: FloatArray) -> FloatArray:
        """Return zeros, shape (n, dim): the Hessian does not change."""
        return np.zeros_like(check_vectors(weights, check_positions(positions, self.dim)))

    def hessian_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return zeros, shape (n, dim): the Hessian does not change."""
        q = check_positions(positions, self.dim)
        check_matrices(matrices, q)
        return np.zeros_like(q)

    def hessian_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return zeros, shape (n, dim): the Hessian does not change."""
        return np.zeros_like(check_vectors(vectors, check_positions(positions, self.dim)))

    def metric(self, positions: FloatArray) -> FloatArray:
        """Return the precision matrix for each position, shape (n, dim, dim)."""
        return self.hessian(positions)

    def metric_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the precision times u, shape (n, dim), with u in ``vectors (n, dim)``."""
        return self.hessian_product(positions, vectors)

    def metric_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return zeros, shape (n, dim): the metric does not change."""
        return self.hessian_trace_gradient(positions, matrices)

    def metric_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return zeros, shape (n, dim): the metric does not change."""
        return self.hessian_form_gradient(positions, vectors)

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Draw independently from the target, shape (n, dim)."""
        draws: FloatArray = self.mean + rng.standard_normal((n, self.dim)) @ self.factor.T
        return draws


def gaussian(
    dim: int = 2, mean: npt.ArrayLike | None = None, covariance: npt.ArrayLike | None = None
) -> GaussianPotential:
    """Return a Gaussian, of whose mean and covariance either may be left out.

    Parameters
    ----------
    dim
        Numbers in a position, at least 1, where neither of the others is given.
    mean : array_like of shape (dim,), optional
        None for zeros.
    covariance : array_like of shape (dim, dim), optional
        None for the identity.

    Raises
    ------
    ConfigurationError
        If the covariance is not symmetric and positive definite, or an entry is not finite.
    ShapeError
        If the shapes do not agree.
    """
    if covariance is not None:
        dim = len(np.atleast_1d(covariance))
    elif mean is not None:
        dim = len(np.atleast_1d(mean))
    return GaussianPotential(
        np.zeros(dim) if mean is None else mean, np.eye(dim) if covariance is None else covariance
    )


def gaussian_32() -> GaussianPotential:
    """Return the 32-dimensional Gaussian of figure 3, around zero."""
    return GaussianPotential(np.zeros(32), figure_three_covariance())


def figure_three_covariance(dim: int = 32) -> FloatArray:
    """Return the covariance of figure 3 of Zhang, Shahbaba and Zhao (2017), shape (dim, dim).

    Eigenvalue 1 with eigenvector (1, ..., 1), and 0.01 with all others.
    """
    ones: FloatArray = np.full((dim, dim), 1.0 / dim)
    return 0.01 * np.eye(dim) + 0.99 * ones


def _cholesky(mean: FloatArray, covariance: FloatArray) -> FloatArray:
    if mean.ndim != 1 or not mean.size or covariance.shape != (len(mean), len(mean)):
        raise ShapeError(
            "mean must have shape (dim,) and covariance shape (dim, dim), got "
            f"{mean.shape} and {covariance.shape}; give them the same dim"
        )
    try:
        if not (np.isfinite(mean).all() and np.allclose(covariance, covariance.T)):
            raise np.linalg.LinAlgError("not finite or not symmetric")
        factor = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
    except np.linalg.LinAlgError as error:
        raise ConfigurationError(
            "mean must be finite and covariance symmetric and positive definite, got one that is "
            f"not ({error}); check its eigenvalues"
        ) from error
    return factor
