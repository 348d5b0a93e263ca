"""Settings as plain data, which files can hold, and which of them a file may give."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Literal, NewType, Union, get_args, get_origin

import numpy as np
import numpy.typing as npt

from surrokit.errors import SurrokitError
from surrokit.registry.catalogue import Catalogue
from surrokit.registry.composer import name_and_settings
from surrokit.registry.kinds import KINDS, Kind
from surrokit.settings import is_number

LARGEST = 1_000_000
"""Largest whole number that a file may name, of nodes, chains, steps or anything else that takes
memory or time; seeds may be larger. A part with a larger one has to be given again."""

_ARRAY_LIKE = frozenset(get_args(npt.ArrayLike))
_OF_NUMBERS = re.compile(r"[<>=|]?[biuf]\d{1,2}")


def to_plain(value: Any) -> Any:
    """Return a setting as JSON can hold it.

    Parameters
    ----------
    value
        The setting.

    Raises
    ------
    TypeError
        If it is an object that JSON cannot hold.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return to_plain(value.item())
    if isinstance(value, np.ndarray) and value.dtype.kind in "bif":
        return {"array": value.tolist(), "dtype": value.dtype.str}
    if isinstance(value, tuple):
        return {"tuple": [to_plain(each) for each in value]}
    if isinstance(value, list):
        return [to_plain(each) for each in value]
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {"dict": {name: to_plain(each) for name, each in value.items()}}
    raise TypeError(f"a {type(value).__name__} is no plain data")


def can_write(value: Any) -> bool:
    """Return whether a setting is plain data."""
    try:
        to_plain(value)
    except TypeError:
        return False
    return True


def from_plain(data: Any) -> Any:
    """Return a setting from what :func:`to_plain` made of it."""
    if isinstance(data, list):
        return [from_plain(each) for each in data]
    if not isinstance(data, dict):
        return data
    if "tuple" in data:
        return tuple(from_plain(each) for each in data["tuple"])
    if "array" in data:
        return numbers_of(data["array"], data["dtype"])
    return {name: from_plain(each) for name, each in data["dict"].items()}


def numbers_of(data: Any, dtype: str) -> npt.NDArray[Any]:
    """Return an array of numbers from plain data.

    Raises
    ------
    ValueError
        If ``dtype`` is not the name of a type of numbers.
    """
    if not _OF_NUMBERS.fullmatch(dtype):
        raise ValueError(f"{dtype!r} is no type of numbers")
    return np.array(data, dtype=dtype)


# --- what a file may give ---


def is_data(name: str, value: Any, catalogue: Catalogue) -> bool:
    """Return whether a file may hold a part of a run, or a setting of its sampler.

    It may hold a registered name, with settings that are plain data by the types that the part
    declares. It may not hold an object, or text for which a part declares no choice of words: that
    may name what is to be imported, or a file to be read.

    Parameters
    ----------
    name
        A kind of part, or the name of a setting that takes a number.
    value
        Name, pair of name and settings, number, or anything else.
    catalogue
        Where names are looked up.

    """
    if name not in KINDS:
        return value is None or is_number(value)
    if value is None or isinstance(value, str):
        return True
    if not (isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], Mapping)):
        return False
    found = name_and_settings(value)
    return found is not None and _are_data(name, *found, catalogue)


def _are_data(kind: Kind, name: str, settings: Mapping[str, Any], catalogue: Catalogue) -> bool:
    entry = catalogue.entries.get((kind, name))
    if entry is None or not settings:  # of an unknown name nothing is made
        return True
    try:
        known, parts = entry.settings(), entry.component.parts
    except SurrokitError:  # it cannot be imported, so that it declares nothing
        return False
    return all(
        is_data(parts[each].kind, value, catalogue)
        if each in parts
        else each in known
        and is_of(value, known[each].takes)
        and (is_bounded(value) or each == "seed")
        for each, value in settings.items()
    )


def is_bounded(value: Any, largest: int = LARGEST) -> bool:
    """Return whether no whole number in plain data is larger than a file may name."""
    if isinstance(value, Mapping):
        return all(is_bounded(each, largest) for each in value.values())
    if isinstance(value, tuple | list):
        return all(is_bounded(each, largest) for each in value)
    return not isinstance(value, int | np.integer) or abs(int(value)) <= largest


Text = NewType("Text", str)
"""Any text, of what is only shown; as ``str`` a type is no plain data."""


def is_of(value: Any, declared: Any) -> bool:
    """Return whether a value is plain data of a declared type.

    Parameters
    ----------
    value
        The value.
    declared
        The type. A dictionary of names and types stands for one that has these, if it has them.
    """
    if isinstance(declared, Mapping):
        return isinstance(value, Mapping) and all(
            is_of(value[name], of) for name, of in declared.items() if name in value
        )
    if declared is Text:
        return isinstance(value, str)
    if isinstance(value, np.generic):
        value = value.item()
    origin, inside = get_origin(declared), get_args(declared)
    if declared is Any:  # numbers name nothing
        return isinstance(value, bool) or _are_numbers(value)
    if origin in (Union, UnionType):
        if _ARRAY_LIKE and set(inside) >= _ARRAY_LIKE and _are_numbers(value):
            return True
        return any(is_of(value, each) for each in inside)
    if origin is Literal:
        return any(type(value) is type(word) and value == word for word in inside)
    if declared in (bool, int, float, NoneType):
        if isinstance(value, bool):
            return declared is bool
        return isinstance(value, (int, float) if declared is float else declared)
    if declared is np.ndarray or origin is np.ndarray:
        return _are_numbers(value)
    if origin is tuple and isinstance(value, tuple | list):
        if len(inside) == 2 and inside[1] is ...:
            return all(is_of(each, inside[0]) for each in value)
        return len(inside) == len(value) and all(map(is_of, value, inside))
    if origin in (list, Sequence) and isinstance(value, tuple | list):
        return all(is_of(each, inside[0]) for each in value)
    if origin in (dict, Mapping) and isinstance(value, Mapping):
        return all(isinstance(name, str) and is_of(each, inside[1]) for name, each in value.items())
    return False


def _are_numbers(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_are_numbers, value))
    return is_number(value) or (isinstance(value, np.ndarray) and value.dtype.kind in "bif")
