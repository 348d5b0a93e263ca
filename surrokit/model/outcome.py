"""What came of evaluating a batch: results, and why rows failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from surrokit.errors import EvaluationError, ResultTypeError, ShapeError
from surrokit.model.cause import Cause, Cure
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
        Row number to the exception that was raised there.
    """

    n: int
    results: Results | None
    causes: Mapping[int, Exception] = attrs.field(factory=dict)

    @classmethod
    def of_rows(
        cls, rows: Mapping[int, Results], causes: Mapping[int, Exception], n: int
    ) -> Outcome:
        """Return the outcome of rows that were evaluated one by one.

        Raises
        ------
        ShapeError
            If results of one kind differ in shape.
        """
        return cls(n=n, results=stack(rows, n) or None, causes=causes)

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

    def unwrap(self) -> Results:
        """Return the results, if no row raised.

        Raises
        ------
        ShapeError, ResultTypeError
            If no row succeeded and one raised such an error: the function is then wrong everywhere.
        EvaluationError
            If some rows raised.
        """
        if self.results is None:
            self.raise_if_wrong()
        if self.causes:
            raise EvaluationError(dict(self.causes), self.results or (), n=self.n)
        assert self.results is not None
        return self.results

    def raise_if_wrong(self) -> None:
        """Raise the first error of a wrong shape or type, if there is one."""
        for cause in self.causes.values():
            if isinstance(cause, ShapeError | ResultTypeError):
                raise cause

    def to_answer(self, cures: Sequence[Cure] = ()) -> Answer:
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
        Failures that a retry cured.
    """

    results: Results | None
    causes: Mapping[int, Cause] = attrs.field(factory=dict)
    cures: Sequence[Cure] = ()


def stack(rows: Mapping[int, Results], n: int) -> Results:
    """Stack the results of single rows, keyed by row number, into arrays of n rows.

    Rows without a result are NaN.

    Raises
    ------
    ShapeError
        If results of one kind differ in shape.
    """
    if not rows:
        return ()
    results = tuple(np.full((n, *array.shape), np.nan) for array in next(iter(rows.values())))
    for i, arrays in rows.items():
        for result, array in zip(results, arrays, strict=True):
            if array.shape != result.shape[1:]:
                raise ShapeError(
                    f"a function returned shape {result.shape[1:]} at one position and "
                    f"{array.shape} at another; it must always return the same"
                )
            result[i] = array
    return results
