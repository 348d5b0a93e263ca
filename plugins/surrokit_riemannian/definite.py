"""Mass matrices that are full, and those taken as they come: Fisher information and Hessian."""

from __future__ import annotations

from typing import ClassVar, Self

import attrs
import numpy as np

from surrokit.capabilities import CONVEX, HESSIAN, HESSIAN_DERIVATIVE, METRIC, METRIC_DERIVATIVE
from surrokit.contracts.matrices import HESSIAN_FIELD, METRIC_FIELD, FormsAt, MatrixField
from surrokit.contracts.potential import Potential
from surrokit.errors import IndefiniteMetricError
from surrokit.types import Cache, Capabilities, FloatArray
from surrokit_riemannian.factors import Factors, dot, factorise, product


class DenseMassMatrix:
    """Momenta of a mass matrix G = F F^T that is kept with its inverse.

    The inverse is needed for the derivative of log det G in any case, and makes a velocity one
    small product.

    ====================  ===============  =========
    in the cache          shape            what
    ====================  ===============  =========
    ``metric_factor``     (n, dim, dim)    F
    ``metric_inverse``    (n, dim, dim)    G^-1
    ``log_determinant``   (n,)             log det G
    ====================  ===============  =========
    """

    field: ClassVar[MatrixField]
    """The matrix of the potential that G is made of."""

    def draw(self, rng: np.random.Generator, cache: Cache) -> FloatArray:
        """Draw momenta from N(0, G), shape (n, dim)."""
        factor = cache["metric_factor"]
        return product(factor, rng.standard_normal(factor.shape[:2]))

    def velocity(self, cache: Cache, momenta: FloatArray) -> FloatArray:
        """Return G^-1 p, shape (n, dim)."""
        return product(cache["metric_inverse"], momenta)

    def momentum(self, cache: Cache, velocities: FloatArray) -> FloatArray:
        """Return G u, shape (n, dim)."""
        factor = cache["metric_factor"]
        return product(factor, product(factor.transpose(0, 2, 1), velocities))

    def energy(self, cache: Cache, momenta: FloatArray) -> FloatArray:
        """Return log det G / 2 + p^T G^-1 p / 2, shape (n,)."""
        return 0.5 * (cache["log_determinant"] + dot(momenta, self.velocity(cache, momenta)))

    def approximate_product(
        self, potential: Potential, positions: FloatArray, vectors: FloatArray
    ) -> FloatArray | None:
        """Return the field's matrix times u, shape (n, dim), if that is cheaper than the matrix."""
        if self.field.quick_product not in potential.capabilities:
            return None
        return self.field.product(potential, positions, vectors)


def dense_cache(factors: Factors) -> dict[str, FloatArray]:
    """Return the cache of mass matrices from their factors."""
    return {
        "metric_factor": factors.lower,
        "metric_inverse": factors.inverse,
        "log_determinant": factors.log_determinant,
    }


class _Definite(DenseMassMatrix):
    """A matrix of the potential that is factorised as it is; it has no units."""

    tunable: ClassVar[bool] = False
    """Never."""

    def adapt(self, covariance: FloatArray) -> Self:  # noqa: ARG002
        """Return itself."""
        return self

    def factor(self, potential: Potential, positions: FloatArray) -> Cache:
        """Factorise G at positions (n, dim).

        Raises
        ------
        IndefiniteMetricError
            Where it is finite and not positive definite.
        """
        matrices = self.field.matrix(potential, positions)
        what = "Hessian" if self.field == HESSIAN_FIELD else "metric"
        return _definite_cache(matrices, what, potential, positions)

    def log_determinant_gradient(
        self, potential: Potential, positions: FloatArray, cache: Cache
    ) -> FloatArray:
        """Return tr(G^-1 d_k G), shape (n, dim)."""
        return self.field.trace_gradient(potential, positions, cache["metric_inverse"])

    def form_gradient(
        self,
        potential: Potential,
        positions: FloatArray,
        cache: Cache,  # noqa: ARG002
        velocities: FloatArray,
    ) -> FloatArray:
        """Return u^T d_k G u, shape (n, dim)."""
        return self.field.form_gradient(potential, positions, velocities)

    def forms_at(
        self,
        potential: Potential,
        positions: FloatArray,
        cache: Cache,  # noqa: ARG002
    ) -> FormsAt:
        """Return :meth:`form_gradient` of some rows, with all that velocities do not change."""
        return self.field.forms_at(potential, positions)


@attrs.frozen
class OwnMetric(_Definite):
    """G = the potential's own ``metric``, its Fisher information or Gauss-Newton matrix.

    Girolami and Calderhead (2011), doi:10.1111/j.1467-9868.2010.00765.x, section 4; the paper's
    section 2.2.
    """

    field: ClassVar[MatrixField] = METRIC_FIELD

    needs: ClassVar[Capabilities] = frozenset({METRIC, METRIC_DERIVATIVE})
    """The metric and its derivative."""


@attrs.frozen
class HessianMetric(_Definite):
    """G = the Hessian of a convex potential.

    Parameters
    ----------
    trusted
        Take Hessians of potentials that do not say that they are convex.
    """

    field: ClassVar[MatrixField] = HESSIAN_FIELD
    trusted: bool = False

    @property
    def needs(self) -> Capabilities:
        """The Hessian and its derivative, of a convex potential unless it is trusted."""
        convex = frozenset() if self.trusted else frozenset({CONVEX})
        return frozenset({HESSIAN, HESSIAN_DERIVATIVE}) | convex


def _definite_cache(
    matrices: FloatArray, what: str, potential: Potential, positions: FloatArray
) -> Cache:
    factors = factorise(matrices)
    failed = np.flatnonzero(np.isnan(factors.log_determinant))
    finite = np.isfinite(matrices[failed]).all(axis=(1, 2))
    failed = failed[finite & np.isfinite(positions[failed]).all(axis=1)]
    if failed.size:
        i = failed[0]
        least = np.linalg.eigvalsh(matrices[i])[0]
        with np.printoptions(precision=4, threshold=8):
            raise IndefiniteMetricError(
                f"the {what} of {type(potential).__name__} must be positive definite to be a mass "
                f"matrix, but has eigenvalue {least:.3g} at position {positions[i]}; use metric "
                "'softabs', which is positive definite everywhere (to reject such positions would "
                "cut them out of the target)"
            )
    return dense_cache(factors)
