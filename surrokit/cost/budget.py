"""Budgets: limits at which a run stops early."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import attrs

from surrokit.settings import Limits, is_number, optional_positive_integer

StopReason: TypeAlias = Literal[
    "draws",
    "max_calls",
    "default_max_calls",
    "max_seconds",
    "target_ess",
    "target_rhat",
    "target_mcse",
    "observer",
    "interrupted",
    "error",
]
"""Why a run stopped: it made all draws, it reached a limit of its :class:`Budget` or the default
limit on calls, or an observer, an interrupt or an error ended it."""

LIMITS: tuple[StopReason, ...] = ("max_calls", "default_max_calls", "max_seconds")
"""Limits at which a run ends with the draws that it has by then."""

Length: TypeAlias = Literal["fixed", "judged", "cut"]
"""What set the number of kept draws: it was ``fixed`` before the first draw, ``judged`` by the
draws (``target_ess``, ``target_rhat``, ``target_mcse``), or ``cut`` by a limit, an interrupt or an
error."""


_CALLS = Limits(
    "a whole number of at least 1, math.inf for no limit, or None for the default limit",
    lambda value: value == math.inf or optional_positive_integer.hold(value),
)


def _above(least: float) -> Limits:
    return Limits(
        f"a finite number above {least:g}, or None for no limit",
        lambda value: value is None or (is_number(value) and least < value < math.inf),
    )


@attrs.frozen(kw_only=True)
class Budget:
    """Limits on a run's costs and goals for its draws; the first that is reached stops the run.

    Calls and seconds count from the first exact call on, exploration and warm-up included. A limit
    that stops a run at a random moment biases the draws, the more so if the costs of iterations
    vary and draws are few. Where this matters, the number of draws is predicted from the costs of
    the warm-up, and settled before the first draw. A call that would exceed ``max_calls`` is never
    made. When the seconds are over, the run waits for the call in progress, and drops the iteration
    in progress. The goals for draws are checked now and then, on kept draws only.

    Parameters
    ----------
    max_calls
        Exact calls of all kinds. Each position of a batch counts as one; a single data row counts
        as its share of an evaluation of all rows. With None a run ends at a default limit, many
        times the calls that such a run takes as a rule; with infinity there is no limit.
    max_seconds
        Wall time; a settled number of draws may take a tenth longer.
    target_ess
        Smallest effective sample size of any parameter: the least of bulk, tail and that of
        squared distances from the mean.
    target_rhat
        Largest R-hat of any parameter.
    target_mcse
        Largest Monte Carlo error of the mean, the standard deviation and the 5, 50 and 95 %
        quantile of any parameter, in its posterior standard deviations.

    Raises
    ------
    ConfigurationError
        If a limit is out of range.
    """

    max_calls: float | None = attrs.field(default=None, validator=_CALLS)
    max_seconds: float | None = attrs.field(default=None, validator=_above(0.0))
    target_ess: float | None = attrs.field(default=None, validator=_above(0.0))
    target_rhat: float | None = attrs.field(default=None, validator=_above(1.0))
    target_mcse: float | None = attrs.field(default=None, validator=_above(0.0))

    @property
    def looks_at_draws(self) -> bool:
        """Whether the draws themselves may end the run."""
        goals = (self.target_ess, self.target_rhat, self.target_mcse)
        return any(goal is not None for goal in goals)

    @property
    def calls(self) -> int | None:
        """The limit on calls that was given; None where none was, or infinity."""
        return None if self.max_calls in (None, math.inf) else int(self.max_calls)

    def part(self, fraction: float) -> Budget:
        """Return a budget of part of the calls and seconds, without the other limits."""
        return Budget(
            max_calls=None if self.calls is None else max(int(fraction * self.calls), 1),
            max_seconds=None if self.max_seconds is None else fraction * self.max_seconds,
        )

    def within(self, other: Budget) -> Budget:
        """Return the tighter limits of two on calls and seconds, without the other limits."""
        return Budget(
            max_calls=_least(self.calls, other.calls),
            max_seconds=_least(self.max_seconds, other.max_seconds),
        )

    def spent(self, calls: float, seconds: float) -> Literal["max_calls", "max_seconds"] | None:
        """Return the limit that so many calls or seconds exceed, if any."""
        if self.max_calls is not None and calls > self.max_calls:
            return "max_calls"
        if self.max_seconds is not None and seconds > self.max_seconds:
            return "max_seconds"
        return None


def calls_paid(calls: Mapping[str, int], n_rows: int | None) -> float:
    """Return the number of exact calls of all kinds.

    Parameters
    ----------
    calls
        Kind to number of positions; ``rows`` in data rows.
    n_rows
        Data rows of the target; None where it has none.

    Returns
    -------
    float
        Positions of all kinds, plus single data rows as a share of all rows.
    """
    positions = sum(n for kind, n in calls.items() if kind != "rows")
    return positions + (calls.get("rows", 0) / n_rows if n_rows else 0)


def _least(one: Any, other: Any) -> Any:
    given = [limit for limit in (one, other) if limit is not None]
    return min(given, default=None)
