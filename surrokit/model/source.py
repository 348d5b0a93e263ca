"""A user's functions of one position, and how rows of positions are evaluated by them."""

from __future__ import annotations

import signal
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol, TypeAlias

import attrs
import numpy as np

from surrokit.arguments import unmasked
from surrokit.errors import EvaluationError, ShapeError
from surrokit.limits import current_meter
from surrokit.model.outcome import Given, Outcome, Quantities, Results, split_rows
from surrokit.types import FloatArray


def isolate(given: Any) -> Any:
    """Return a copy of an array, or of all arrays in a tuple; anything else as it is.

    Numbers that a mask hides become NaN.
    """
    if isinstance(given, tuple):
        return tuple(isolate(each) for each in given)
    return np.array(unmasked(given)) if isinstance(given, np.ndarray) else given


@attrs.frozen(eq=False)
class Isolated:
    """An object of a user's whose methods are called with copies, and whose results are copies.

    What a method does to its arguments, or later to what it has returned, then changes nothing.
    """

    inner: Any

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the object."""
        if name.startswith("_") or name == "inner":
            raise AttributeError(name)
        found = getattr(self.inner, name)
        return partial(_call, found) if callable(found) else found


def _call(method: Callable[..., Any], *given: Any, **named: Any) -> Any:
    named = {name: isolate(each) for name, each in named.items()}
    return isolate(method(*map(isolate, given), **named))


class Source(Protocol):
    """A user's functions, by the names of :mod:`surrokit.capabilities`.

    Worker processes get a copy of it.
    """

    def at(self, what: str, rows: FloatArray) -> Given:
        """Return arrays for one row, or for rows if the functions take them together.

        A dictionary of quantities may come last.

        Parameters
        ----------
        rows : ndarray of shape (width,) or (n, width)
            The position, and whatever else goes with it; the source may keep or change it.
        """
        ...


def in_a_batch_of_one(source: Source, what: str, row: FloatArray) -> Given:
    """Return arrays for one row, from a source that takes rows together."""
    try:
        results, beside = split_rows(source.at(what, row[None]), 1)
        return (*(array[0] for array in results), *beside.values())
    except EvaluationError as error:
        raise error.causes[0] from None  # as if there were no batch


EachRow: TypeAlias = Callable[[Source, str, FloatArray], Outcome]
"""Evaluates a source at rows (n, width), in this process or elsewhere, as
:func:`one_after_another` does."""


def row_by_row(
    evaluate: Callable[[FloatArray], Given],
    positions: FloatArray,
    progress: Callable[[int], None] | None = None,
) -> Outcome:
    """Call a function at each row, and stack its results.

    Rows whose results have other shapes than those of most rows have failed.

    Parameters
    ----------
    evaluate
        Takes a position (dim,), which it may keep or change, and returns arrays, perhaps with a
        dictionary of quantities behind them.
    positions : ndarray of shape (n, dim)
        Rows to evaluate.
    progress
        Takes the number of rows that are left after each.

    Raises
    ------
    ShapeError
        If no shape of results is that of most rows.
    """
    rows: dict[int, Results] = {}
    beside: dict[int, Quantities] = {}
    causes: dict[int, Exception] = {}
    n = left = len(positions)
    for i, position in enumerate(positions.copy()):
        try:
            found = evaluate(position)
            if isinstance(found[-1], dict):
                found, beside[i] = found[:-1], found[-1]
            rows[i] = found
        except BaseException as error:
            causes[i] = as_failure(error)
        left -= 1
        if progress is not None and left:
            progress(left)
    if not causes:
        try:
            results = tuple(map(np.array, zip(*rows.values(), strict=True)))
            return Outcome(n=n, results=results, beside=beside)
        except ValueError:  # shapes differ
            pass
    odd = _odd_shapes(rows)
    if odd:
        rows = {i: row for i, row in rows.items() if i not in odd}
        causes |= odd
    return attrs.evolve(Outcome.of_rows(rows, causes, n), beside=beside)


def one_after_another(source: Source, what: str, rows: FloatArray) -> Outcome:
    """Evaluate a source at each row, in order, as :func:`row_by_row` does."""
    return row_by_row(partial(source.at, what), rows, current_meter().left)


def as_failure(error: BaseException) -> Exception:
    """Return what a user's function raised as an exception: exits are failures like others.

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


def _odd_shapes(rows: Mapping[int, Results]) -> dict[int, Exception]:
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
