"""Checks and their results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import attrs

Level: TypeAlias = Literal["quick", "statistical", "long"]
"""``quick`` is deterministic and takes less than a second, ``statistical`` is seeded and takes
seconds, ``long`` takes more."""

DEFAULT_LEVELS: tuple[Level, ...] = ("quick", "statistical")
"""The levels that run unless others are asked for."""

Outcome: TypeAlias = Literal["passed", "failed", "known failure"]
"""The outcome of a check. A known failure that passes counts as failed."""

Factory: TypeAlias = Callable[[], Any]
"""Makes a part afresh, so that nothing leaks from check to check."""


@attrs.frozen
class Check:
    """A named property of one kind of part.

    Parameters
    ----------
    function
        Takes a factory and raises AssertionError, with a full message, if a part that it makes
        lacks the property. Its first docstring line says what the property is.
    level
        How long it takes.
    applies
        Whether a part claims the ability that is checked.
    """

    function: Callable[[Factory], None]
    level: Level = "quick"
    applies: Callable[[Any], bool] = lambda _: True

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.__name__


@attrs.frozen
class CheckResult:
    """The result of one check of one part.

    Parameters
    ----------
    name
        Check and part, as in ``check_reversible[leapfrog]``.
    outcome
        How it ended.
    message
        Why it failed, or the reason for a known failure; empty if it passed.
    seconds
        How long it took.
    """

    name: str
    outcome: Outcome
    message: str
    seconds: float
