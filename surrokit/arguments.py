"""Checks of what users give: functions, flags and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from surrokit.errors import ConfigurationError, ShapeError
from surrokit.types import FloatArray


def check_functions(**functions: object) -> None:
    """Refuse an argument that is neither a function nor None.

    Raises
    ------
    ConfigurationError
        If an argument is neither; the message names it.
    """
    for name, function in functions.items():
        if function is not None and not callable(function):
            raise ConfigurationError(
                f"{name} must be a function of a position, got {function!r}; pass the function "
                "itself, without calling it"
            )


def check_flag(name: str, value: object) -> None:
    """Refuse a value that is neither True nor False.

    Raises
    ------
    ConfigurationError
        If the value is neither.
    """
    if not isinstance(value, bool | np.bool_):
        raise ConfigurationError(f"{name} must be True or False, got {value!r}")


def check_methods(name: str, given: object, methods: tuple[str, ...], such_as: str) -> None:
    """Refuse an object without the methods that will be called, or a class in place of an object.

    Parameters
    ----------
    name
        Name of the argument.
    given
        Object to check; None passes.
    methods
        Names of the methods.
    such_as
        Example of a suitable object, for the message.

    Raises
    ------
    ConfigurationError
        If a method is missing, or a class is given.
    """
    missing = [method for method in methods if not callable(getattr(given, method, None))]
    if given is not None and (missing or isinstance(given, type)):
        raise ConfigurationError(
            f"{name} must be an object with {' and '.join(methods)}, such as {such_as}, got "
            f"{given!r}"
        )


def numbers(what: str, value: object) -> FloatArray:
    """Return numbers in double precision, copied only where necessary; NaN where a mask hides them.

    Text is refused even where it spells a number, and None too, which NumPy would read as NaN.

    Parameters
    ----------
    what
        Name of the numbers, for the message.
    value
        Number, list, or anything else that NumPy turns into an array.

    Raises
    ------
    ShapeError
        If the value holds anything but real numbers, or lists of different lengths.
    """
    try:
        array = np.asarray(unmasked(value))
        if array.dtype.kind in "USTMm" or (array.dtype.kind == "O" and _foreign(array)):
            raise TypeError
        if array.dtype.kind == "c":
            raise TypeError
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ShapeError(
            f"{what} must be numbers, equally many in each row, got {_shorten(value)}"
        ) from error


def unmasked(value: Any) -> Any:
    """Return a value with NaN in place of numbers that a mask hides, which are missing.

    NumPy would take the numbers behind the mask.

    Parameters
    ----------
    value
        Anything; masked arrays are looked for in lists and tuples, too.
    """
    if isinstance(value, np.ma.MaskedArray):
        if not np.ma.is_masked(value):
            return value.data
        if value.dtype.kind not in "iubfcO":
            return value.data
        whole: Any = value.astype(np.float64) if value.dtype.kind in "iub" else value
        return whole.filled(np.nan)
    if isinstance(value, list | tuple):
        nested = any(isinstance(item, list | tuple | np.ma.MaskedArray) for item in value)
        return [unmasked(item) for item in value] if nested else value
    return value


def _foreign(array: np.ndarray) -> bool:
    return any(item is None or isinstance(item, str | bytes) for item in array.flat)


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]} ..."


def matched(values: Any, name: str, like: Any, whose: str) -> Any:
    """Return values with a row for each of another array's, matched by index where both have one.

    Parameters
    ----------
    values
        A pandas Series or frame, or anything else, which is returned as it is.
    name
        What it is called, for the message.
    like
        The array whose rows these are to be.
    whose
        What that is called, for the message.

    Raises
    ------
    ConfigurationError
        If both have an index, and the rows of one are not all among those of the other.
    """
    own, other = _index(values), _index(like)
    if own is None or other is None or own.equals(other):
        return values
    if own.is_unique and other.is_unique and other.isin(own).all():
        return values.reindex(other)
    raise ConfigurationError(
        f"{name} and {whose} have different indices, so that their rows cannot be matched; give "
        f"{name} the index of {whose}, or its .to_numpy() if rows are in the same order"
    )


def matched_rows(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return arrays with the same rows, each matched to the first of them that has an index.

    Parameters
    ----------
    values
        Arrays by what they are called; what is no pandas object is returned as it is.

    Raises
    ------
    ConfigurationError
        As :func:`matched`.
    """
    first = next((name for name, each in values.items() if _index(each) is not None), None)
    if first is None:
        return dict(values)
    return {name: matched(each, name, values[first], first) for name, each in values.items()}


def _index(values: Any) -> Any:
    """Return the index of a pandas object; None of anything else."""
    index = getattr(values, "index", None)
    known = all(hasattr(index, name) for name in ("equals", "isin", "is_unique"))
    return index if known and hasattr(values, "iloc") and hasattr(values, "to_numpy") else None
