"""The outcome of evaluating a batch: results, and why rows failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from surrokit.failures.cause import Cause, Cure
from surrokit.types import FloatArray, IntArray

Results = tuple[FloatArray, ...]


@attrs.frozen(kw_only=True, eq=False)
class Outcome:
    """Results of a batch of n rows.

    Parameters
    ----------
    n
        Rows.
    results
        Arrays of n rows, NaN in those that failed; None if all failed.
    causes
        Row number to what the target raised there.
    """

    n: int
    results: Results | None
    causes: Mapping[int, Exception] = attrs.field(factory=dict)

    @property
    def failed(self) -> IntArray:
        """Rows that raised, or have NaN beside no infinite first number."""
        if self.results is None:
            return np.arange(self.n)
        bad = np.zeros(self.n, dtype=bool)
        bad[list(self.causes)] = True
        for array in self.results:
            bad |= np.isnan(array).reshape(self.n, -1).any(axis=1)
        first = self.results[0]
        if first.ndim == 1:  # U that is infinite is an answer, whatever its gradient
            bad &= ~np.isinf(first)
        return np.flatnonzero(bad)

    def mend(self, rows: IntArray, again: Outcome) -> Outcome:
        """Return the outcome with some rows replaced by those of another attempt."""
        causes = {row: cause for row, cause in self.causes.items() if row not in set(rows)}
        causes |= {int(rows[i]): cause for i, cause in again.causes.items()}
        if again.results is None:
            return attrs.evolve(self, causes=causes)
        old = self.results or tuple(
            np.full((self.n, *array.shape[1:]), np.nan) for array in again.results
        )
        results = tuple(array.copy() for array in old)
        for array, better in zip(results, again.results, strict=True):
            array[rows] = better
        return attrs.evolve(self, results=results, causes=causes)

    def tell(self, cures: Sequence[Cure] = ()) -> Answer:
        """Return the outcome as plain data, with what retries cured."""
        causes = {row: Cause.of(error) for row, error in self.causes.items()}
        return Answer(results=self.results, causes=causes, cures=cures)


@attrs.frozen(kw_only=True, eq=False)
class Answer:
    """The outcome of a batch and of its retries, as plain data.

    Parameters
    ----------
    results
        Arrays of n rows, NaN in those that failed; None if all failed.
    causes
        Row number to why it failed.
    cures
        Failures that a retry cured, of rows or of positions beside them.
    """

    results: Results | None
    causes: Mapping[int, Cause] = attrs.field(factory=dict)
    cures: Sequence[Cure] = ()
