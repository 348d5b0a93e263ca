"""Tables: their columns as pandas frames, and of what kind these are; others by way of Narwhals."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from difflib import get_close_matches
from numbers import Real
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from surrokit.arguments import load_library, matched_rows
from surrokit.errors import ConfigurationError, MissingDependencyError, ShapeError, TargetError
from surrokit.types import BoolArray, FloatArray

NaAction: TypeAlias = Literal["raise", "drop"]
"""What to do with rows that lack a value."""

COUNT_DAYS = (
    "count days, such as (d - d.min()).dt.days with d = pandas.to_datetime(data['date']), and take "
    "these"
)
"""What to do with dates."""

MOST_LEVELS = 50
"""Levels of a category that are made columns without being asked for."""

_MANY, _SHARE = 10, 0.8  # levels, and their part of the rows, where nearly each row has its own

_SHOWN = 20  # columns in a message


def library(name: str, purpose: str) -> Any:
    """Return an optional library, needed for a purpose in words that follow "is needed".

    Raises
    ------
    MissingDependencyError
        If it is not installed.
    """
    return load_library(name, "formula", purpose)


def column_names(data: Any) -> list[str]:
    """Return the names of the columns of a table.

    Raises
    ------
    ConfigurationError
        If it is no table, or has no rows.
    """
    if hasattr(data, "__dask_graph__"):
        raise ConfigurationError(
            "data is a Dask collection, but a formula needs a table in memory; make the columns of "
            "the design in Dask and give them to surrokit.rows_potential"
        )
    if isinstance(data, Mapping):
        names, n_rows = list(data), _length(*next(iter(data.items()), ("", ())))
    elif hasattr(data, "columns") and hasattr(data, "__len__"):
        n_rows = len(data)
        names = list(data.column_names if hasattr(data, "column_names") else data.columns)
    elif hasattr(data, "column_names") and hasattr(data, "num_rows"):
        names, n_rows = list(data.column_names), data.num_rows
    else:
        raise _no_table(data)
    if not names or not n_rows:
        raise ConfigurationError(
            f"data must have rows and columns, got {n_rows} rows and {len(names)} columns; give "
            "at least one row"
        )
    return [str(name) for name in names]


def _length(name: str, column: Any) -> int:
    """Return how many values a column of a dictionary has; raise if it is a single value."""
    try:
        if isinstance(column, str | bytes):
            raise TypeError
        return len(column)
    except TypeError:
        raise ShapeError(
            f"column {name!r} of data must hold a value for each row, got {column!r}; give a list "
            "or an array"
        ) from None


def _no_table(data: Any) -> ConfigurationError:
    return ConfigurationError(
        "data must be a table in memory: a pandas, Polars or Arrow one, or a dictionary of "
        f"columns, got {type(data).__name__}; read files first, such as by pandas.read_csv"
    )


def check_columns(wanted: Collection[str], columns: Sequence[str], whose: str) -> None:
    """Raise if a column that is asked for, by whom the message says, is not among those there.

    Raises
    ------
    ConfigurationError
        If one is absent.
    """
    absent = sorted(set(wanted) - set(columns))
    if not absent:
        return
    near = get_close_matches(absent[0], columns, n=1)
    more = [f"and {len(columns) - _SHOWN} more"] if len(columns) > _SHOWN else []
    raise ConfigurationError(
        f"{whose} asks for {absent[0]!r}, which is no column of data; there are "
        f"{', '.join([*columns[:_SHOWN], *more])}"
        + (f"; do you mean {near[0]!r}?" if near else "; check the name")
    )


def read_columns(data: Any, names: Sequence[str]) -> Any:
    """Return some columns of a table as a pandas frame, with rows numbered from 0.

    Raises
    ------
    ConfigurationError
        If two columns have one name, it is no table, or columns of a dictionary have indices that
        cannot be matched.
    MissingDependencyError
        If pandas is not installed, or Narwhals for a table of another library.
    ShapeError
        If columns differ in length.
    """
    twice = [name for name in names if list(names).count(name) > 1]
    if twice:
        raise ConfigurationError(
            f"data has {twice.count(twice[0])} columns called {twice[0]!r}; rename all but one"
        )
    pandas = library("pandas", "for regressions from tables")
    if isinstance(data, pandas.DataFrame):
        return data.rename(columns=str)[list(names)].reset_index(drop=True)
    if isinstance(data, Mapping):
        lengths = {name: _length(name, data[name]) for name in names}
        if len(set(lengths.values())) > 1:
            raise ShapeError(
                f"columns of data must be of one length, got {lengths}; give one value a row"
            )
        columns = matched_rows({f"column {name!r}": data[name] for name in names})
        arrays = map(pandas.Series, columns.values())
        return pandas.DataFrame({k: each.to_numpy() for k, each in zip(names, arrays, strict=True)})
    narwhals = library("narwhals.stable.v1", "to read tables that are not of pandas")
    try:
        frame = narwhals.from_native(data, eager_only=True)
    except TypeError as error:
        raise _no_table(data) from error
    return pandas.DataFrame({name: _column(frame[name], narwhals, pandas) for name in names})


def _column(series: Any, narwhals: Any, pandas: Any) -> Any:
    """Return a column for pandas; the order of its categories is kept."""
    if series.dtype in (narwhals.Categorical, narwhals.Enum):
        levels = series.cat.get_categories().to_list()
        ordered = series.dtype == narwhals.Enum
        return pandas.Categorical(
            series.cast(narwhals.String).to_list(), categories=levels, ordered=ordered
        )
    return pandas.Series(series.to_list()) if series.null_count() else series.to_numpy()


def keep_rows(frame: Any, na_action: NaAction) -> BoolArray:
    """Return which rows of a frame of all columns that are used lack nothing, shape (n_rows,).

    Raises
    ------
    ConfigurationError
        If a row lacks something and is not to be dropped, or none is left.
    """
    if na_action not in ("raise", "drop"):
        raise ConfigurationError(
            f"na_action must be 'raise' or 'drop', got {na_action!r}; rows are never dropped "
            "unless that is asked for"
        )
    missing = frame.isna()
    whole = ~missing.any(axis=1).to_numpy(dtype=bool)
    if whole.all():
        return np.asarray(whole)
    counts = ", ".join(f"{n} in {name!r}" for name, n in missing.sum().items() if n)
    if na_action == "raise":
        raise ConfigurationError(
            f"data lacks values: {counts} ({int((~whole).sum())} of {len(whole)} rows); fill them "
            "in, or leave these rows out by na_action='drop'"
        )
    if not whole.any():
        raise ConfigurationError(
            f"no row of data is left without those that lack values: {counts}; fill them in"
        )
    return np.asarray(whole)


def number_column(values: Any, name: str) -> FloatArray:
    """Return a column, or an array beside the table, as numbers, shape (n_rows,).

    Raises
    ------
    ConfigurationError
        If it holds something else, or is not finite.
    """
    if getattr(getattr(values, "dtype", None), "kind", "") in "mM":
        raise ConfigurationError(f"{name} must be numbers, got dates or times; {COUNT_DAYS}")
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{name} must be numbers: {error}; recode it") from error
    if not np.isfinite(array).all():
        raise ConfigurationError(
            f"{name} must be finite, got infinities or NaN; drop or fill in those rows"
        )
    return array


def with_numbers(frame: Any) -> Any:
    """Return a frame whose columns of Python's numbers, such as decimals, are columns of floats."""
    found = {name: frame[name].astype(float) for name in frame if _holds_numbers(frame[name])}
    return frame.assign(**found) if found else frame


