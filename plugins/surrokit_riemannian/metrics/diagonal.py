"""The softabs metric of the diagonal of the Hessian alone."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from surrokit.capabilities import HESSIAN, HESSIAN_DERIVATIVE, HESSIAN_DIAGONAL
from surrokit.contracts.matrices import with_hessian, with_hessian_derivative, with_hessian_diagonal
from surrokit.contracts.potential import Potential
from surrokit.settings import HIDDEN, positive
from surrokit.types import Cache, Capabilities, FloatArray
from surrokit_riemannian.metrics.softabs import HARDNESS
from surrokit_riemannian.metrics.softabs_function import softabs, softabs_slope


@attrs.frozen(eq=False)
class DiagonalMetric:
    """G = diag(h_j coth(a h_j)), with h the diagonal of the Hessian in units of the target.

    Cheap, as in the paper's experiment with a partial differential equation (section 5.2), and
    good where parameters are nearly independent. The cache has ``metric_diagonal`` (n, dim), that
    of G; ``metric_slope`` (n, dim), its derivative in that of the Hessian; and
    ``log_determinant`` (n,).

    Parameters
    ----------
    hardness
        a, in units in which the target's variances are 1.
    variances : ndarray of shape (dim,), optional
        The units; None for those of the potential, until they are tuned.

    Raises
    ------
    ConfigurationError
        If the hardness is not positive.
    """

    hardness: float = attrs.field(default=HARDNESS, validator=positive)
    variances: FloatArray | None = attrs.field(default=None, metadata=HIDDEN)

    needs: ClassVar[Capabilities] = frozenset({HESSIAN, HESSIAN_DERIVATIVE})
    """The Hessian and its derivative; where there is its diagonal alone, that is used."""

    tunable: ClassVar[bool] = True
    """Always: its units."""

    def adapt(self, covariance: FloatArray) -> DiagonalMetric:
        """Return the metric in units in which variances of a covariance (dim, dim) are 1."""
        return attrs.evolve(self, variances=np.diag(covariance).copy())

    def factor(self, potential: Potential, positions: FloatArray) -> Cache:
        """Evaluate the diagonal of the Hessian at positions (n, dim)."""
        if HESSIAN_DIAGONAL in potential.capabilities:
            curvatures = with_hessian_diagonal(potential).hessian_diagonal(positions)
        else:
            hessian = with_hessian(potential).hessian(positions)
            curvatures = np.diagonal(hessian, axis1=1, axis2=2).copy()
        variances = 1.0 if self.variances is None else self.variances
        x = self.hardness * variances * curvatures
        x[~np.isfinite(x).all(axis=1)] = np.nan
        diagonal = softabs(x) / (self.hardness * variances)
        return {
            "metric_diagonal": diagonal,
            "metric_slope": softabs_slope(x),
            "log_determinant": np.asarray(np.log(diagonal).sum(axis=1)),
        }

    def log_determinant_gradient(
        self, potential: Potential, positions: FloatArray, cache: Cache
    ) -> FloatArray:
        """Return tr(G^-1 d_k G), shape (n, dim)."""
        weights = cache["metric_slope"] / cache["metric_diagonal"]
        return _diagonal_gradient(potential, positions, weights)

    def form_gradient(
        self, potential: Potential, positions: FloatArray, cache: Cache, velocities: FloatArray
    ) -> FloatArray:
        """Return u^T d_k G u, shape (n, dim)."""
        weights = cache["metric_slope"] * np.square(velocities)
        return _diagonal_gradient(potential, positions, weights)

    def draw(self, rng: np.random.Generator, cache: Cache) -> FloatArray:
        """Draw momenta from N(0, G), shape (n, dim)."""
        diagonal = cache["metric_diagonal"]
        return np.asarray(np.sqrt(diagonal) * rng.standard_normal(diagonal.shape))

    def velocity(self, cache: Cache, momenta: FloatArray) -> FloatArray:
        """Return G^-1 p, shape (n, dim)."""
        return np.asarray(momenta / cache["metric_diagonal"])

    def momentum(self, cache: Cache, velocities: FloatArray) -> FloatArray:
        """Return G u, shape (n, dim)."""
        return np.asarray(velocities * cache["metric_diagonal"])

    def energy(self, cache: Cache, momenta: FloatArray) -> FloatArray:
        """Return log det G / 2 + p^T G^-1 p / 2, shape (n,)."""
        squares = (np.square(momenta) / cache["metric_diagonal"]).sum(axis=1)
        return np.asarray(0.5 * (cache["log_determinant"] + squares))

    def approximate_product(
        self,
        potential: Potential,  # noqa: ARG002
        positions: FloatArray,  # noqa: ARG002
        vectors: FloatArray,  # noqa: ARG002
    ) -> FloatArray | None:
        """Return None: G itself is cheap."""
        return None


def _diagonal_gradient(
    potential: Potential, positions: FloatArray, weights: FloatArray
) -> FloatArray:
    """Return sum_j c_j d_k H_jj, shape (n, dim), from the weights c (n, dim)."""
    if HESSIAN_DIAGONAL in potential.capabilities:
        return with_hessian_diagonal(potential).hessian_diagonal_gradient(positions, weights)
    matrices = weights[:, :, None] * np.eye(weights.shape[1])
    return with_hessian_derivative(potential).hessian_trace_gradient(positions, matrices)
