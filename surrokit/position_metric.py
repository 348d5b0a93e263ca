"""The contract of metrics whose mass matrix changes with position."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

import numpy as np

from surrokit.types import Cache, Capabilities, FloatArray

if TYPE_CHECKING:
    from surrokit.protocols import Potential


class PositionMetric(Protocol):
    """The kinetic energy of momenta, with a mass matrix G(q) that changes with position.

    K(q, p) = log det G / 2 + p^T G^-1 p / 2, equation (5) of Zhang, Shahbaba and Zhao (2017). What
    it knows at some positions is a cache, a dictionary of arrays with one row for each. Of one
    potential it gives G itself, and how G changes: an integrator that took the two from different
    places would not preserve volume.

    A row at which G is not finite is NaN throughout, and the other rows are as they would be.
    """

    @property
    def needs(self) -> Capabilities:
        """What the potential must offer."""
        ...

    @property
    def tunable(self) -> bool:
        """Whether it has units that are left to be tuned."""
        ...

    def adapted(self, covariance: FloatArray) -> Self:
        """Return the metric in units in which a covariance (dim, dim) is the identity."""
        ...

    def factored(self, potential: Potential, positions: FloatArray) -> Cache:
        """Evaluate G at positions (n, dim), and factorise it: the only costly method.

        Raises
        ------
        IndefiniteMetricError
            From a metric that takes G as it comes, where it is finite and not positive definite.
        """
        ...

    def log_determinant_gradient(
        self, potential: Potential, positions: FloatArray, cache: Cache
    ) -> FloatArray:
        """Return tr(G^-1 d_k G) for each k, shape (n, dim)."""
        ...

    def form_gradient(
        self, potential: Potential, positions: FloatArray, cache: Cache, velocities: FloatArray
    ) -> FloatArray:
        """Return u^T d_k G u for each k, shape (n, dim), with u in ``velocities (n, dim)``."""
        ...

    def draw(self, rng: np.random.Generator, cache: Cache) -> FloatArray:
        """Draw momenta from N(0, G), shape (n, dim)."""
        ...

    def velocity(self, cache: Cache, momenta: FloatArray) -> FloatArray:
        """Return G^-1 p, shape (n, dim)."""
        ...

    def momentum(self, cache: Cache, velocities: FloatArray) -> FloatArray:
        """Return G u, shape (n, dim)."""
        ...

    def energy(self, cache: Cache, momenta: FloatArray) -> FloatArray:
        """Return K, shape (n,)."""
        ...

    def approximate_product(
        self, potential: Potential, positions: FloatArray, vectors: FloatArray
    ) -> FloatArray | None:
        """Return about G u, shape (n, dim), where that costs much less than ``factored``.

        It may be wrong where the metric is regularised: integrators come near a solution with it,
        and verify with G itself. None where there is no cheap product.
        """
        ...
