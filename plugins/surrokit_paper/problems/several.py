"""Settings that are one name or several, one whole number or several."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from surrokit.errors import ConfigurationError
from surrokit.settings import is_whole


def names_among(value: Any, what: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return names, each once, in the order in which they are known.

    Parameters
    ----------
    value
        One of them, or several.
    what
        The setting, as the message shall call it.
    known
        All there are.

    Raises
    ------
    ConfigurationError
        If there is none, or one is unknown.
    """
    choices = tuple(known)
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not names or not set(names) <= set(choices):
        raise ConfigurationError(
            f"{what} must be one or several of {', '.join(choices)}, got {value!r}"
        )
    return tuple(name for name in choices if name in names)


def sizes(value: Any, what: str = "n_points") -> tuple[int, ...]:
    """Return positive whole numbers in rising order, each once.

    Parameters
    ----------
    value
        One of them, or several.
    what
        The setting, as the message shall call it.

    Raises
    ------
    ConfigurationError
        If it is anything else.
    """
    several = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not several or not all(is_whole(size, 1) for size in several):
        raise ConfigurationError(
            f"{what} must be a whole number of at least 1, or several as in (10, 20), got {value!r}"
        )
    return tuple(sorted({int(size) for size in several}))


def dim_sizes(value: Any) -> tuple[int, ...]:
    """Return the setting ``dims``; see :func:`sizes`."""
    return sizes(value, "dims")


def node_sizes(value: Any) -> tuple[int, ...]:
    """Return the setting ``n_nodes``; see :func:`sizes`."""
    return sizes(value, "n_nodes")


def gradient_sizes(value: Any) -> tuple[int, ...]:
    """Return the setting ``gradient_points``; see :func:`sizes`."""
    return sizes(value, "gradient_points")


def rising_pair(value: Any) -> tuple[int, int]:
    """Return two positive whole numbers, the second larger than the first.

    Parameters
    ----------
    value
        Where something starts, and where it ends.

    Raises
    ------
    ConfigurationError
        If it is anything else.
    """
    pair = tuple(value) if isinstance(value, list | tuple) else ()
    if len(pair) != 2 or not all(is_whole(end, 1) for end in pair) or pair[0] >= pair[1]:
        raise ConfigurationError(
            "training points must be two whole numbers, the first at least 1 and less than the "
            f"second, as in (50, 600), got {value!r}"
        )
    return int(pair[0]), int(pair[1])
