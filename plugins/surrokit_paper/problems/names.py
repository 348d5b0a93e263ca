"""Settings that are one name or several."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from surrokit.errors import ConfigurationError


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
