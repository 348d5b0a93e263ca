"""The check of settings that are one of a few choices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from surrokit.errors import ConfigurationError


def one_of(*choices: str | bool) -> Callable[[object, attrs.Attribute[Any], object], None]:
    """Return a check that a setting is one of some words or truth values."""

    def check(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
        # by kind as well, since 1 == True
        if not any(type(value) is type(choice) and value == choice for choice in choices):
            raise ConfigurationError(
                f"{attribute.name} must be one of {', '.join(map(repr, choices))}, got {value!r}"
            )

    return check
