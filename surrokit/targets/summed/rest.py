"""A sum over rows of data, and a rest that needs no rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.contracts.potential import Potential, unnormalized_of
from surrokit.contracts.rows import USUAL_ORDER, Ball, RowExpansion, WrappedExpansion, of_order
from surrokit.errors import ShapeError
from surrokit.shapes import check_positions, check_vectors
from surrokit.types import Capabilities, FloatArray, IntArray

_SHARED: Capabilities = frozenset({can.GRADIENT, can.HESSIAN, can.CONVEX})


class Sum(Protocol):
    """A summed potential with gradients, and perhaps with more."""

    @property
    def dim(self) -> int:
        """Numbers in a position."""

    @property
    def n_rows(self) -> int:
        """Number of terms."""

    @property
    def capabilities(self) -> Capabilities:
        """What it offers, ``rows`` and ``gradient`` among it."""

    def value(self, positions: FloatArray) -> FloatArray:
        """Return it, shape (n,)."""

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return it, shape (n,), and its gradient, shape (n, dim)."""

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return second derivatives, shape (n, dim, dim), with capability ``hessian``."""

    def hessian_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return these times vectors, shape (n, dim), with capability ``hessian-product``."""

    def expand(self, centre: FloatArray, order: int = 2) -> RowExpansion:
        """Return the expansions of all terms."""

    def row_bounds(
        self, factor: FloatArray, order: int = 2, ball: Ball | None = None
    ) -> FloatArray:
        """Return bounds of all terms, shape (n_rows,)."""

    def select(self, rows: IntArray) -> Potential:
        """Return the sum of some terms alone."""


class Rest(Protocol):
    """A cheap potential with gradients, and with Hessians if its capabilities say so."""

    @property
    def dim(self) -> int:
        """Numbers in a position."""

    @property
    def capabilities(self) -> Capabilities:
        """What it offers, ``gradient`` among it."""

    def value(self, positions: FloatArray) -> FloatArray:
        """Return it, shape (n,); infinite outside of the support."""

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return it, shape (n,), and its gradient, shape (n, dim)."""

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return second derivatives, shape (n, dim, dim), with capability ``hessian``."""


@attrs.frozen(eq=False)
class SumAndRest:
    """U(q) = a sum over rows of data + a rest, which need be no quadratic.

    The rest is a prior, the logarithm of a Jacobian, or what all rows have in common. It is
    infinite outside of the support. Expansions leave it as it is.

    Parameters
    ----------
    terms
        The sum; it may have a normal prior of its own.
    rest
        The rest.

    Raises
    ------
    ShapeError
        If they take different numbers of numbers.
    """

    terms: Sum
    rest: Rest

    def __attrs_post_init__(self) -> None:
        if self.terms.dim != self.rest.dim:
            raise ShapeError(
                f"the sum takes {self.terms.dim} numbers and the rest {self.rest.dim}; give a rest "
                "of the same position"
            )

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.terms.dim

    @property
    def n_rows(self) -> int:
        """Number of terms."""
        return self.terms.n_rows

    @property
    def unnormalized(self) -> tuple[str, ...]:
        """What of the sum may lack its normalising constant; a rest is what it is."""
        return unnormalized_of(self.terms)

    @property
    def capabilities(self) -> Capabilities:
        """What both offer, and all that concerns rows."""
        offered = self.terms.capabilities
        shared = offered & self.rest.capabilities & _SHARED
        more = {can.GRADIENT_ALONE} & offered if can.GRADIENT in shared else set()
        more |= {can.HESSIAN_PRODUCT} & offered if can.HESSIAN in shared else set()
        return shared | more | (offered & can.OF_ROWS)

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at positions of shape (n, dim)."""
        return np.asarray(self.terms.value(positions) + self.rest.value(positions))

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient, shape (n, dim)."""
        value, gradient = self.terms.value_and_gradient(positions)
        more, slope = self.rest.value_and_gradient(positions)
        return value + more, gradient + slope

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of U alone, shape (n, dim)."""
        alone: Any = self.terms
        gradient = alone.gradient(positions)
        return np.asarray(gradient + self.rest.value_and_gradient(positions)[1])

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return second derivatives, shape (n, dim, dim)."""
        return np.asarray(self.terms.hessian(positions) + self.rest.hessian(positions))

    def hessian_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the Hessian times u, shape (n, dim), with u in ``vectors (n, dim)``."""
        u = check_vectors(vectors, check_positions(positions, self.dim))
        more = np.einsum("nij,nj->ni", self.rest.hessian(positions), u)
        return np.asarray(self.terms.hessian_product(positions, u) + more)

    def column_moments(self, rows: IntArray | None = None) -> FloatArray | None:
        """Return those of the sum, shape (dim, dim); None where it has none."""
        found: Callable[[IntArray | None], FloatArray] | None
        found = getattr(self.terms, "column_moments", None)
        return None if found is None else found(rows)

    def expand(self, centre: FloatArray, order: int = USUAL_ORDER) -> ExpansionAndRest:
        """Return the expansions of all terms at ``centre (dim,)``, and the rest."""
        return ExpansionAndRest(self.terms.expand(centre, **of_order(order)), self.rest)

    def row_bounds(
        self, factor: FloatArray, order: int = USUAL_ORDER, ball: Ball | None = None
    ) -> FloatArray:
        """Return the bounds of all terms, shape (n_rows,); the rest has no part in them."""
        return self.terms.row_bounds(factor, **of_order(order, ball))

    def select(self, rows: IntArray) -> Potential:
        """Return the sum of some terms alone, without the rest."""
        return self.terms.select(rows)


@attrs.frozen(eq=False)
class ExpansionAndRest(WrappedExpansion):
    """Expansions of all terms at one point, with the rest as it is.

    Parameters
    ----------
    inner
        The expansions.
    rest
        The rest.
    """

    rest: Rest

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim)."""
        return np.asarray(self.inner.value(positions) + self.rest.value(positions))
