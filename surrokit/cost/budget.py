"""The budget of a run: its limits, its clock, and the pace at which it is used up."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Literal, TypeAlias

import attrs
import numpy as np

from surrokit.arguments import Limits, is_number, is_whole
from surrokit.diagnostics import effective_sample_size
from surrokit.errors import ConfigurationError
from surrokit.model.calls import Journal, Memo, NoJournal
from surrokit.types import FloatArray

StopReason: TypeAlias = Literal[
    "draws",
    "max_calls",
    "default_max_calls",
    "max_seconds",
    "surrogate",
    "target_ess",
    "target_rhat",
    "target_mcse",
    "observer",
    "interrupted",
    "error",
]
"""Why a run stopped: it made all draws, it reached a limit of its :class:`Budget` or the default
limit on calls, its surrogate can answer nothing, or an observer, an interrupt or an error ended
it."""

LIMITS: tuple[StopReason, ...] = ("max_calls", "default_max_calls", "max_seconds", "surrogate")
"""What ends a run with the draws that it has by then."""

Length: TypeAlias = Literal["fixed", "judged", "cut"]
"""What set the number of kept draws: it was ``fixed`` before the first draw, ``judged`` by the
draws (``target_ess``, ``target_rhat``, ``target_mcse``), or ``cut`` by a limit, an interrupt or an
error."""


_CALLS = Limits(
    "a whole number of at least 0, math.inf for no limit, or None for the default limit",
    lambda value: value is None or value == math.inf or is_whole(value, 0),
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
    the warm-up, and fixed before the first draw. A call that would exceed ``max_calls`` is never
    made. When the seconds are over, the run waits for the call in progress, and drops the iteration
    in progress. The goals for draws are checked now and then, on kept draws only.

    Parameters
    ----------
    max_calls
        Exact calls of all kinds. Each position of a batch counts as one; a single data row counts
        as its share of an evaluation of all rows. With 0 a posterior of a model is answered by what
        the model has evaluated before, if that suffices. With None a run ends at a default limit,
        many times the calls that such a run takes as a rule; with infinity there is no limit.
    max_seconds
        Wall time; a fixed number of draws may take a tenth longer.
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
        return not (self.target_ess is self.target_rhat is self.target_mcse is None)

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


def join_limits(budget: object, limits: Mapping[str, float | None]) -> Budget:
    """Return a budget with limits that were given beside it.

    Raises
    ------
    ConfigurationError
        If it is no budget, or a limit is given twice.
    """
    given = {name: limit for name, limit in limits.items() if limit is not None}
    if budget is None:
        return Budget(**given)
    if not isinstance(budget, Budget):
        raise ConfigurationError(
            f"budget must be a surrokit.Budget(...), got {budget!r}; pass "
            "budget=sk.Budget(target_rhat=1.01), say"
        )
    twice = [name for name in given if getattr(budget, name) is not None]
    if twice:
        raise ConfigurationError(
            f"{' and '.join(twice)} {'are' if twice[1:] else 'is'} given twice, alone and in "
            "budget; leave one out"
        )
    return attrs.evolve(budget, **given)


def count_calls(calls: Mapping[str, int], n_rows: int | None) -> float:
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
    rows = calls.get("rows", 0)
    exact = sum(n for kind, n in calls.items() if kind not in ("rows", "cheap"))
    return exact + (rows / n_rows if n_rows else 0)


def _least(one: Any, other: Any) -> Any:
    given = [limit for limit in (one, other) if limit is not None]
    return min(given, default=None)


class Clock:
    """Adds up the time spent in each phase: ``warmup``, ``training`` and ``sampling``.

    Parameters
    ----------
    journal
        Keeps every reading, or gives what was read before.
    memo
        Holds the seconds of calls that are not made again; None where there is none.
    """

    def __init__(self, journal: Journal | None = None, memo: Memo | None = None) -> None:
        self.seconds = {"warmup": 0.0, "training": 0.0, "sampling": 0.0}
        self._journal: Journal = journal or NoJournal()
        self._is_plain = type(self._journal) is NoJournal
        self._memo = memo
        self._began = time.perf_counter()

    @property
    def is_plain(self) -> bool:
        """Whether no journal keeps or says the time."""
        return self._is_plain

    @property
    def replays(self) -> bool:
        """Whether the journal says the time."""
        return self._journal.replays

    def now(self) -> float:
        """Return seconds since the run began, for what leaves no trace in a run that goes on."""
        return time.perf_counter() - self._began

    def elapsed(self) -> float:
        """Return seconds since the run began."""
        now = self.now()
        if self.is_plain:
            return now
        read = self._journal.reading(now)
        self._began += now - read  # a run that was read goes on from there
        return read

    def with_saved(self) -> float:
        """Return seconds as they would be if every call had been made."""
        saved = 0.0 if self._memo is None else self._memo.seconds
        return self._journal.reading(self.now() + saved)

    def phase(self, name: str) -> AbstractContextManager[None]:
        """Add the time of the block to a phase, but for that of phases within it."""
        return _Phase(self, name)


class _Phase(AbstractContextManager[None]):
    """A block of a phase; one of a generator would take several times as long."""

    __slots__ = ("_before", "_clock", "_name", "_start")

    def __init__(self, clock: Clock, name: str) -> None:
        self._clock, self._name = clock, name

    def __enter__(self) -> None:
        self._start, self._before = self._clock.elapsed(), sum(self._clock.seconds.values())

    def __exit__(self, *_: object) -> None:
        seconds = self._clock.seconds
        within = sum(seconds.values()) - self._before
        seconds[self._name] += self._clock.elapsed() - self._start - within


TOLERATED = 0.05
"""Share of the Monte Carlo error by which means may move so that a limit can be used in full."""

_FEWEST = 4  # with fewer costs nothing is estimated
_ROUNDING = 1e-9  # of a whole number of draws


class Pace:
    """Use of the limits by each iteration of a warm-up.

    Only the third quarter counts: the first half is tuning, and in the last quarter the chains
    forget the positions at which the counted costs arose.
    """

    def __init__(self) -> None:
        self._used: list[tuple[float, ...]] = []

    def begin(self, *used: float) -> None:
        """Begin anew, with the use of each limit so far."""
        self._used = [used]

    def add(self, *used: float) -> None:
        """Add the use of each limit after one more iteration."""
        self._used.append(used)

    def limit_draws(self, limit: int, rest: float, margin: float) -> float:
        """Return the largest number of draws, before the first of them.

        Parameters
        ----------
        margin
            Standard errors of the predicted cost to keep in reserve.

        Returns
        -------
        float
            A whole number or infinity, as from :func:`limit_draws`.
        """
        used = np.array([row[limit] for row in self._used])
        n = len(used) - 1
        return limit_draws(np.diff(used[n // 2 : (3 * n) // 4 + 1]), rest, margin)


def limit_draws(costs: FloatArray, rest: float, margin: float) -> float:
    """Return the number of draws that a limit allows.

    Parameters
    ----------
    costs : ndarray of shape (n,)
        Costs of iterations before the draws.
    margin
        Standard errors of the predicted cost to keep in reserve.

    Returns
    -------
    float
        A whole number, expected to use up the limit except for the margin. Infinity lets the limit
        itself end the draws: where this moves means by no more than :data:`TOLERATED`, or where too
        little is known.
    """
    mean = float(costs.mean()) if len(costs) >= _FEWEST else 0.0
    if mean <= 0.0:
        return math.inf
    variance = len(costs) * relative_error(costs) ** 2  # of one iteration
    # n + margin (sqrt(n variance) + n sqrt(variance / len(costs))) = rest / mean, in sqrt(n)
    square = 1.0 + margin * math.sqrt(variance / len(costs))
    linear = margin * math.sqrt(variance)
    root = math.sqrt(linear**2 + 4.0 * square * max(rest, 0.0) / mean) - linear
    n = math.floor((root / (2.0 * square)) ** 2 + _ROUNDING)
    unseen = 1.0 / len(costs)  # as if one more iteration cost twice as much
    return math.inf if 0.5 * math.sqrt((variance + unseen) / max(n, 1)) <= TOLERATED else n


def length_bias(costs: FloatArray) -> float:
    """Return the share of its Monte Carlo error by which a mean may be biased.

    Parameters
    ----------
    costs : ndarray of shape (n,)
        Costs of the draws that a limit let through, without the one in progress.

    Returns
    -------
    float
        Approximate maximum over the means of all functions; NaN with too few costs.
    """
    return 0.5 * relative_error(costs) if len(costs) >= _FEWEST else math.nan


def relative_error(costs: FloatArray) -> float:
    """Return the standard error of the mean of successive costs, relative to that mean."""
    n_independent = float(effective_sample_size(costs[None, :, None], "paper")[0])
    if math.isnan(n_independent):  # all costs are equal
        return 0.0
    return float(costs.std() / costs.mean()) / math.sqrt(n_independent)
