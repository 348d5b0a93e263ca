"""Functions over rows of positions, some of which may fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from surrokit.errors import EvaluationError, ShapeError
from surrokit.types import FloatArray

Results = TypeVar("Results", bound=tuple[FloatArray, ...])


def map_rows(
    evaluate: Callable[[], tuple[FloatArray, ...]], function: Callable[..., Results], n: int
) -> Results:
    """Return a function of what an evaluation of n rows gives, also when some rows fail.

    Rows that did succeed were paid for; so if the evaluation raises, the error is raised again
    with the function of their results.

    Raises
    ------
    EvaluationError
        If the evaluation raises one.
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
    """Call a function for each row, and stack each of its results.

    Parameters
    ----------
    evaluate
        Takes a position (dim,), which it may keep or change, and returns arrays.
    positions : ndarray of shape (n, dim)
        Rows to evaluate.

    Raises
    ------
    EvaluationError
        If it raised at some rows; the error carries the results of the others.
    ShapeError
        If the function raises one, since it is then wrong everywhere, or if its results change
        shape between rows.
    """
    rows: dict[int, tuple[FloatArray, ...]] = {}
    causes: dict[int, Exception] = {}
    for i, position in enumerate(positions):
        try:
            rows[i] = evaluate(position.copy())
        except ShapeError:
            raise
        except Exception as error:
            causes[i] = error
    results = stack(rows, len(positions))
    if causes:
        raise EvaluationError(causes, results, n=len(positions))
    return results


def stack(rows: dict[int, tuple[FloatArray, ...]], n: int) -> tuple[FloatArray, ...]:
    """Put the results of single rows, by row number, into arrays of n rows; NaN where none is.

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
    """Return what each evaluation gives, and why rows failed in any of them.

    Raises
    ------
    EvaluationError
        If all rows failed.
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
    """Return a result of n rows, unless some of them failed.

    Raises
    ------
    EvaluationError
        If any did; it carries the result.
    """
    if causes:
        raise EvaluationError(causes, (result,))
    return result
