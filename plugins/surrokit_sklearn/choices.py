"""The check of settings that are one of a few words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from surrokit.errors import ConfigurationError


def one_of(*choices: str) -> Callable[[object, attrs.Attribute[Any], object], None]:
    """Return a check that a setting is one of some words."""

    def check(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
        if value not in choices:
            raise ConfigurationError(
                f"{attribute.name} must be one of {', '.join(map(repr, choices))}, got {value!r}"
            )

    return check
