"""Settings that are one whole number or several."""

from __future__ import annotations

from typing import Any

from surrokit.errors import ConfigurationError
from surrokit.settings import is_whole


def sizes(value: Any) -> tuple[int, ...]:
    """Return positive whole numbers in rising order, each once.

    Parameters
    ----------
    value
        One of them, or several.

    Raises
    ------
    ConfigurationError
        If it is anything else.
    """
    several = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not several or not all(is_whole(size, 1) for size in several):
        raise ConfigurationError(
            "n_points must be a whole number of at least 1, or several as in (10, 20), "
            f"got {value!r}"
        )
    return tuple(sorted({int(size) for size in several}))
