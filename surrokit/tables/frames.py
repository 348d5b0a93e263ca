"""Tables: their columns as pandas frames, and of what kind these are; others by way of Narwhals."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
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

_COUNT_DAYS = "count days, such as (d - d.min()).dt.days with d = pandas.to_datetime(data['date'])"


def library(name: str, purpose: str) -> Any:
    """Return an optional library, needed for a purpose in words that follow "is needed"."""
    return load_library(name, "formula", purpose)


def column_names(data: Any) -> list[str]:
    """Return the names of the columns of a table; ConfigurationError if it is none, or is empty."""
    if hasattr(data, "__dask_graph__"):
        raise ConfigurationError(
            "data is a Dask collection, but a formula needs a table in memory; make the columns of "
            "the design in Dask and give them to surrokit.rows_potential"
        )
    if isinstance(data, Mapping):
        names, n_rows = list(data), _length(*next(iter(data.items()), ("", ())))
    elif hasattr(data, "column_names") or hasattr(data, "columns"):
        names = list(data.column_names if hasattr(data, "column_names") else data.columns)
        n_rows = len(data) if hasattr(data, "__len__") else int(data.num_rows)
    else:
        raise _no_table(data)
    if not names or not n_rows:
        raise ConfigurationError(
            f"data must have rows and columns, got {n_rows} rows and {len(names)} columns; give "
            "at least one row"
        )
    return [str(name) for name in names]


def _length(name: str, column: Any) -> int:
    """Return how many values a column of a dictionary has."""
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
    """Raise ConfigurationError if a column that is asked for, by ``whose``, is not there."""
    absent = sorted(set(wanted) - set(columns))
    if not absent:
        return
    near = get_close_matches(absent[0], columns, n=1)
    more = [f"and {len(columns) - 20} more"] if len(columns) > 20 else []
    raise ConfigurationError(
        f"{whose} asks for {absent[0]!r}, which is no column of data; there are "
        f"{', '.join([*columns[:20], *more])}"
        + (f"; do you mean {near[0]!r}?" if near else "; check the name")
    )


def read_columns(data: Any, names: Sequence[str]) -> Any:
    """Return some columns of a table as a pandas frame, with rows numbered from 0.

    ConfigurationError is raised if two columns have one name, it is no table, or columns of a
    dictionary have indices that cannot be matched; ShapeError if they differ in length.
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

    ConfigurationError is raised if a row lacks something and is not to be dropped, or none is left.
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
    """Return a column, or an array beside the table, as finite numbers, shape (n_rows,)."""
    if getattr(getattr(values, "dtype", None), "kind", "") in "mM":
        raise ConfigurationError(f"{name} must be numbers, got dates or times; {_COUNT_DAYS}")
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
    numbers = (Real, Decimal, np.number)
    found = {
        name: frame[name].astype(float)
        for name in frame
        if frame[name].dtype == object
        and all(isinstance(x, numbers) and not isinstance(x, bool | np.bool_) for x in frame[name])
    }
    return frame.assign(**found) if found else frame


def check_kinds(frame: Any, names: Collection[str]) -> None:
    """Raise ConfigurationError if covariates have too many levels, as dates and identifiers have.

    ``names`` are of columns that ``C(...)`` does not declare to be categories. More than 50 levels
    are too many, or nearly a level for each row.
    """
    types = library("pandas", "for regressions from tables").api.types
    for name in names:
        column = frame[name]
        if types.is_numeric_dtype(column) or types.is_bool_dtype(column):
            continue
        n_levels = column.nunique()
        if n_levels > 50 or (n_levels > 10 and n_levels >= 0.8 * len(column)):
            raise ConfigurationError(
                f"column {name!r} has {n_levels} levels in {len(column)} rows, such as "
                f"{column.iloc[0]!r}, and each would be a coefficient; make numbers of its text, "
                f"{_COUNT_DAYS}, write C({name}) if that is meant, or join levels"
            )


def read_table(path: Path) -> Any:
    """Return the pandas frame of a file ``.csv``, perhaps compressed, or ``.parquet``.

    TargetError is raised if it cannot be read, MissingDependencyError without a library for that.
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
