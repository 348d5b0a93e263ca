"""MatrixField: a matrix of a potential that changes with position, its Hessian or its metric."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import attrs

from surrokit.capabilities import require
from surrokit.protocols import Potential
from surrokit.types import FloatArray


@attrs.frozen
class MatrixField:
    """G(q), and how it changes: the four things that both kinds of matrix offer.

    Parameters
    ----------
    name
        ``"hessian"``: second derivatives of U. ``"metric"``: Fisher or Gauss-Newton matrix.
    """

    name: Literal["hessian", "metric"]

    @property
    def derivative(self) -> str:
        """The capability that goes with the two contractions."""
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
            If the potential does not offer it; so do the other methods.
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

    def _method(
        self, potential: Potential, capability: str, name: str
    ) -> Callable[..., FloatArray]:
        require(
            "this computation",
            frozenset({capability}),
            potential.capabilities,
            type(potential).__name__,
            "use a potential that has it",
        )
        method: Any = getattr(potential, name)
        function: Callable[..., FloatArray] = method
        return function


HESSIAN_FIELD = MatrixField("hessian")
"""Second derivatives of U."""

METRIC_FIELD = MatrixField("metric")
"""The potential's own metric."""
