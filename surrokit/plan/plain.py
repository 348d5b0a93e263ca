"""Settings as plain data, which files can hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


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
        return np.array(data["array"], dtype=data["dtype"])
    return {name: from_plain(each) for name, each in data["dict"].items()}
