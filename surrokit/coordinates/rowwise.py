"""Functions over rows of positions, some of which may fail."""

from __future__ import annotations

import signal
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias, TypeVar

import numpy as np

from surrokit.errors import EvaluationError, ResultTypeError, ShapeError
from surrokit.limits.meter import current_meter
from surrokit.types import FloatArray

Results = TypeVar("Results", bound=tuple[FloatArray, ...])


class RowSource(Protocol):
    """What is evaluated at one position at a time, such as a target of plain functions."""

    def at(self, what: str, row: FloatArray) -> tuple[FloatArray, ...]:
        """Return arrays for one row, which it may keep or change.

        Parameters
        ----------
        what
            Which of its results.
        row : ndarray of shape (width,)
            The position, and whatever else goes with it.
        """
        ...


EachRow: TypeAlias = Callable[[RowSource, str, FloatArray], tuple[FloatArray, ...]]
"""Evaluates a source at rows (n, width), in this process or elsewhere, as
:func:`one_after_another` does."""


def map_rows(
    evaluate: Callable[[], tuple[FloatArray, ...]], function: Callable[..., Results], n: int
) -> Results:
    """Apply a function to the results of evaluating n rows, even where some rows fail.

    Raises
    ------
    EvaluationError
        If the evaluation raises one. The new error carries the function of the results of the
        successful rows, which are paid for.
    """
    try:
        results = evaluate()
    except EvaluationError as error:
        known = function(*error.results) if error.results else ()
        raise EvaluationError(error.causes, known, n=n) from error
    return function(*results)


def row_by_row(
    evaluate: Callable[[FloatArray], tuple[FloatArray, ...]], positions: FloatArray
) -> tuple[FloatArray, ...]:
    """Call a function at each row, and stack its results.

    Parameters
    ----------
    evaluate
        Takes a position (dim,), which it may keep or change, and returns arrays.
    positions : ndarray of shape (n, dim)
        Rows to evaluate.

    Raises
    ------
    EvaluationError
        If the function raises at some rows; the error carries the results of the others.
    ShapeError, ResultTypeError
        If the function itself raises one, and succeeds at no row: it is then wrong everywhere. Also
        if no shape of results is that of most rows. Where one is, rows with others have failed.
    """
    rows: dict[int, tuple[FloatArray, ...]] = {}
    causes: dict[int, Exception] = {}
    for i, position in enumerate(positions):
        try:
            rows[i] = evaluate(position.copy())
        except BaseException as error:
            causes[i] = as_failure(error)
    odd = _odd_shapes(rows)
    rows, causes = {i: row for i, row in rows.items() if i not in odd}, {**causes, **odd}
    results = stack(rows, len(positions))
    if not rows:
        _raise_if_wrong(causes)
    if causes:
        raise EvaluationError(causes, results, n=len(positions))
    return results


def one_after_another(source: RowSource, what: str, rows: FloatArray) -> tuple[FloatArray, ...]:
    """Evaluate a source at each row, in order; raises as :func:`row_by_row` does."""
    meter, left = current_meter(), len(rows)

    def evaluate(row: FloatArray) -> tuple[FloatArray, ...]:
        nonlocal left
        try:
            return source.at(what, row)
        finally:
            left -= 1
            meter.left(left)

    return row_by_row(evaluate, rows)


def as_failure(error: BaseException) -> Exception:
    """Return what a user's function raised as an exception: exits are failures like others.

    Parameters
    ----------
    error
        What it raised.

    Raises
    ------
    BaseException
        The error itself if it is an interrupt, the end of a run, or an exit by which a handler of
        signals ends the process.
    """
    if isinstance(error, Exception):
        return error
    if not isinstance(error, SystemExit) or _is_from_signal(error):
        raise error
    code = "" if error.code is None else repr(error.code)
    what = f"a function called sys.exit({code}), which would end the whole process"
    return RuntimeError(what).with_traceback(error.__traceback__)


def _is_from_signal(error: BaseException) -> bool:
    """Return whether an error was raised by a handler of signals, whatever it interrupted."""
    handlers = map(signal.getsignal, signal.valid_signals())
    codes = {getattr(handler, "__code__", None) for handler in handlers} - {None}
    return any(frame.f_code in codes for frame, _ in traceback.walk_tb(error.__traceback__))


def _odd_shapes(rows: Mapping[int, tuple[FloatArray, ...]]) -> dict[int, Exception]:
    """Return the rows whose results have other shapes than those of most rows, if most agree."""
    shapes = {i: tuple(array.shape for array in row) for i, row in rows.items()}
    if len(set(shapes.values())) < 2:
        return {}
    (usual, most), (_, fewer) = Counter(shapes.values()).most_common(2)
    if most == fewer:
        return {}
    return {
        i: ShapeError(
            f"a function returned shape {_first_odd(shape, usual)} at one position and "
            f"{_first_odd(usual, shape)} at others; it must always return the same"
        )
        for i, shape in shapes.items()
        if shape != usual
    }


def _first_odd(
    shapes: tuple[tuple[int, ...], ...], others: tuple[tuple[int, ...], ...]
) -> tuple[int, ...]:
    return next(one for one, other in zip(shapes, others, strict=True) if one != other)


def _raise_if_wrong(causes: dict[int, Exception]) -> None:
    """Raise the first error of a wrong result, from one that tells what each row raised."""
    for cause in causes.values():
        if isinstance(cause, ShapeError | ResultTypeError):
            raise cause from EvaluationError(causes, (), n=len(causes))


def stack(rows: dict[int, tuple[FloatArray, ...]], n: int) -> tuple[FloatArray, ...]:
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


def despite_failures(
    *evaluations: Callable[[], FloatArray],
) -> tuple[list[FloatArray], dict[int, Exception]]:
    """Return the result of each evaluation, and the exceptions of all failed rows by row number.

    Raises
    ------
    EvaluationError
        If all rows of an evaluation fail.
    """
    results: list[FloatArray] = []
    causes: dict[int, Exception] = {}
    for evaluate in evaluations:
        try:
            results.append(evaluate())
        except EvaluationError as error:
            if not error.results:
                raise
            causes |= error.causes
            results.append(error.results[-1])
    return results, causes


def unless_failed(result: FloatArray, causes: dict[int, Exception]) -> FloatArray:
    """Return a result of n rows, unless some rows failed.

    Raises
    ------
    EvaluationError
        If a row failed; the error carries the result.
    """
    if causes:
        raise EvaluationError(causes, (result,))
    return result
