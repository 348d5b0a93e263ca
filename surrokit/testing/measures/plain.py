"""Conversion of frozen records to plain data, and back.

A record that lives across iterations holds arrays, numbers, strings, None, and records, tuples,
lists and mappings of these; nothing else can be saved and restored.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from numbers import Number
from typing import Any, TypeVar

import attrs
import numpy as np

Record = TypeVar("Record")


def to_plain(value: Any, where: str = "state") -> Any:
    """Return a deep copy of a record as nested dictionaries and lists of plain data.

    Parameters
    ----------
    value
        A record, or anything that may be in one.
    where
        Name of the value in messages.

    Raises
    ------
    AssertionError
        If something in it is not plain data; the message says where.
    """
    if value is None or isinstance(value, str | bool | Number | Enum):
        return value
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "biufcSU":
            raise AssertionError(f"{where} is an array of {value.dtype}; only numbers can be kept")
        return value.copy()
    if attrs.has(type(value)):
        return {
            field.name: to_plain(getattr(value, field.name), f"{where}.{field.name}")
            for field in attrs.fields(type(value))
        }
    if isinstance(value, Mapping):
        return {key: to_plain(item, f"{where}[{key!r}]") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item, f"{where}[{i}]") for i, item in enumerate(value)]
    raise AssertionError(
        f"{where} is of type {type(value).__name__}; what lives across iterations must be a "
        "record of arrays, numbers, strings, None and records, tuples or mappings of these"
    )


def from_plain(plain: Any, like: Record) -> Record:
    """Return a record with the types of ``like`` and the contents of ``plain``.

    Parameters
    ----------
    plain
        Result of :func:`to_plain`.
    like
        A record that has the types to make, at every level.
    """
    template: Any = like
    if attrs.has(type(template)):
        made = object.__new__(type(template))
        for field in attrs.fields(type(template)):
            value = from_plain(plain[field.name], getattr(template, field.name))
            object.__setattr__(made, field.name, value)
        return made  # type: ignore[no-any-return]
    if isinstance(template, Mapping):
        rebuilt = {key: from_plain(plain[key], item) for key, item in template.items()}
        return rebuilt  # type: ignore[return-value]
    if isinstance(template, list | tuple):
        items = [from_plain(p, item) for p, item in zip(plain, template, strict=True)]
        return type(template)(items)  # type: ignore[return-value]
    copied: Any = plain.copy() if isinstance(plain, np.ndarray) else plain
    return copied  # type: ignore[no-any-return]


def write_and_read(record: Record) -> Record:
    """Return a copy of a record, made from plain data, that shares nothing with it.

    Raises
    ------
    AssertionError
        If something in it is not plain data.
    """
    return from_plain(to_plain(record, type(record).__name__), record)
