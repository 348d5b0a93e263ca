"""A plain metric that changes with position, for integrators under test."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from surrokit.potentials import Potential
from surrokit.types import Cache, Capabilities, FloatArray


@attrs.frozen(eq=False)
class CurvedMetric:
    """The metric G(q) = [[a, c], [c, b]], in which a, b and c are waves in q.

    a = 1.2 + sin(q1) / 2, b = 0.9 + 0.3 cos(q2), c = sin(q1 + q2) / 4. G is positive definite
    everywhere, and needs no potential.

    Parameters
    ----------
    products
        Whether it offers products G u without the matrix, as metrics of networks do.
    """

    products: bool = True

    needs: ClassVar[Capabilities] = frozenset()
    """Nothing."""

    tunable: ClassVar[bool] = False
    """Never."""

    def adapt(self, covariance: FloatArray) -> CurvedMetric:  # noqa: ARG002
        """Return itself."""
        return self

    def factor(self, potential: Potential, positions: FloatArray) -> Cache:  # noqa: ARG002
        """Return ``mass`` (n, 2, 2), its inverse and its log determinant."""
        matrix = _matrix(positions)
        determinant = matrix[:, 0, 0] * matrix[:, 1, 1] - np.square(matrix[:, 0, 1])
        inverse = np.empty_like(matrix)
        inverse[:, 0, 0], inverse[:, 1, 1] = matrix[:, 1, 1], matrix[:, 0, 0]
        inverse[:, 0, 1] = inverse[:, 1, 0] = -matrix[:, 0, 1]
        inverse /= determinant[:, None, None]
        return {"mass": matrix, "inverse_mass": inverse, "log_determinant": np.log(determinant)}

    def log_determinant_gradient(
        self,
        potential: Potential,  # noqa: ARG002
        positions: FloatArray,
        cache: Cache,
    ) -> FloatArray:
        """Return tr(G^-1 d_k G), shape (n, 2)."""
        return np.asarray(np.einsum("nij,nijk->nk", cache["inverse_mass"], _twist(positions)))

    def form_gradient(
        self,
        potential: Potential,  # noqa: ARG002
        positions: FloatArray,
        cache: Cache,  # noqa: ARG002
        velocities: FloatArray,
    ) -> FloatArray:
        """Return u^T d_k G u, shape (n, 2)."""
        bent = np.einsum("ni,nijk->njk", velocities, _twist(positions))
        return np.asarray(np.einsum("nj,njk->nk", velocities, bent))

    def draw(self, rng: np.random.Generator, cache: Cache) -> FloatArray:
        """Draw momenta from N(0, G), shape (n, 2)."""
        mass = cache["mass"]
        normals = rng.standard_normal(mass.shape[:2])
        root = np.sqrt(mass[:, 0, 0])
        slope = mass[:, 0, 1] / root
        rest = np.sqrt(mass[:, 1, 1] - np.square(slope))
        return np.column_stack([root * normals[:, 0], slope * normals[:, 0] + rest * normals[:, 1]])

    def velocity(self, cache: Cache, momenta: FloatArray) -> FloatArray:
        """Return G^-1 p, shape (n, 2)."""
        return np.asarray(np.einsum("nij,nj->ni", cache["inverse_mass"], momenta))

    def momentum(self, cache: Cache, velocities: FloatArray) -> FloatArray:
        """Return G u, shape (n, 2)."""
        return np.asarray(np.einsum("nij,nj->ni", cache["mass"], velocities))

    def energy(self, cache: Cache, momenta: FloatArray) -> FloatArray:
        """Return log det G / 2 + p^T G^-1 p / 2, shape (n,)."""
        squares = (momenta * self.velocity(cache, momenta)).sum(axis=1)
        return np.asarray(0.5 * (cache["log_determinant"] + squares))

    def approximate_product(
        self,
        potential: Potential,  # noqa: ARG002
        positions: FloatArray,
        vectors: FloatArray,
    ) -> FloatArray | None:
        """Return G u, shape (n, 2); None without products."""
        if not self.products:
            return None
        return np.asarray(np.einsum("nij,nj->ni", _matrix(positions), vectors))


def _matrix(positions: FloatArray) -> FloatArray:
    first, second = positions.T
    matrix = np.empty((len(positions), 2, 2))
    matrix[:, 0, 0] = 1.2 + 0.5 * np.sin(first)
    matrix[:, 1, 1] = 0.9 + 0.3 * np.cos(second)
    matrix[:, 0, 1] = matrix[:, 1, 0] = 0.25 * np.sin(first + second)
    return matrix


def _twist(positions: FloatArray) -> FloatArray:
    """Return d_k G_ij, shape (n, 2, 2, 2) with k last."""
    first, second = positions.T
    twist = np.zeros((len(positions), 2, 2, 2))
    twist[:, 0, 0, 0] = 0.5 * np.cos(first)
    twist[:, 1, 1, 1] = -0.3 * np.sin(second)
    twist[:, 0, 1] = twist[:, 1, 0] = 0.25 * np.cos(first + second)[:, None]
    return twist
