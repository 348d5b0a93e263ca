"""Potentials with matrices: Hessians, metrics, their products and derivatives.

Riemannian samplers need them. G is the potential's Hessian or its ``metric``, according to the
name of the method; positions come in rows of shape ``(n, dim)``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeAlias

import attrs

from surrokit import capabilities as can
from surrokit.contracts.potential import Potential, Typed
from surrokit.types import FloatArray, IntArray


class HessianPotential(Potential, Protocol):
    """A potential with capability ``hessian``."""

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return the second derivatives of U, shape (n, dim, dim)."""


class HessianDerivativePotential(HessianPotential, Protocol):
    """A potential with capability ``hessian-derivative``: its Hessian G(q) can be differentiated.

    The forces of Riemannian dynamics, equations (7) to (9) of the paper, need two contractions of
    the third derivatives, and never the ``dim`` matrices d_k G themselves.
    """

    def hessian_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G) for each k, shape (n, dim).

        Each row has its own symmetric A, in ``matrices`` of shape (n, dim, dim).
        """

    def hessian_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u for each k, shape (n, dim).

        Each row has its own u, in ``vectors`` of shape (n, dim).
        """


class MetricPotential(Potential, Protocol):
    """A potential with capability ``metric``."""

    def metric(self, positions: FloatArray) -> FloatArray:
        """Return the Fisher or Gauss-Newton matrix of the target, shape (n, dim, dim)."""


class HessianProductPotential(Potential, Protocol):
    """A potential with capability ``hessian-product``."""

    def hessian_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return G u, shape (n, dim), with u in ``vectors (n, dim)``.

        It costs less than the Hessian.
        """


class HessianDiagonalPotential(Potential, Protocol):
    """A potential with capability ``hessian-diagonal``."""

    def hessian_diagonal(self, positions: FloatArray) -> FloatArray:
        """Return the diagonal of the Hessian, shape (n, dim)."""

    def hessian_diagonal_gradient(self, positions: FloatArray, weights: FloatArray) -> FloatArray:
        """Return sum_j c_j d_k G_jj for each k, shape (n, dim), with c in ``weights (n, dim)``."""


class MetricDerivativePotential(MetricPotential, Protocol):
    """A potential with capability ``metric-derivative``: its metric G(q) can be differentiated."""

    def metric_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G) for each k, shape (n, dim).

        Each row has its own symmetric A, in ``matrices`` of shape (n, dim, dim).
        """

    def metric_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u for each k, shape (n, dim), with u in ``vectors (n, dim)``."""


class MetricProductPotential(MetricPotential, Protocol):
    """A potential with capability ``metric-product``."""

    def metric_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return G u, shape (n, dim), with u in ``vectors (n, dim)``.

        It costs less than the metric.
        """


with_hessian = Typed[HessianPotential](can.HESSIAN)
"""A potential that gives Hessians."""

with_hessian_derivative = Typed[HessianDerivativePotential](can.HESSIAN_DERIVATIVE)
"""A potential that gives contractions of its Hessian's derivative."""

with_hessian_product = Typed[HessianProductPotential](can.HESSIAN_PRODUCT)
"""A potential that gives products of its Hessian with vectors."""

with_hessian_diagonal = Typed[HessianDiagonalPotential](can.HESSIAN_DIAGONAL)
"""A potential that gives the diagonal of its Hessian."""

with_metric = Typed[MetricPotential](can.METRIC)
"""A potential that gives its Fisher or Gauss-Newton matrix."""

with_metric_derivative = Typed[MetricDerivativePotential](can.METRIC_DERIVATIVE)
"""A potential that gives contractions of its metric's derivative."""

with_metric_product = Typed[MetricProductPotential](can.METRIC_PRODUCT)
"""A potential that gives products of its metric with vectors."""


FormsAt: TypeAlias = Callable[[FloatArray, IntArray], FloatArray]
"""From vectors (k, dim) or matrices (k, dim, dim), and row numbers (k,) of fixed positions, to
u^T d_k G u or tr(A d_k G), shape (k, dim)."""


@attrs.frozen
class MatrixField:
    """G(q) and its derivative: the four methods that both kinds of matrix have.

    Parameters
    ----------
    name
        ``"hessian"``: second derivatives of U. ``"metric"``: Fisher or Gauss-Newton matrix.
    """

    name: Literal["hessian", "metric"]

    @property
    def derivative(self) -> str:
        """The capability of the two contractions."""
        return f"{self.name}-derivative"

    @property
    def quick_product(self) -> str:
        """The capability of a product that is cheaper than the matrix."""
        return f"{self.name}-product"

    def matrix(self, potential: Potential, positions: FloatArray) -> FloatArray:
        """Return G at positions (n, dim), shape (n, dim, dim).

        Raises
        ------
        CapabilityError
            If the potential does not offer it; the other methods raise this too.
        """
        return self._method(potential, self.name, self.name)(positions)

    def product(
        self, potential: Potential, positions: FloatArray, vectors: FloatArray
    ) -> FloatArray:
        """Return G u, shape (n, dim), with u in ``vectors (n, dim)``."""
        return self._method(potential, self.quick_product, f"{self.name}_product")(
            positions, vectors
        )

    def trace_gradient(
        self, potential: Potential, positions: FloatArray, matrices: FloatArray
    ) -> FloatArray:
        """Return tr(A d_k G) for each k, shape (n, dim), with A in ``matrices (n, dim, dim)``."""
        return self._method(potential, self.derivative, f"{self.name}_trace_gradient")(
            positions, matrices
        )

    def form_gradient(
        self, potential: Potential, positions: FloatArray, vectors: FloatArray
    ) -> FloatArray:
        """Return u^T d_k G u for each k, shape (n, dim), with u in ``vectors (n, dim)``."""
        return self._method(potential, self.derivative, f"{self.name}_form_gradient")(
            positions, vectors
        )

    def forms_at(self, potential: Potential, positions: FloatArray) -> FormsAt:
        """Return what :meth:`form_gradient` is of some rows of ``positions (n, dim)``.

        A potential may have a method ``hessian_forms_at`` or ``metric_forms_at`` that works out
        once what does not depend on the vectors; ``traces_at`` is the like for matrices.
        """
        return self._at(potential, positions, "forms_at", self.form_gradient)

    def traces_at(self, potential: Potential, positions: FloatArray) -> FormsAt:
        """Return what :meth:`trace_gradient` is of some rows of ``positions (n, dim)``."""
        return self._at(potential, positions, "traces_at", self.trace_gradient)

    def _at(
        self,
        potential: Potential,
        positions: FloatArray,
        name: str,
        plainly: Callable[[Potential, FloatArray, FloatArray], FloatArray],
    ) -> FormsAt:
        prepare: Callable[[FloatArray], FormsAt] | None = getattr(
            potential, f"{self.name}_{name}", None
        )
        if prepare is not None and self.derivative in potential.capabilities:
            return prepare(positions)
        return lambda factors, rows: plainly(potential, positions[rows], factors)

    def _method(
        self, potential: Potential, capability: str, name: str
    ) -> Callable[..., FloatArray]:
        function: Callable[..., FloatArray] = getattr(Typed[Any](capability)(potential), name)
        return function


HESSIAN_FIELD = MatrixField("hessian")
"""Second derivatives of U."""

METRIC_FIELD = MatrixField("metric")
"""The potential's own metric."""
