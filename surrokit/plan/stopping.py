"""The watch over a run's budget while it is spent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import numpy as np

from surrokit.capabilities import CallKind
from surrokit.cost.budget import Budget, Clock, Length, Pace, StopReason
from surrokit.cost.recording import RecordingPotential
from surrokit.diagnostics import LEAST_OF, effective_sample_size, r_hat, relative_error
from surrokit.errors import BudgetSpent, StopRun
from surrokit.history import History
from surrokit.model.calls import Journal
from surrokit.plan.recipe import Extension, Recipe
from surrokit.types import FloatArray

FIRST_LOOK = 50
"""Kept draws of each chain at which their quality is judged for the first time."""

_GROWTH = 1.2  # of draws between looks: looks are few, and at most a fifth is drawn in vain
_MOST_GROWTH = 3.0

RESERVE, SECONDS, MOST_RESERVE = 0.1, 2.0, 0.3
"""Part of ``max_seconds`` that is left, before the first draw, for a surrogate's draws in case no
others can be made; or so many seconds where these are more, up to the last part."""

GRACE = 0.1
"""Part of ``max_seconds`` by which a fixed number of draws may exceed it before it is cut."""

_CALLS_MARGIN, _SECONDS_MARGIN = 1.0, 0.5  # calls have no grace


def reason_of(end: BaseException) -> StopReason:
    """Return why a run ends, from the exception that ends it."""
    if isinstance(end, BudgetSpent):
        return cast("StopReason", end.reason)
    if isinstance(end, StopRun):
        return "observer"
    return "error" if isinstance(end, Exception) else "interrupted"


class Stopping:
    """Ends a run when its budget is spent, or its draws are good enough.

    Parameters
    ----------
    target
        The exact potential, whose calls count.
    clock
        The clock whose seconds count.
    extensions
        Sessions of a run that is kept, whose limits take the place of the recipe's.
    journal
        Its position says in which session the run is.

    Attributes
    ----------
    stopped
        Why the run ends, if it ends now.
    length
        How the number of draws is determined.
    """

    def __init__(
        self,
        asked: Recipe,
        target: RecordingPotential,
        clock: Clock,
        extensions: Sequence[Extension] = (),
        journal: Journal | None = None,
    ) -> None:
        self._asked, self._journal = asked, journal
        self._extensions = tuple(extensions) or (Extension.of(asked),)
        self._target, self._clock, self._chains = target, clock, asked.chains
        self.stopped: StopReason = "draws"
        self.length: Length = "fixed"
        self._pace = Pace()
        self._grace = self._reserve = 0.0
        self._most_calls: tuple[Extension, float] | None = None
        self._most_draws = 0
        self._next_look = 0
        self._limited_by = self.now
        timed = any(each.budget.max_seconds is not None for each in self._extensions)
        self._is_timed = timed
        # without files and limits on seconds, so many calls need no look at any limit
        self._counts_down, self._free = clock.is_plain and not timed, 0.0

    @property
    def now(self) -> Extension:
        """The sizes and limits of the session that the run is in."""
        if len(self._extensions) == 1 or self._journal is None:
            return self._extensions[0]
        at = self._journal.position
        return next(
            (each for each in self._extensions[::-1] if each.after < at), self._extensions[0]
        )

    @property
    def budget(self) -> Budget:
        """The limits that hold now."""
        return self.now.budget

    def _default_calls(self, now: Extension) -> float:
        """Return the limit on calls where none is given, in a session."""
        if self._most_calls is None or self._most_calls[0] is not now:
            self._most_calls = now, now.asked_of(self._asked).most_calls
        return self._most_calls[1]

    def guard(self, kind: CallKind, n: int) -> None:
        """Raise ``BudgetSpent`` before a call that the budget does not allow for.

        Parameters
        ----------
        n
            Positions, or data rows, to be evaluated.
        """
        if kind != "rows" and n <= self._free:
            self._free -= n
        elif not self._clock.replays:
            more = n / self._target.n_rows if kind == "rows" else n
            self._check(more, self._clock.now())

    def _check(self, more: float, elapsed: float) -> None:
        seconds, calls = elapsed / (1.0 + self._grace - self._reserve), self._target.n_calls + more
        now = self.now
        reason: StopReason | None = now.budget.spent(calls, seconds)
        if reason is None and now.budget.max_calls is None and calls > self._default_calls(now):
            reason = "default_max_calls"
        if reason is not None:
            raise BudgetSpent(reason)
        if self._counts_down:
            most = now.budget.max_calls
            self._free = (self._default_calls(now) if most is None else most) - calls

    def hold_back(self, wanted: bool) -> None:
        """Leave time, before the first draw, for draws of a surrogate, if ``wanted``."""
        most = self.budget.max_seconds
        short = 0.0 if most is None else min(SECONDS / most, MOST_RESERVE)
        self._reserve = max(RESERVE, short) if wanted else 0.0

    def check_before_iteration(self, *, exact: bool) -> None:
        """Raise ``BudgetSpent`` where no calls or seconds are left for an iteration.

        Parameters
        ----------
        exact
            Whether it may evaluate whole positions, and not only data rows.
        """
        if self._free < self._chains:
            self._check(self._chains if exact else 0, self._clock.elapsed())

    def check_time(self) -> None:
        """Raise ``BudgetSpent`` where the seconds are over; it leaves no trace."""
        if self._is_timed and self.budget.max_seconds is not None and not self._clock.replays:
            self._check(0, self._clock.now())

    def check(self) -> None:
        """Raise ``BudgetSpent`` where a limit is exceeded."""
        if self._free <= 0:
            self._check(0, self._clock.elapsed())

    # --- how many draws ---

    def warmup_begins(self) -> None:
        """Take note that the kernel of iterations from here on is the one that will draw."""
        self._grace = 0.0
        self._pace.begin(*self._use())

    def iteration_done(self) -> None:
        """Take note of what an iteration of warm-up has cost."""
        self._pace.add(*self._use())

    def _use(self) -> tuple[float, float]:
        return self._target.n_calls, self._clock.elapsed() - self._clock.seconds["training"]

    def draws_begin(self, wanted: int, kept: int = 0) -> int:
        """Return the most draws of each chain that the budget allows, before they are kept.

        Parameters
        ----------
        kept
            Draws that there are already, where limits are others from here on.
        """
        self.stopped, self.length, self._grace, self._reserve = "draws", "fixed", 0.0, 0.0
        self._next_look = max(self._first_look(), kept)
        self._limited_by = self.now
        most: float = max(wanted - kept, 0)
        if self.budget.calls is not None:
            rest = self.budget.calls - self._target.n_calls
            most = self._allowed(most, "max_calls", self._pace.limit_draws(0, rest, _CALLS_MARGIN))
        if self.budget.max_seconds is not None:
            rest = self.budget.max_seconds - self._clock.elapsed()
            n = self._pace.limit_draws(1, rest, _SECONDS_MARGIN)
            self._grace = GRACE if n < math.inf else 0.0
            most = self._allowed(most, "max_seconds", n)
        self._most_draws = kept + int(most)
        return self._most_draws

    def allows(self, kept: int, wanted: int) -> bool:
        """Return whether one more draw of each chain is to be kept.

        Parameters
        ----------
        wanted
            Draws asked for; more or fewer than when draws began where another session goes on.
        """
        if kept >= min(self._most_draws, wanted) and self._limited_by != self.now:
            self.draws_begin(wanted, kept)
        return kept < self._most_draws

    def _allowed(self, most: float, limit: StopReason, n: float) -> float:
        if n < most:
            self.stopped = limit
        return min(n, most)

    def cut(self, reason: StopReason) -> None:
        """Take note that a limit, or something else, ends the run before its planned end."""
        self.stopped, self.length = reason, "cut"

    # --- draws that are good enough ---

    def is_used_up(self, part: Budget) -> bool:
        """Return whether a part of the budget is used up, or will be by the next iteration."""
        calls = self._target.n_calls + self._chains
        return part.spent(calls, self._clock.elapsed()) is not None

    def until_look(self, kept: int) -> int:
        """Return how many more draws of each chain are kept for sure, unless a limit ends them."""
        looks = self.budget.looks_at_draws and kept < self._next_look
        return (min(self._most_draws, self._next_look) if looks else self._most_draws) - kept

    def reached(self, kept: History) -> StopReason | None:
        """Return the target that the kept draws have reached; None between looks at them."""
        if not self.budget.looks_at_draws or len(kept) < self._next_look:
            return None
        with self._clock.phase("sampling"):
            return self._look(kept)

    def _look(self, kept: History) -> StopReason | None:
        transform = self._target.transform
        draws = transform.to_bounded(kept.positions())[..., transform.varies]
        growth = _GROWTH
        if self.budget.target_ess is not None:
            ess = _least_ess(draws, self.budget.target_ess)
            if ess >= self.budget.target_ess:
                return self.judge("target_ess")
            if ess > 0:
                growth = min(max(self.budget.target_ess / ess, 1.05), _MOST_GROWTH)
        if self.budget.target_rhat is not None:
            growth = min(growth, _GROWTH)
            if float(np.max(r_hat(draws))) <= self.budget.target_rhat:
                return self.judge("target_rhat")
        if self.budget.target_mcse is not None:
            error = float(np.max(relative_error(draws)))
            if error <= self.budget.target_mcse:
                return self.judge("target_mcse")
            if self.budget.target_rhat is None and error < np.inf:
                needed = np.square(error / self.budget.target_mcse)
                growth = max(growth, min(float(needed), _MOST_GROWTH))
        self._next_look = math.ceil(growth * len(kept))
        return None

    @property
    def expected(self) -> int:
        """Kept draws of each chain at which the run may end, as far as that is known."""
        looked = self._next_look if self.budget.looks_at_draws else self._most_draws
        return min(self._most_draws, looked)

    def judge(self, reason: StopReason) -> StopReason:
        """Take note of the goal that draws or answers have reached, and return it."""
        self.stopped, self.length = reason, "judged"
        return reason

    def _first_look(self) -> int:
        if self.budget.target_ess is None or self.budget.target_rhat is not None:
            return FIRST_LOOK
        # draws are hardly ever worth more than twice as many independent ones
        return max(FIRST_LOOK, math.ceil(0.5 * self.budget.target_ess / self._chains))


def _least_ess(draws: FloatArray, target: float) -> float:
    """Return the least effective sample size; an upper bound of it where the target is not met."""
    least = math.inf
    for kind in LEAST_OF:
        least = float(np.minimum(least, np.min(effective_sample_size(draws, kind))))
        if not least >= target:  # or NaN
            break
    return least
