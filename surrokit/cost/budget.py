"""Budgets: limits at which a run stops before it has drawn all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import attrs

from surrokit.settings import Limits, is_number, optional_positive_integer

StopReason: TypeAlias = Literal[
    "draws", "max_calls", "max_seconds", "target_ess", "target_rhat", "interrupted", "error"
]
"""Why a run stopped: it drew all that was asked for, one of the limits of a :class:`Budget` was
reached, it was interrupted, or something raised."""

Length: TypeAlias = Literal["fixed", "judged", "cut"]
"""How the number of kept draws came about: ``fixed`` before the first of them, ``judged`` by what
they look like (``target_ess``, ``target_rhat``), or ``cut`` where a limit, an interrupt or an error
happened to fall."""


_WHOLE = Limits(
    "a whole number of at least 1, or None for no limit", optional_positive_integer.hold
)


def _above(least: float) -> Limits:
    return Limits(
        f"a finite number above {least:g}, or None for no limit",
        lambda value: value is None or (is_number(value) and least < value < math.inf),
    )


@attrs.frozen(kw_only=True)
class Budget:
    """What a run may spend, and what is good enough; whichever comes first stops it.

    Calls and seconds count from the first exact call on, exploration and warm-up included. How many
    draws they allow for is foretold from what the warm-up cost, and settled before the first draw,
    where the cost of an iteration varies so much, and draws are so few, that it matters. A call
    that would exceed ``max_calls`` is never made. An iteration that is under way when the seconds
    are over is not kept; a call that is, is waited for. The other two look at kept draws only, now
    and then.

    Parameters
    ----------
    max_calls
        Exact calls of all kinds together, each position of a batch as one; single data rows as
        parts of an evaluation of all rows.
    max_seconds
        Wall time; a number of draws that was settled may take a tenth longer.
    target_ess
        Effective sample size, of the parameter in which it is smallest: the least of bulk, tail and
        that of squared distances from the mean.
    target_rhat
        R-hat, of the parameter in which it is largest.

    Raises
    ------
    ConfigurationError
        If a limit is out of range.
    """

    max_calls: int | None = attrs.field(default=None, validator=_WHOLE)
    max_seconds: float | None = attrs.field(default=None, validator=_above(0.0))
    target_ess: float | None = attrs.field(default=None, validator=_above(0.0))
    target_rhat: float | None = attrs.field(default=None, validator=_above(1.0))

    @property
    def looks_at_draws(self) -> bool:
        """Whether the draws themselves may end the run."""
        return self.target_ess is not None or self.target_rhat is not None

    def part(self, fraction: float) -> Budget:
        """Return a part of the calls and seconds, without the rest."""
        return Budget(
            max_calls=None if self.max_calls is None else max(int(fraction * self.max_calls), 1),
            max_seconds=None if self.max_seconds is None else fraction * self.max_seconds,
        )

    def within(self, other: Budget) -> Budget:
        """Return the tighter of two limits on calls and seconds, without the rest."""
        return Budget(
            max_calls=_least(self.max_calls, other.max_calls),
            max_seconds=_least(self.max_seconds, other.max_seconds),
        )

    def spent(self, calls: float, seconds: float) -> Literal["max_calls", "max_seconds"] | None:
        """Return which limit so many calls and seconds exceed, if any."""
        if self.max_calls is not None and calls > self.max_calls:
            return "max_calls"
        if self.max_seconds is not None and seconds > self.max_seconds:
            return "max_seconds"
        return None


class BudgetSpent(BaseException):
    """Ends a run from within; like ``KeyboardInterrupt`` no ``except Exception`` holds it up.

    Parameters
    ----------
    reason
        The limit that was reached.
    """

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason)
        self.reason: StopReason = reason


def calls_paid(calls: Mapping[str, int], n_rows: int | None) -> float:
    """Return exact calls of all kinds together.

    Parameters
    ----------
    calls
        Kind to number of positions; ``rows`` in data rows.
    n_rows
        Data rows of the target; None where it has none.

    Returns
    -------
    float
        Positions of all kinds, and the part of all data rows that was touched one by one.
    """
    positions = sum(n for kind, n in calls.items() if kind != "rows")
    return positions + (calls.get("rows", 0) / n_rows if n_rows else 0)


def _least(one: Any, other: Any) -> Any:
    given = [limit for limit in (one, other) if limit is not None]
    return min(given, default=None)
