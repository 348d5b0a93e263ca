"""Expansions of terms that are functions of one linear predictor."""

from __future__ import annotations

import attrs
import numpy as np
from scipy import sparse

from surrokit.types import FloatArray, IntArray
from surrokit_problems.design import Design, along, blocks, gram
from surrokit_problems.family import Family


@attrs.frozen(kw_only=True, eq=False)
class LinearExpansion:
    """Expansions of the terms f(x_i . q) at one point, with a normal prior kept as it is.

    Parameters
    ----------
    family
        f and its derivatives.
    design : array or sparse array of shape (n_rows, dim)
        x_i.
    response : ndarray of shape (n_rows,)
        Of every row.
    predictors : ndarray of shape (n_rows,)
        x_i . centre.
    centre, gradient : ndarray of shape (dim,)
        Where the terms were expanded, and the sum of their gradients there.
    hessian : ndarray of shape (dim, dim)
        The sum of their Hessians there.
    level
        U at the centre, prior included, in nats.
    precision
        Of the prior.
    third : ndarray of shape (n_rows,), optional
        Third derivatives of the terms in their predictors, if these are expanded to third order.
    cubic : ndarray of shape (dim (dim + 1) / 2, dim), optional
        A sixth of the sum of the terms' third derivatives there, by pairs of two indices (those of
        unlike ones doubled) and the third.
    """

    family: Family
    design: Design
    response: FloatArray
    predictors: FloatArray
    centre: FloatArray
    gradient: FloatArray
    hessian: FloatArray
    level: float
    precision: float
    third: FloatArray | None = None
    cubic: FloatArray | None = None
    _slope: FloatArray = attrs.field(init=False)
    _bend: FloatArray = attrs.field(init=False)
    _pairs: tuple[IntArray, IntArray] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        # a normal prior is a quadratic as well: of V's derivatives at the centre
        bend = self.hessian + self.precision * np.eye(len(self.centre))
        object.__setattr__(self, "_slope", self.gradient + self.precision * self.centre)
        object.__setattr__(self, "_bend", 0.5 * bend)
        object.__setattr__(self, "_pairs", np.triu_indices(len(self.centre)))

    @classmethod
    def at(
        cls,
        centre: FloatArray,
        family: Family,
        design: Design,
        response: FloatArray,
        precision: float,
    ) -> LinearExpansion:
        """Return the expansions at ``centre (dim,)``: one pass over the rows."""
        predictors = np.empty(len(response))
        level = 0.5 * precision * float(centre @ centre)
        gradient, hessian = np.zeros(len(centre)), np.zeros((len(centre), len(centre)))
        for rows, block in blocks(design, 1):
            e, y = block @ centre, response[rows]
            predictors[rows] = e
            level += float(family.value(e, y).sum())
            gradient += block.T @ family.first(e, y)
            hessian += gram(block, family.second(e, y))
        return cls(
            family=family,
            design=design,
            response=response,
            predictors=predictors,
            centre=centre,
            gradient=gradient,
            hessian=hessian,
            level=level,
            precision=precision,
        )

    def with_third_order(self) -> LinearExpansion:
        """Return the expansions with the terms' third derivatives: one pass over the rows.

        In rows times dim^3 operations, half of them spared, by matrix products.
        """
        assert self.family.third is not None
        third = self.family.third(self.predictors, self.response)
        first, second = self._pairs
        cubic = np.zeros((len(self.centre), len(first)))
        for rows, block in blocks(self.design, len(first)):
            x = block.toarray() if sparse.issparse(block) else block
            cubic += (x * third[rows, None]).T @ (x[:, first] * x[:, second])
        cubic *= np.where(first == second, 1.0, 2.0)
        return attrs.evolve(self, third=third, cubic=np.ascontiguousarray(cubic.T / 6.0))

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
        return np.asarray(self._remaining(rows, steps)[0])

    def changes(
        self, before: FloatArray, after: FloatArray, rows: IntArray, owners: IntArray
    ) -> FloatArray:
        """Return D_i(q') - D_i(q), shape (m,), for pairs of a row and a move."""
        ends = np.stack([before, after])
        ends -= self.centre
        remaining = self._remaining(rows, along(self.design, rows, owners, ends))
        return np.asarray(remaining[1] - remaining[0])

    def increases(self, before: FloatArray, after: FloatArray) -> FloatArray:
        """Return sum_i max(0, D_i(q') - D_i(q)) over all rows, shape (n,)."""
        total = np.zeros(len(before))
        from_here, to_here = (before - self.centre).T, (after - self.centre).T
        for rows, block in blocks(self.design, 2 * len(before)):
            e, y = self.predictors[rows, None], self.response[rows, None]
            third = None if self.third is None else self.third[rows, None]
            change = self._beyond(e, y, block @ to_here, third)
            change -= self._beyond(e, y, block @ from_here, third)
            total += np.maximum(change, 0.0).sum(axis=0)
        return total

    def _remaining(self, rows: IntArray, steps: FloatArray) -> FloatArray:
        third = None if self.third is None else self.third[rows]
        return self._beyond(self.predictors[rows], self.response[rows], steps, third)

    def _beyond(
        self, e: FloatArray, y: FloatArray, steps: FloatArray, third: FloatArray | None
    ) -> FloatArray:
        """Return what the expansions leave out, for steps of the predictors."""
        remaining = self.family.remaining(e, y, steps)
        if third is not None:
            remaining -= third / 6.0 * steps * steps * steps
        return remaining
