"""Sums over rows of data, with a remainder beside them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.arguments import check_positions
from surrokit.errors import ShapeError
from surrokit.potentials import (
    USUAL_ORDER,
    GradientPotential,
    Pointwise,
    Potential,
    WrappedExpansion,
    find_within,
    of_order,
    unnormalized_of,
    with_hessian,
    with_rows,
)
from surrokit.targets.bounds import LiftedPotential
from surrokit.types import Capabilities, FloatArray, Pair

_SHARED: Capabilities = frozenset({can.GRADIENT, can.HESSIAN, can.CONVEX})


@attrs.frozen(eq=False)
class SumAndRest:
    """U(q) = a sum over rows of data + a rest, which need be no quadratic.

    The rest is cheap: a prior, the logarithm of a Jacobian, or what all rows have in common, and a
    number ``level`` in nats. It is infinite outside of the support. Expansions leave it as it is.
    The sum may have a normal prior of its own. ShapeError is raised if their positions differ in
    size.
    """

    terms: Any
    rest: GradientPotential
    level: float = attrs.field(default=0.0, kw_only=True)

    def __attrs_post_init__(self) -> None:
        if self.terms.dim != self.rest.dim:
            raise ShapeError(
                f"the sum takes {self.terms.dim} numbers and the rest {self.rest.dim}; give a rest "
                "of the same position"
            )

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return int(self.terms.dim)

    def __getattr__(self, name: str) -> Any:
        """Return what concerns rows, in which the rest has no part."""
        if name not in ("n_rows", "select", "row_bounds", "row_draws", "column_moments"):
            raise AttributeError(name)
        return getattr(self.terms, name)

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
        return frozenset(shared | more | (offered & can.OF_ROWS))

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at positions of shape (n, dim)."""
        value = self.terms.value(positions)
        return np.asarray(value + (self.rest.value(positions) + self.level))

    def value_and_gradient(self, positions: FloatArray) -> Pair:
        """Return U, shape (n,), and its gradient, shape (n, dim)."""
        value, gradient = self.terms.value_and_gradient(positions)
        more, slope = self.rest.value_and_gradient(positions)
        return value + (more + self.level), gradient + slope

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of U alone, shape (n, dim)."""
        return np.asarray(
            self.terms.gradient(positions) + self.rest.value_and_gradient(positions)[1]
        )

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return second derivatives, shape (n, dim, dim)."""
        found = self.terms.hessian(positions)
        return np.asarray(found + with_hessian(self.rest).hessian(positions))

    def expand(self, centre: FloatArray, order: int = USUAL_ORDER) -> ExpansionAndRest:
        """Return the expansions of all terms at ``centre (dim,)``, and the rest."""
        inner = self.terms.expand(centre, **of_order(order))
        return ExpansionAndRest(inner, self.rest, self.level)


@attrs.frozen(eq=False)
class ExpansionAndRest(WrappedExpansion):
    """Expansions of all terms at one point, with the rest as it is."""

    rest: GradientPotential
    level: float

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim)."""
        value = self.inner.value(positions)
        return np.asarray(value + (self.rest.value(positions) + self.level))


@attrs.frozen
class Nothing:
    """A rest of ``dim`` numbers that is 0."""

    dim: int
    capabilities: Capabilities = _SHARED

    def value(self, positions: FloatArray) -> FloatArray:
        """Return zeros, shape (n,)."""
        return np.zeros(len(check_positions(positions, self.dim)))

    def value_and_gradient(self, positions: FloatArray) -> Pair:
        """Return zeros, shapes (n,) and (n, dim)."""
        return self.value(positions), np.zeros(positions.shape)

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return zeros, shape (n, dim, dim)."""
        return np.zeros((len(check_positions(positions, self.dim)), self.dim, self.dim))


def pointwise_of(target: Potential) -> Callable[..., Pointwise] | None:
    """Return what makes log likelihoods and priors of outputs and draws; None where nothing does.

    It is an attribute of a target, or of one inside, or else goes by the rows of a sum.
    """
    found: Any = find_within(target, "pointwise", object)
    return partial(_by_rows, target) if found is None and can.ROWS in target.capabilities else found


def _by_rows(target: Potential, _: Any, draws: FloatArray) -> Pointwise:
    while isinstance(target, LiftedPotential):  # a draw is in the user's coordinates
        target = target.inner
    terms = with_rows(target)
    rows = [-terms.select(np.array([row])).value(draws) for row in range(terms.n_rows)]
    found = np.stack(rows, axis=1)
    return {"row": found}, {"prior": -terms.value(draws) - found.sum(axis=1)}
