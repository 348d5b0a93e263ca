"""Tables in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from surrokit.errors import MissingDependencyError, TargetError
from surrokit.tables.frames import library


def read_table(path: Path) -> Any:
    """Return the pandas frame that a file holds.

    Parameters
    ----------
    path
        Its ending is ``.csv``, perhaps with that of a compression after it, or ``.parquet``.

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