def _holds_numbers(column: Any) -> bool:
    if column.dtype != object:
        return False
    numbers = (Real, Decimal, np.number)
    return all(isinstance(x, numbers) and not isinstance(x, bool | np.bool_) for x in column)


def check_no_dates(frame: Any, names: Collection[str]) -> None:
    """Raise if one of some columns holds dates or times.

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

    ``names`` are of columns that ``C(...)`` does not declare to be categories.

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


def read_table(path: Path) -> Any:
    """Return the pandas frame of a file ``.csv``, perhaps compressed, or ``.parquet``.

    Raises
    ------
    TargetError
        If the ending is another one, or there is no such file, or it cannot be read.
    MissingDependencyError
        If pandas is not installed, or pyarrow for ``.parquet``.
    """
    pandas = library("pandas", "to read tables")
    endings = [ending.lower() for ending in path.suffixes]
    if ".csv" not in endings[-2:] and ".parquet" not in endings[-1:]:
        raise TargetError(
            f"the ending of {path.name!r} does not say what table it is; give a .csv or a .parquet"
        )
    if not path.is_file():
        raise TargetError(f"there is no file {path}; give the path to a table")
    try:
        if endings[-1] == ".parquet":
            return pandas.read_parquet(path, engine="pyarrow")
        return pandas.read_csv(path)
    except ImportError as error:
        raise MissingDependencyError(
            "pyarrow is needed to read .parquet and is not installed; run python -m pip install "
            "'surrokit[parquet]', or give a .csv"
        ) from error
    except Exception as error:  # readers of files raise errors of many kinds
        raise TargetError(
            f"data could not be read from {path}: {error}; give a table with names of columns in "
            "its first line"
        ) from error
