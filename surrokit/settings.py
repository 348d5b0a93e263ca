"""attrs validators for the settings of parts, with messages that say what to do."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

from surrokit.errors import ConfigurationError


def _refuse(attribute: Any, expected: str, value: object) -> None:
    raise ConfigurationError(f"{attribute.name} must be {expected}, got {value!r}")


def _is_number(value: object) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, Real) and math.isfinite(value)


def positive(_: object, attribute: Any, value: object) -> None:
    """Refuse anything but a positive finite number."""
    if not (_is_number(value) and float(value) > 0):  # type: ignore[arg-type]
        _refuse(attribute, "a positive finite number", value)


def optional_positive(_: object, attribute: Any, value: object) -> None:
    """Refuse anything but a positive finite number or None."""
    if value is not None and not (_is_number(value) and float(value) > 0):  # type: ignore[arg-type]
        _refuse(attribute, "a positive finite number, or None to have it tuned", value)


def not_negative(_: object, attribute: Any, value: object) -> None:
    """Refuse anything but a finite number that is at least 0."""
    if not (_is_number(value) and float(value) >= 0):  # type: ignore[arg-type]
        _refuse(attribute, "a finite number of at least 0", value)


def fraction(_: object, attribute: Any, value: object) -> None:
    """Refuse anything but a number strictly between 0 and 1."""
    if not (_is_number(value) and 0 < float(value) < 1):  # type: ignore[arg-type]
        _refuse(attribute, "a number between 0 and 1", value)


def positive_integer(_: object, attribute: Any, value: object) -> None:
    """Refuse anything but a whole number that is at least 1."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        _refuse(attribute, "a whole number of at least 1", value)


def optional_positive_integer(instance: object, attribute: Any, value: object) -> None:
    """Refuse anything but a whole number that is at least 1, or None."""
    if value is not None:
        positive_integer(instance, attribute, value)
