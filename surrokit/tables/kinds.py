"""Of what kind columns are: numbers, dates, or levels of a category."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from surrokit.errors import ConfigurationError
from surrokit.tables.frames import COUNT_DAYS, library

MOST_LEVELS = 50
"""Levels of a category that are made columns without being asked for."""

_MANY, _SHARE = 10, 0.8  # levels, and their part of the rows, where nearly each row has its own


def with_numbers(frame: Any) -> Any:
    """Return a frame in which columns of Python's numbers, such as decimals, are columns of floats.

    Parameters
    ----------
    frame
        A pandas frame that lacks nothing.
    """
    found = {name: frame[name].astype(float) for name in frame if _holds_numbers(frame[name])}
    return frame.assign(**found) if found else frame


def _holds_numbers(column: Any) -> bool:
    if column.dtype != object:
        return False
    numbers = (Real, Decimal, np.number)
    return all(isinstance(x, numbers) and not isinstance(x, bool | np.bool_) for x in column)


def check_no_dates(frame: Any, names: Collection[str]) -> None:
    """Raise if one of some columns holds dates or times.

    Parameters
    ----------
    frame
        A pandas frame that lacks nothing.
    names
        Of the columns.

    Raises
    ------
    ConfigurationError
        If one does.
    """
    for name in names:
        if _holds_dates(frame[name]):
            raise ConfigurationError(f"column {name!r} holds dates or times; {COUNT_DAYS}")


def check_kinds(frame: Any, names: Collection[str]) -> None:
    """Raise if a column that is a covariate by itself holds dates, or levels without number.

    Parameters
    ----------
    frame
        A pandas frame that lacks nothing.
    names
        Of the columns, which ``C(...)`` does not declare to be categories.

    Raises
    ------
    ConfigurationError
        If one has dates or times, more than :data:`MOST_LEVELS` levels, or nearly a level for each
        row.
    """
    check_no_dates(frame, names)
    types = library("pandas", "for regressions from tables").api.types
    for name in names:
        column = frame[name]
        if types.is_numeric_dtype(column) or types.is_bool_dtype(column):
            continue
        n_levels = column.nunique()
        nearly_all = n_levels > _MANY and n_levels >= _SHARE * len(column)
        if n_levels > MOST_LEVELS or nearly_all:
            raise ConfigurationError(
                f"column {name!r} has {n_levels} levels in {len(column)} rows, such as "
                f"{column.iloc[0]!r}, and each would be a coefficient; {_advice(column, name)}"
            )


def _holds_dates(column: Any) -> bool:
    if getattr(column.dtype, "kind", "") in "mM" or "period" in str(column.dtype):
        return True
    kinds = (date, timedelta, np.datetime64)
    return column.dtype == object and isinstance(column.iloc[0], kinds)


def _advice(column: Any, name: str) -> str:
    pandas = library("pandas", "for regressions from tables")
    texts = column.iloc[:100].astype(str)
    allow = f"write C({name}) if that is meant"
    if pandas.to_numeric(texts, errors="coerce").notna().all():
        return f"make numbers of its text by pandas.to_numeric, or {allow}"
    if pandas.to_datetime(texts, errors="coerce", format="ISO8601").notna().all():
        return f"make dates of its text by pandas.to_datetime and count days, or {allow}"
    return f"{allow}, join levels, or leave it out"
