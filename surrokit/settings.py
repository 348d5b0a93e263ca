"""attrs validators for the settings of parts, with messages that say what to do."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from surrokit.errors import ConfigurationError


def is_number(value: object) -> bool:
    """Return whether a value is a real number, booleans apart."""
    return isinstance(value, Real) and not isinstance(value, np.bool_ | bool)


def is_whole(value: object, least: int) -> bool:
    """Return whether a value is a whole number, booleans apart, and at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        return False
    return int(value) >= least


def _refuse(attribute: Any, expected: str, value: object) -> None:
    raise ConfigurationError(f"{attribute.name} must be {expected}, got {value!r}")


def _finite(value: object) -> float:
    """Return a value as a number, NaN if it is none or not finite: all comparisons then fail."""
    number = float(value) if is_number(value) else math.nan  # type: ignore[arg-type]
    return number if math.isfinite(number) else math.nan


def positive(_: object, attribute: Any, value: object) -> None:
    """Refuse anything but a positive finite number."""
    if not _finite(value) > 0:
        _refuse(attribute, "a positive finite number", value)


def optional_positive(_: object, attribute: Any, value: object) -> None:
    """Refuse anything but a positive finite number or None."""
    if value is not None and not _finite(value) > 0:
        _refuse(attribute, "a positive finite number, or None to have it tuned", value)


def not_negative(_: object, attribute: Any, value: object) -> None:
    """Refuse anything but a finite number that is at least 0."""
    if not _finite(value) >= 0:
        _refuse(attribute, "a finite number of at least 0", value)


def fraction(_: object, attribute: Any, value: object) -> None:
    """Refuse anything but a number strictly between 0 and 1."""
    if not 0 < _finite(value) < 1:
        _refuse(attribute, "a number between 0 and 1", value)


def part(_: object, attribute: Any, value: object) -> None:
    """Refuse anything but a number from 0 on and below 1."""
    if not 0 <= _finite(value) < 1:
        _refuse(attribute, "a number of at least 0 and below 1", value)


def positive_integer(_: object, attribute: Any, value: object) -> None:
    """Refuse anything but a whole number that is at least 1."""
    if not is_whole(value, 1):
        _refuse(attribute, "a whole number of at least 1", value)


def not_negative_integer(_: object, attribute: Any, value: object) -> None:
    """Refuse anything but a whole number that is at least 0."""
    if not is_whole(value, 0):
        _refuse(attribute, "a whole number of at least 0", value)


def optional_positive_integer(_: object, attribute: Any, value: object) -> None:
    """Refuse anything but a whole number that is at least 1, or None."""
    if value is not None and not is_whole(value, 1):
        _refuse(attribute, "a whole number of at least 1, or None", value)


def one_of(*choices: str | bool) -> Callable[[object, Any, object], None]:
    """Return a check that a setting is one of some words or truth values."""

    def check(_: object, attribute: Any, value: object) -> None:
        # by kind as well, since 1 == True
        if not any(type(value) is type(choice) and value == choice for choice in choices):
            raise ConfigurationError(
                f"{attribute.name} must be one of {', '.join(map(repr, choices))}, got {value!r}"
            )

    return check
