"""Densities in closed form: Gaussians, whose answers are known, and a banana."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from surrokit import capabilities as can
from surrokit.arguments import check_matrices, check_positions, check_vectors
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.types import Capabilities, FloatArray


class GaussianPotential:
    """U(q) = (q - mean)^T covariance^-1 (q - mean) / 2, in nats.

    ``mean`` has shape (dim,) and ``covariance`` (dim, dim).

    Raises
    ------
    ConfigurationError, ShapeError
        If the covariance is not symmetric and positive definite, an entry is not finite, or shapes
        do not agree; the methods, if positions are not rows of ``dim`` numbers.
    """

    capabilities: ClassVar[Capabilities] = frozenset(
        {can.GRADIENT, can.GRADIENT_ALONE, *can.HESSIANS, can.CONVEX, can.GAUSSIAN, *can.METRICS}
    )
    """What it offers besides the value."""

    def __init__(self, mean: npt.ArrayLike, covariance: npt.ArrayLike) -> None:
        self.mean: FloatArray = np.array(mean, dtype=np.float64)
        self.covariance: FloatArray = np.array(covariance, dtype=np.float64)
        mean, covariance = self.mean, self.covariance
        if mean.ndim != 1 or not mean.size or covariance.shape != (len(mean), len(mean)):
            raise ShapeError(
                "mean must have shape (dim,) and covariance shape (dim, dim), got "
                f"{mean.shape} and {covariance.shape}; give them the same dim"
            )
        try:
            if not (np.isfinite(mean).all() and np.allclose(covariance, covariance.T)):
                raise np.linalg.LinAlgError("not finite or not symmetric")
            self.factor = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
        except np.linalg.LinAlgError as error:
            raise ConfigurationError(
                "mean must be finite and covariance symmetric and positive definite, got one that "
                f"is not ({error}); check its eigenvalues"
            ) from error
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
        return self.value_and_gradient(positions)[1]

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

    def hessian_diagonal_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return zeros, shape (n, dim): the Hessian does not change."""
        return np.zeros_like(check_vectors(vectors, check_positions(positions, self.dim)))

    def hessian_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return zeros, shape (n, dim): the Hessian does not change."""
        q = check_positions(positions, self.dim)
        check_matrices(matrices, q)
        return np.zeros_like(q)

    hessian_form_gradient = hessian_diagonal_gradient
    metric = hessian
    metric_product = hessian_product
    metric_trace_gradient = hessian_trace_gradient
    metric_form_gradient = hessian_form_gradient

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
    ConfigurationError, ShapeError
        As the class.
    """
    given = mean if covariance is None else covariance
    dim = dim if given is None else len(np.atleast_1d(given))
    return GaussianPotential(
        np.zeros(dim) if mean is None else mean, np.eye(dim) if covariance is None else covariance
    )


def gaussian_32() -> GaussianPotential:
    """Return the Gaussian of figure 3 of Zhang, Shahbaba and Zhao (2017), around zero.

    Its covariance has eigenvalue 1 with eigenvector (1, ..., 1), and 0.01 with the 31 others.
    """
    return GaussianPotential(np.zeros(32), 0.01 * np.eye(32) + np.full((32, 32), 0.99 / 32))


