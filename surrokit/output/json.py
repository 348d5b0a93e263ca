"""Plain data, and JSON files of them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from surrokit.errors import ConfigurationError


def plain(value: Any, where: str = "value") -> Any:
    """Return a copy of a value as JSON holds it.

    Arrays and tuples become lists, NumPy's numbers become Python's, paths become text, and numbers
    that are not finite become None.

    Parameters
    ----------
    value
        None, text, numbers, arrays, and lists, tuples and mappings of these.
    where
        Its name in messages.

    Raises
    ------
    ConfigurationError
        If something in it is of another type; the message says where.
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


def write_json(path: Path, figures: Any) -> None:
    """Write plain data to a file.

    Raises
    ------
    ConfigurationError
        If it cannot be written.
    """
    try:
        path.write_text(json.dumps(figures, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"cannot write {path}: {error.strerror}; give a file in a folder that exists"
        ) from error
