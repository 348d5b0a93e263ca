"""The rows of a summed target, with a count of all that are touched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from surrokit.contracts.potential import Potential
from surrokit.contracts.rows import RowDraws, RowExpansion, WrappedExpansion, of_order, with_rows
from surrokit.cost.rejections import Rejections
from surrokit.limits.threads import users_threads
from surrokit.model.calls import Calls
from surrokit.model.outcome import Outcome
from surrokit.types import FloatArray, IntArray


@attrs.frozen(eq=False)
class RecordedExpansion(WrappedExpansion):
    """An expansion that counts ``rows``: one for each pair of a row and a position or move.

    Where the target raises or returns NaN, the result is NaN, which is rejected and counted.

    Parameters
    ----------
    inner
        The target's own expansion.
    n_rows
        Rows of the target.
    calls, rejections
        Count calls, and failures.
    """

    n_rows: int
    calls: Calls
    rejections: Rejections

    def remainders(self, positions: FloatArray, rows: IntArray, owners: IntArray) -> FloatArray:
        """Return D_i(q), shape (m,), and count m rows."""
        return self._count(
            lambda pairs: self.inner.remainders(positions, rows[pairs], owners[pairs]), len(rows)
        )

    def changes(
        self, before: FloatArray, after: FloatArray, rows: IntArray, owners: IntArray
    ) -> FloatArray:
        """Return D_i(q') - D_i(q), shape (m,), and count m rows."""
        return self._count(
            lambda pairs: self.inner.changes(before, after, rows[pairs], owners[pairs]), len(rows)
        )

    def increases(self, before: FloatArray, after: FloatArray) -> FloatArray:
        """Return sum_i max(0, D_i(q') - D_i(q)), shape (n,), and count every row n times."""
        return self._count(
            lambda moves: self.inner.increases(before[moves], after[moves]),
            len(before),
            each=self.n_rows,
        )

    def _count(
        self, function: Callable[[IntArray], FloatArray], n: int, each: int = 1
    ) -> FloatArray:
        def attempt(chosen: FloatArray) -> Outcome:
            found = function(chosen.astype(np.int64))
            return Outcome(n=len(chosen), results=(found,))

        # a batch of numbers of pairs or moves, so that each can be evaluated alone
        numbers = np.arange(n, dtype=np.float64)
        with self.rejections.evaluating("rows", numbers):
            results = self.calls.evaluate("rows", "rows", attempt, numbers, each=each)
        if results is None:
            results = (np.full(n, np.nan),)
        self.rejections.count_nan(results[0])
        return results[0]


class RecordedRows:
    """What a recorded potential does with the rows of a summed target."""

    calls_made: Calls
    rejections: Rejections
    target: Potential

    @property
    def n_rows(self) -> int:
        """Terms of a summed target."""
        return with_rows(self.target).n_rows

    @users_threads()
    def expand(self, centre: FloatArray, order: int = 2) -> RowExpansion:
        """Return the exact expansions of all terms at ``centre (dim,)``, which count rows in turn.

        Third-order terms cost about as much as ``dim / 2`` Hessians, and count as that many.
        """
        self.calls_made.count("hessian", 1 if order == 2 else 1 + self.target.dim // 2)
        inner = with_rows(self.target).expand(centre, **of_order(order))
        return RecordedExpansion(inner, self.n_rows, self.calls_made, self.rejections)

    @users_threads()
    def row_bounds(self, factor: FloatArray, **asked: Any) -> FloatArray:
        """Return the bounds psi of the terms, shape (n_rows,); an order or a ball may be asked."""
        self.calls_made.count("rows", self.n_rows)
        return with_rows(self.target).row_bounds(factor, **asked)

    @users_threads()
    def row_draws(self, factor: FloatArray, **asked: Any) -> RowDraws:
        """Return draws of rows by their bounds."""
        self.calls_made.count("rows", self.n_rows)
        return with_rows(self.target).row_draws(factor, **asked)

    @users_threads()
    def select(self, rows: IntArray) -> Potential:
        """Return the sum of some terms alone, which counts no further calls."""
        self.calls_made.count("rows", len(rows))
        return with_rows(self.target).select(rows)
