"""Expansions of terms that are functions of one linear predictor."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from surrokit.potentials import USUAL_ORDER
from surrokit.types import FloatArray, IntArray
from surrokit_problems.data.design import Design, along, blocks, gram, products
from surrokit_problems.rows.linear_terms import LinearTerms
from surrokit_problems.rows.normal_prior import NormalPrior
from surrokit_problems.rows.third_derivatives import third_derivatives

_STEPS_AT_ONCE = 16384  # more, and what is made of them leaves the processor's cache


@attrs.frozen(kw_only=True, eq=False)
class LinearExpansion:
    """Expansions of the terms w_i f(x_i . q + o_i) at one point, a normal prior kept as it is.

    Parameters
    ----------
    terms
        Family, responses, offsets and weights.
    design : array or sparse array of shape (n_rows, dim)
        x_i.
    predictors : ndarray of shape (n_rows,)
        x_i . centre + o_i.
    centre, gradient : ndarray of shape (dim,)
        Where the terms were expanded, and the sum of their gradients there.
    hessian : ndarray of shape (dim, dim)
        The sum of their Hessians there.
    level
        U at the centre, prior included, in nats.
    prior
        Of the coefficients.
    cubic : ndarray of shape (dim (dim + 1) / 2, dim), optional
        A sixth of the sum of the terms' third derivatives there, by pairs of two indices (those of
        unlike ones doubled) and the third; if the terms are expanded to third order.
    """

    terms: LinearTerms
    design: Design
    predictors: FloatArray
    centre: FloatArray
    gradient: FloatArray
    hessian: FloatArray
    level: float
    prior: NormalPrior
    cubic: FloatArray | None = None
    _slope: FloatArray = attrs.field(init=False)
    _bend: FloatArray = attrs.field(init=False)
    _pairs: tuple[IntArray, IntArray] = attrs.field(init=False)
    _prepared: tuple[FloatArray, ...] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        # a normal prior is a quadratic as well: of V's derivatives at the centre
        bend = self.hessian + np.diag(self.prior.precision)
        object.__setattr__(self, "_slope", self.gradient + self.prior.gradient(self.centre))
        object.__setattr__(self, "_bend", 0.5 * bend)
        object.__setattr__(self, "_pairs", np.triu_indices(len(self.centre)))
        object.__setattr__(self, "_prepared", self.terms.prepare(self.predictors))

    @classmethod
    def at(
        cls, centre: FloatArray, terms: LinearTerms, design: Design, prior: NormalPrior
    ) -> LinearExpansion:
        """Return the expansions at ``centre (dim,)``: one pass over the rows."""
        predictors = np.empty(len(terms.response))
        level = float(prior.value(centre[None])[0]) + terms.constant
        gradient, hessian = np.zeros(len(centre)), np.zeros((len(centre), len(centre)))
        for rows, block in blocks(design, 1):
            e = predictors[rows] = terms.predictors(block @ centre, rows)
            level += float(terms.value(e, rows).sum())
            gradient += block.T @ terms.first(e, rows)
            hessian += gram(block, terms.second(e, rows))
        return cls(
            terms=terms,
            design=design,
            predictors=predictors,
            centre=centre,
            gradient=gradient,
            hessian=hessian,
            level=level,
            prior=prior,
        )

    def with_third_order(self) -> LinearExpansion:
        """Return the expansions with the terms' third derivatives: one pass over the rows.

        In about a third of rows times dim^3 operations, by matrix products.
        """
        weights = self.terms.third(self.predictors, slice(None))
        first, second = self._pairs
        cubic = third_derivatives(self.design, weights)[first, second]
        cubic *= np.where(first == second, 1.0, 2.0)[:, None] / 6.0
        return attrs.evolve(self, cubic=cubic)

    @property
    def third(self) -> FloatArray | None:
        """Sum of third derivatives at the centre, (dim, dim, dim); None if to second order."""
        if self.cubic is None:
            return None
        first, second = self._pairs
        dim = len(self.centre)
        found = np.empty((dim, dim, dim))
        halves = 6.0 * self.cubic * np.where(first == second, 1.0, 0.5)[:, None]
        found[first, second] = found[second, first] = halves
        return found

    @property
    def order(self) -> int:
        """To which the terms are expanded."""
        return USUAL_ORDER if self.cubic is None else 3

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim)."""
        h = positions - self.centre
        slopes = h @ self._bend
        slopes += self._slope
        if self.cubic is not None:
            first, second = self._pairs
            slopes += (h[:, first] * h[:, second]) @ self.cubic
        return np.asarray(np.einsum("ij,ij->i", slopes, h) + self.level)

    def remainders(self, positions: FloatArray, rows: IntArray, owners: IntArray) -> FloatArray:
        """Return D_i(q), shape (m,), for pairs of a row and a position."""
        steps = along(self.design, rows, owners, (positions - self.centre)[None])
        return np.asarray(self._of_rows(rows, steps)[0])

    def changes(
        self, before: FloatArray, after: FloatArray, rows: IntArray, owners: IntArray
    ) -> FloatArray:
        """Return D_i(q') - D_i(q), shape (m,), for pairs of a row and a move."""
        ends = np.array([before, after])
        ends -= self.centre
        remaining = self._of_rows(rows, along(self.design, rows, owners, ends))
        return np.asarray(remaining[1] - remaining[0])

    def increases(self, before: FloatArray, after: FloatArray) -> FloatArray:
        """Return sum_i max(0, D_i(q') - D_i(q)) over all rows, shape (n,)."""
        total = np.zeros(len(before))
        ends = np.concatenate([before, after])
        ends -= self.centre
        for rows, block in blocks(self.design, len(ends)):
            prepared = [each[rows] for each in self._prepared]
            here, there = self._remaining(prepared, products(block, ends)).reshape(
                2, len(total), -1
            )
            there -= here
            total += np.maximum(there, 0.0, out=there).sum(axis=1)
        return total

    def _of_rows(self, rows: IntArray, steps: FloatArray) -> FloatArray:
        return self._remaining([each.take(rows) for each in self._prepared], steps)

    def _remaining(self, prepared: Sequence[FloatArray], steps: FloatArray) -> FloatArray:
        """Return what the expansions leave out, shape (k, m), for steps of the predictors."""
        if steps.size <= _STEPS_AT_ONCE:
            return self.terms.remaining(prepared, steps, self.order)
        found = np.empty(steps.shape)
        width = max(1, _STEPS_AT_ONCE // len(steps))
        for start in range(0, steps.shape[1], width):
            part = slice(start, start + width)
            some = [each[part] for each in prepared]
            found[:, part] = self.terms.remaining(some, steps[:, part], self.order)
        return found
