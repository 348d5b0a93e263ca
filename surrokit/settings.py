"""Settings of parts: validators with messages that say what to do, and marks on fields.

The settings of a part are the fields of its attrs class. :func:`spread` marks a field that holds a
record of more settings, and :data:`HIDDEN` a field that a run sets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from numbers import Real
from typing import Any, TypeAlias

import attrs
import numpy as np

from surrokit.errors import ConfigurationError

_MARK = "surrokit"

Mark: TypeAlias = Callable[[str], bool] | None
"""Tells which settings of a record the part offers as its own; None for a hidden field."""


@attrs.frozen
class Limits:
    """A validator of a field.

    Parameters
    ----------
    expected
        The valid values, in words that follow "must be".
    hold
        Returns whether a value is valid.
    """

    expected: str
    hold: Callable[[Any], bool]

    def __call__(self, _: Any, attribute: Any, value: Any) -> None:
        """Refuse an invalid value.

        Raises
        ------
        ConfigurationError
            If the value is invalid.
        """
        if not self.hold(value):
            raise ConfigurationError(f"{attribute.name} must be {self.expected}, got {value!r}")


def is_number(value: object) -> bool:
    """Return whether a value is a real number and no boolean."""
    return isinstance(value, Real) and not isinstance(value, np.bool_ | bool)


def is_whole(value: object, least: int) -> bool:
    """Return whether a value is a whole number of at least ``least``, and no boolean."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        return False
    return int(value) >= least


def _finite(value: object) -> float:
    """Return a finite number as it is, and NaN, which fails all comparisons, for anything else."""
    number = float(value) if is_number(value) else math.nan  # type: ignore[arg-type]
    return number if math.isfinite(number) else math.nan


positive = Limits("a positive finite number", lambda value: _finite(value) > 0)
"""Takes a positive finite number."""

optional_positive = Limits(
    "a positive finite number, or None to have it tuned",
    lambda value: value is None or _finite(value) > 0,
)
"""Takes a positive finite number or None."""

not_negative = Limits("a finite number of at least 0", lambda value: _finite(value) >= 0)
"""Takes a finite number that is at least 0."""

fraction = Limits("a number between 0 and 1", lambda value: 0 < _finite(value) < 1)
"""Takes a number strictly between 0 and 1."""

share = Limits("a number of at least 0 and below 1", lambda value: 0 <= _finite(value) < 1)
"""Takes a number of at least 0 and below 1."""

up_to_half = Limits("a share between 0 and 0.5", lambda value: 0 <= _finite(value) <= 0.5)
"""Takes a number from 0 to 0.5, such as a share of points to hold out."""

positive_integer = Limits("a whole number of at least 1", lambda value: is_whole(value, 1))
"""Takes a whole number that is at least 1."""

not_negative_integer = Limits("a whole number of at least 0", lambda value: is_whole(value, 0))
"""Takes a whole number that is at least 0."""

optional_positive_integer = Limits(
    "a whole number of at least 1, or None", lambda value: value is None or is_whole(value, 1)
)
"""Takes a whole number that is at least 1, or None."""


def one_of(*choices: str | bool) -> Limits:
    """Return a validator that takes any of the given words or truth values."""

    def hold(value: object) -> bool:
        # compare types too, since 1 == True
        return any(type(value) is type(choice) and value == choice for choice in choices)

    return Limits(f"one of {', '.join(map(repr, choices))}", hold)


def spread(*names: str, without: Collection[str] = ()) -> dict[str, Mark]:
    """Return the metadata of a field whose record of settings the part offers as its own.

    Parameters
    ----------
    *names
        Settings of the record that the part offers; by default all.
    without
        Settings that the part does not offer.
    """
    return {_MARK: lambda name: (not names or name in names) and name not in without}


HIDDEN: dict[str, Mark] = {_MARK: None}
"""Metadata of a field that is no setting, since a run sets it."""


def is_hidden(field: attrs.Attribute[Any]) -> bool:
    """Return whether a field is no setting."""
    return _MARK in field.metadata and field.metadata[_MARK] is None


def offers_of(field: attrs.Attribute[Any]) -> Mark:
    """Return the mark of a field that is spread, None for any other field."""
    mark: Mark = field.metadata.get(_MARK)
    return mark
