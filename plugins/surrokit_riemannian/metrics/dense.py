"""The frame of metrics with a full mass matrix."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from surrokit.contracts.matrices import MatrixField
from surrokit.contracts.potential import Potential
from surrokit.types import Cache, FloatArray
from surrokit_riemannian.metrics.factors import Factors, dot, product


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
