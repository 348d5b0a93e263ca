"""What came of evaluating a batch: results, and why rows failed, as plain data."""

from __future__ import annotations

import subprocess
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import attrs
import numpy as np

from surrokit.errors import EvaluationError, ResultTypeError, ShapeError
from surrokit.types import FloatArray, IntArray

NAN = "NaN"
MINUS_INFINITY = "minus infinity"
BROKEN_GRADIENT = "broken gradient"
WRONG_SHAPE = "wrong shape"
WRONG_TYPE = "wrong type"
TIME_OUT = "time-out"
"""Kinds of failures, beside ``exception X`` and ``warning X`` with the name of a class."""


def kind_of(error: Exception) -> str:
    """Return the kind of failure that an exception of a target is."""
    if isinstance(error, TimeoutError | subprocess.TimeoutExpired):
        return TIME_OUT
    if isinstance(error, ShapeError):
        return WRONG_SHAPE
    if isinstance(error, ResultTypeError):
        return WRONG_TYPE
    what = "warning" if isinstance(error, Warning) else "exception"
    return f"{what} {type(error).__name__}"


Place: TypeAlias = tuple[str, int | None]
"""A file and a line."""

_PLACE = "_raised_at"


def place_of(error: Exception) -> Place | None:
    """Return where an exception was raised, or was said to be; None if it never was."""
    if hasattr(error, _PLACE):
        reported: Place | None = getattr(error, _PLACE)
        return reported
    frames = traceback.extract_tb(error.__traceback__)
    return (frames[-1].filename, frames[-1].lineno) if frames else None


def say_place(error: Exception, place: Place | None) -> None:
    """Say where an exception was raised whose traceback is lost or of no use; None: nowhere."""
    with suppress(AttributeError):  # some exceptions take no attributes
        setattr(error, _PLACE, place)


LONGEST = 2000
"""Characters of a report that are kept: a file may hold one for each position."""

_LAST = 400


def report_of(error: Exception) -> str:
    """Return what a target did that raised: the exception, and the line that it comes from."""
    place = place_of(error)
    where = f" ({place[0]}, line {place[1]})" if place else ""
    try:
        message = str(error)
    except Exception:  # of a class of the user's own
        message = "its message cannot be shown"
    return f"raised {type(error).__name__}: {message}{where}"


def _cut(report: str) -> str:
    """Return a report without its middle where it is long; how much is left out is in it."""
    if len(report) <= LONGEST:
        return report
    left_out = len(report) - LONGEST
    return f"{report[: LONGEST - _LAST]} [... {left_out} characters ...] {report[-_LAST:]}"


@attrs.frozen
class Cause:
    """Why a position could not be evaluated.

    Parameters
    ----------
    report
        What the target did; of a long text the first and the last characters.
    """

    kind: str
    report: str = attrs.field(converter=_cut)

    @classmethod
    def of(cls, error: Exception) -> Cause:
        """Return what an exception reports."""
        return cls(kind=kind_of(error), report=report_of(error))


RETURNED_NAN = Cause(kind=NAN, report="returned NaN")


@attrs.frozen(eq=False)
class Cure:
    """A position that failed first, and could be evaluated by a retry.

    Parameters
    ----------
    position : ndarray of shape (width,)
        Where.
    """

    cause: Cause
    position: FloatArray


Results = tuple[FloatArray, ...]

Quantities: TypeAlias = dict[str, FloatArray]
"""Name to an array of shape (n, ...), or to that of one position."""

Given: TypeAlias = tuple[Any, ...]
"""Results, perhaps with a dictionary of quantities behind them."""


@attrs.frozen(kw_only=True, eq=False)
class Outcome:
    """Results of a batch of n rows.

    Parameters
    ----------
    results
        Arrays of n rows, NaN in those that failed; None if all failed.
    causes
        Row number to the exception that was raised there.
    beside
        Row number to quantities beside its results, until they are joined to these.
    """

    n: int
    results: Results | None
    causes: Mapping[int, Exception] = attrs.field(factory=dict)
    beside: Mapping[int, Quantities] = attrs.field(factory=dict)

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
        old = self.results or ()  # which may lack quantities that the other has
        missing = (np.full((self.n, *a.shape[1:]), np.nan) for a in again.results[len(old) :])
        results = (*(array.copy() for array in old), *missing)
        for array, better in zip(results, again.results, strict=False):
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
    """

    results: Results | None
    causes: Mapping[int, Cause] = attrs.field(factory=dict)
    cures: Sequence[Cure] = ()


def stack(rows: Mapping[int, Results], n: int) -> Results:
    """Stack the results of single rows, keyed by row number, into arrays of n rows.

    Rows without a result are NaN; quantities at the end may be missing.

    Raises
    ------
    ShapeError
        If results of one kind differ in shape.
    """
    if not rows:
        return ()
    most = max(rows.values(), key=len)
    results = tuple(np.full((n, *array.shape), np.nan) for array in most)
    for i, arrays in rows.items():
        for result, array in zip(results, arrays, strict=False):
            if array.shape != result.shape[1:]:
                raise ShapeError(
                    f"a function returned shape {result.shape[1:]} at one position and "
                    f"{array.shape} at another; it must always return the same"
                )
            result[i] = array
    return results


def split_rows(given: Given, n: int) -> tuple[Results, dict[int, Quantities]]:
    """Return the results of n rows that were evaluated together, and the quantities of each."""
    if not isinstance(given[-1], dict):
        return given, {}
    return given[:-1], {i: {name: of[i] for name, of in given[-1].items()} for i in range(n)}