class Banana:
    """U of theta from y_i ~ N(theta_1 + theta_2^2, sigma_y^2) and theta ~ N(0, sigma_theta^2 I).

    The data are drawn at theta_1 + theta_2^2 = 1. They determine that sum only, so the posterior
    is a curved ridge.

    Parameters
    ----------
    n_observations
        How many data to draw, at least 1.
    sigma_y, sigma_theta
        Standard deviations of data and prior, positive.
    seed
        Of the data, at least 0.

    Raises
    ------
    ConfigurationError
        If a setting is not positive.

    Notes
    -----
    Figure 2 of Zhang, Shahbaba and Zhao (2017), after Girolami and Calderhead (2011),
    doi:10.1111/j.1467-9868.2010.00765.x.
    """

    capabilities: ClassVar[Capabilities] = frozenset(
        {can.GRADIENT, can.HESSIAN, can.HESSIAN_DERIVATIVE, can.METRIC, can.METRIC_DERIVATIVE}
    )
    """What it offers besides the value."""

    dim: ClassVar[int] = 2
    """Numbers in a position."""

    def __init__(
        self,
        n_observations: int = 100,
        sigma_y: float = 2.0,
        sigma_theta: float = 1.0,
        seed: int = 2011,
    ) -> None:
        if n_observations < 1 or not (0 < sigma_y < np.inf and 0 < sigma_theta < np.inf):
            raise ConfigurationError(
                "n_observations, sigma_y and sigma_theta must be positive and finite, got "
                f"{n_observations}, {sigma_y} and {sigma_theta}; the usual ones are 100, 2 and 1"
            )
        rng = np.random.default_rng(seed)
        self.data: FloatArray = rng.normal(1.0, sigma_y, n_observations)
        self._mean = float(self.data.mean())
        self._data_precision = n_observations / sigma_y**2
        self._prior_precision = 1.0 / sigma_theta**2

    @property
    def observed_data(self) -> dict[str, FloatArray]:
        """The data."""
        return {"y": self.data}

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at positions of shape (n, 2)."""
        return self.value_and_gradient(positions)[0]

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient, shape (n, 2)."""
        theta = check_positions(positions, self.dim)
        with np.errstate(over="ignore", invalid="ignore"):
            excess = theta[:, 0] + np.square(theta[:, 1]) - self._mean
            value = 0.5 * self._data_precision * np.square(excess)
            value += 0.5 * self._prior_precision * np.square(theta).sum(axis=1)
            gradient = self._prior_precision * theta
            gradient[:, 0] += self._data_precision * excess
            gradient[:, 1] += 2.0 * self._data_precision * excess * theta[:, 1]
        return np.where(np.isfinite(value), value, np.inf), gradient

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return the second derivatives of U, shape (n, 2, 2); indefinite inside the bend."""
        theta = check_positions(positions, self.dim)
        hessian = self.metric(theta)
        with np.errstate(over="ignore", invalid="ignore"):
            excess = theta[:, 0] + np.square(theta[:, 1]) - self._mean
            hessian[:, 1, 1] += 2.0 * self._data_precision * excess
        return hessian

    def metric(self, positions: FloatArray) -> FloatArray:
        """Return the Fisher matrix plus the precision of the prior, shape (n, 2, 2)."""
        theta = check_positions(positions, self.dim)
        slopes = np.ones_like(theta)  # of the datum's mean
        slopes[:, 1] = 2.0 * theta[:, 1]
        with np.errstate(over="ignore", invalid="ignore"):
            fisher = self._data_precision * slopes[:, :, None] * slopes[:, None, :]
        metric: FloatArray = fisher + self._prior_precision * np.eye(2)
        return metric

    def hessian_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G), G the Hessian, shape (n, 2), with A in ``matrices (n, 2, 2)``."""
        theta = check_positions(positions, self.dim)
        weights = check_matrices(matrices, theta)
        gradient = self.metric_trace_gradient(theta, weights)
        with np.errstate(over="ignore", invalid="ignore"):
            bend = 2.0 * self._data_precision * weights[:, 1, 1]
            gradient[:, 0] += bend
            gradient[:, 1] += 2.0 * bend * theta[:, 1]
        return gradient

    def hessian_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u, G the Hessian, shape (n, 2), with u in ``vectors (n, 2)``."""
        u = check_vectors(vectors, check_positions(positions, self.dim))
        return self.hessian_trace_gradient(positions, u[:, :, None] * u[:, None, :])

    def metric_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G), G the metric, shape (n, 2), with A in ``matrices (n, 2, 2)``."""
        theta = check_positions(positions, self.dim)
        weights = check_matrices(matrices, theta)
        gradient = np.zeros_like(theta)
        with np.errstate(over="ignore", invalid="ignore"):
            across = 2.0 * (weights[:, 0, 1] + weights[:, 1, 0])
            straight = 8.0 * theta[:, 1] * weights[:, 1, 1]
            gradient[:, 1] = self._data_precision * (across + straight)
        return gradient

    def metric_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u, G the metric, shape (n, 2), with u in ``vectors (n, 2)``."""
        u = check_vectors(vectors, check_positions(positions, self.dim))
        return self.metric_trace_gradient(positions, u[:, :, None] * u[:, None, :])
