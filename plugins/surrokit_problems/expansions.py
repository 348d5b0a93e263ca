"""Expansions of all terms at one point, with a normal prior kept as it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from surrokit.contracts.rows import USUAL_ORDER
from surrokit.types import FloatArray, IntArray
from surrokit_problems.design import Design, along, blocks, products
from surrokit_problems.terms import LinearTerms, NormalPrior

_STEPS_AT_ONCE = 16384  # more, and what is made of them leaves the processor's cache


@attrs.frozen(kw_only=True, eq=False)
class Expansion(ABC):
    """Expansions that keep to :class:`surrokit.contracts.rows.RowExpansion`.

    Parameters
    ----------
    centre, gradient : ndarray of shape (dim,)
        Where the terms were expanded, and the sum of their gradients there.
    hessian : ndarray of shape (dim, dim)
        The sum of their Hessians there.
    level
        U at the centre, prior included, in nats.
    prior
        Of the coefficients.
    third : ndarray of shape (dim, dim, dim), optional
        The sum of third derivatives there, if the terms are expanded to third order.
    """

    centre: FloatArray
    gradient: FloatArray
    hessian: FloatArray
    level: float
    prior: NormalPrior
    third: FloatArray | None = None
    _slope: FloatArray = attrs.field(init=False)
    _bend: FloatArray = attrs.field(init=False)
    _pairs: tuple[IntArray, IntArray] = attrs.field(init=False)
    _cubic: FloatArray | None = attrs.field(init=False)

    # a normal prior is a quadratic as well: of V's derivatives at the centre
    @_slope.default
    def _with_prior(self) -> FloatArray:
        return self.gradient + self.prior.gradient(self.centre)

    @_bend.default
    def _half_with_prior(self) -> FloatArray:
        return np.asarray(0.5 * (self.hessian + np.diag(self.prior.precision)))

    @_pairs.default
    def _pairs_of_indices(self) -> tuple[IntArray, IntArray]:
        return np.triu_indices(len(self.centre))

    @_cubic.default
    def _by_pairs(self) -> FloatArray | None:
        """Return a sixth, by pairs of two indices (those of unlike ones doubled) and the third."""
        if self.third is None:
            return None
        first, second = self._pairs
        twice = np.where(first == second, 1.0, 2.0)[:, None]
        return np.asarray(self.third[first, second] * twice / 6.0)

    @property
    def order(self) -> int:
        """To which the terms are expanded."""
        return USUAL_ORDER if self.third is None else 3

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim)."""
        h = positions - self.centre
        slopes = h @ self._bend
        slopes += self._slope
        if self._cubic is not None:
            first, second = self._pairs
            slopes += (h[:, first] * h[:, second]) @ self._cubic
        return np.asarray(np.einsum("ij,ij->i", slopes, h) + self.level)

    def remainders(self, positions: FloatArray, rows: IntArray, owners: IntArray) -> FloatArray:
        """Return D_i(q), shape (m,), for pairs of a row and a position."""
        return np.asarray(self._of_pairs([positions], rows, owners)[0])

    def changes(
        self, before: FloatArray, after: FloatArray, rows: IntArray, owners: IntArray
    ) -> FloatArray:
        """Return D_i(q') - D_i(q), shape (m,), for pairs of a row and a move."""
        here, there = self._of_pairs([before, after], rows, owners)
        return np.asarray(there - here)

    def increases(self, before: FloatArray, after: FloatArray) -> FloatArray:
        """Return sum_i max(0, D_i(q') - D_i(q)) over all rows, shape (n,)."""
        total = np.zeros(len(before))
        for found in self._of_all(np.concatenate([before, after])):
            here, there = found[: len(total)], found[len(total) :]
            there -= here
            total += np.maximum(there, 0.0, out=there).sum(axis=1)
        return total

    @abstractmethod
    def _of_pairs(
        self, ends: Sequence[FloatArray], rows: IntArray, owners: IntArray
    ) -> Sequence[FloatArray]:
        """Return remainders of pairs, shape (k, m), at k sets of positions (n, dim)."""

    @abstractmethod
    def _of_all(self, positions: FloatArray) -> Iterator[FloatArray]:
        """Yield remainders at positions (n, dim) for blocks of rows, shape (n, rows)."""


@attrs.frozen(kw_only=True, eq=False)
class LinearExpansion(Expansion):
    """Expansions of the terms w_i f(x_i . q + o_i).

    Parameters
    ----------
    terms
        Family, responses, offsets and weights.
    design : array or sparse array of shape (n_rows, dim)
        x_i.
    predictors : ndarray of shape (n_rows,)
        x_i . centre + o_i.
    """

    terms: LinearTerms
    design: Design
    predictors: FloatArray
    _prepared: tuple[FloatArray, ...] = attrs.field(init=False)

    @_prepared.default
    def _prepare(self) -> tuple[FloatArray, ...]:
        return self.terms.prepare(self.predictors)

    def _of_pairs(
        self, ends: Sequence[FloatArray], rows: IntArray, owners: IntArray
    ) -> Sequence[FloatArray]:
        steps = np.array(ends)
        steps -= self.centre
        prepared = [each.take(rows) for each in self._prepared]
        return list(self._remaining(prepared, along(self.design, rows, owners, steps)))

    def _of_all(self, positions: FloatArray) -> Iterator[FloatArray]:
        steps = positions - self.centre
        for rows, block in blocks(self.design, len(steps)):
            prepared = [each[rows] for each in self._prepared]
            yield self._remaining(prepared, products(block, steps))

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
