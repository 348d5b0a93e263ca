"""The contracts of potentials whose matrices have products, diagonals and derivatives.

What Riemannian samplers ask of a potential beyond :mod:`surrokit.protocols`. G is the potential's
Hessian or its ``metric``, as the names of the methods say; positions come in rows of shape
``(n, dim)``.
"""

from __future__ import annotations

from typing import Protocol

from surrokit.protocols import CurvedEnergy, ForwardPotential, MetricPotential, Potential
from surrokit.types import FloatArray


class HessianProductPotential(Potential, Protocol):
    """A potential with capability ``hessian-product``."""

    def hessian_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return G u, shape (n, dim), with u in ``vectors (n, dim)``.

        It costs less than the Hessian.
        """
        ...


class HessianDiagonalPotential(Potential, Protocol):
    """A potential with capability ``hessian-diagonal``."""

    def hessian_diagonal(self, positions: FloatArray) -> FloatArray:
        """Return the diagonal of the Hessian, shape (n, dim)."""
        ...

    def hessian_diagonal_gradient(self, positions: FloatArray, weights: FloatArray) -> FloatArray:
        """Return sum_j c_j d_k G_jj for each k, shape (n, dim), with c in ``weights (n, dim)``."""
        ...


class ConvexPotential(Potential, Protocol):
    """A potential with capability ``convex``: its Hessian is positive definite everywhere."""


class MetricDerivativePotential(MetricPotential, Protocol):
    """A potential with capability ``metric-derivative``: how G(q) = ``metric`` changes with q."""

    def metric_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G) for each k, shape (n, dim).

        Each row has its own symmetric A, in ``matrices`` of shape (n, dim, dim).
        """
        ...

    def metric_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u for each k, shape (n, dim), with u in ``vectors (n, dim)``."""
        ...


class MetricProductPotential(MetricPotential, Protocol):
    """A potential with capability ``metric-product``."""

    def metric_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return G u, shape (n, dim), with u in ``vectors (n, dim)``.

        It costs less than the metric.
        """
        ...


class ForwardHessianPotential(ForwardPotential, Protocol):
    """A forward potential with capability ``forward-hessian``."""

    def forward_hessian_product(self, positions: FloatArray, weights: FloatArray) -> FloatArray:
        """Return sum over m and i of W_mi d_i d_k F_m for each k, shape (n, dim).

        F is the forward map, and each row has its own W, in ``weights`` of shape (n, m, dim).
        """
        ...


class CurvedDerivativeEnergy(CurvedEnergy, Protocol):
    """An energy with ``curvature-derivatives`` among its capabilities.

    Its curvatures C and R can be differentiated, and so can the Gauss-Newton matrix J^T C J + R.
    """

    def curvature_gradients(
        self,
        outputs: FloatArray,
        positions: FloatArray,
        by_outputs_weights: FloatArray,
        by_positions_weights: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the gradients of sum(X * C) + tr(B R).

        Parameters
        ----------
        outputs : ndarray of shape (n, m)
            Of the forward map.
        positions : ndarray of shape (n, dim)
            Where they were evaluated.
        by_outputs_weights : ndarray of the shape of C
            X; symmetric where C is a matrix.
        by_positions_weights : ndarray of shape (n, dim, dim)
            B, symmetric.

        Returns
        -------
        by_outputs : ndarray of shape (n, m)
            Gradient in the outputs.
        by_positions : ndarray of shape (n, dim)
            Gradient in the positions, with the outputs held.
        """
        ...
