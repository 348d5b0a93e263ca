"""Files of plain data, tables and pictures, and the check before a long run that they can be.

What cannot be written raises a ConfigurationError.
"""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from surrokit.errors import ConfigurationError

Columns: TypeAlias = Mapping[str, npt.NDArray[Any]]  #: Name to a column of a table.


def plain(value: Any, where: str = "value") -> Any:
    """Return a copy of a value as JSON holds it; of another type a ConfigurationError says where.

    Arrays and tuples become lists, NumPy's numbers become Python's, paths become text, and numbers
    that are not finite become None.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist(), where)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item, f"{where}[{key!r}]") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, f"{where}[{i}]") for i, item in enumerate(value)]
    raise ConfigurationError(
        f"{where} is of type {type(value).__name__}, which JSON cannot hold; use None, text, "
        "numbers, arrays, and lists and dictionaries of these"
    )


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield another name in the same folder; what is written to it replaces the file at once."""
    written = path.with_name(f".{path.stem}-{os.getpid()}{path.suffix}")
    try:
        yield written
        written.replace(path)
    except OSError as error:
        raise ConfigurationError(
            f"cannot write {path}: {error.strerror or error}; give a file in a folder that exists, "
            "to which you may write"
        ) from error
    finally:
        with suppress(OSError):
            written.unlink()


def write_json(path: Path, figures: Any) -> None:
    """Write plain data to a file."""
    with replacing(path) as file:
        file.write_text(json.dumps(figures, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def write_csv(columns: Columns, path: Path) -> None:
    """Write a table as text, with all digits of its numbers."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        # Python's own numbers are written so that they are read back exactly
        writer.writerows(zip(*(array.tolist() for array in columns.values()), strict=True))


def write_pictures(figure: Any, stem: Path) -> list[Path]:
    """Write a Matplotlib figure as PNG and SVG, and return their paths.

    Equal figures give SVG files that are equal byte for byte. ``stem`` is a path without ending.
    """
    import matplotlib as mpl

    paths = [stem.with_name(f"{stem.name}.{ending}") for ending in ("png", "svg")]
    with mpl.rc_context({"svg.hashsalt": "surrokit", "svg.fonttype": "path"}):
        for path in paths:
            metadata = {"Date": None} if path.suffix == ".svg" else None
            try:
                figure.savefig(path, dpi=200, metadata=metadata)
            except OSError as error:
                raise ConfigurationError(
                    f"cannot write {path}: {error.strerror}; give another folder with --out"
                ) from error
    return paths


def check_folder(path: str | os.PathLike[str]) -> None:
    """Check, before a long run, that the folder of a file exists."""
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise ConfigurationError(f"cannot write {path}: there is no folder {folder}; make it first")
