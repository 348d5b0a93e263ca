"""Watches a run's budget while it is spent."""

from __future__ import annotations

import math

import numpy as np

from surrokit.budget import Budget, BudgetSpent, StopReason, calls_paid
from surrokit.clock import Clock
from surrokit.diagnostics import LEAST_OF, effective_sample_size, r_hat
from surrokit.exact_calls import CallKind
from surrokit.history import History
from surrokit.recording import RecordingPotential
from surrokit.transforms import Transform
from surrokit.types import FloatArray

FIRST_LOOK = 50
"""Kept draws of a chain before which nothing is said of their quality."""

_GROWTH = 1.2  # from one look to the next: few of them, and at most a fifth is drawn in vain
_MOST_GROWTH = 2.0


class Stopping:
    """Says when a run's budget is spent, or its draws are good enough.

    Parameters
    ----------
    budget
        The limits.
    target
        The exact potential, whose calls count.
    clock
        Whose seconds count.
    transform
        To the coordinates in which draws are judged.
    chains
        What an iteration pays at least for, if every chain moves.

    Attributes
    ----------
    next_look
        Kept draws of each chain at which they are looked at next.
    """

    def __init__(
        self,
        budget: Budget,
        target: RecordingPotential,
        clock: Clock,
        transform: Transform,
        chains: int,
    ) -> None:
        self.budget = budget
        self._target = target
        self._clock = clock
        self._transform = transform
        self._chains = chains
        self.next_look = self._first_look()

    def guard(self, kind: CallKind, n: int) -> None:
        """Raise ``BudgetSpent`` before a call that the budget does not allow for.

        Parameters
        ----------
        kind
            Kind of call.
        n
            Positions, or data rows, to be evaluated.
        """
        self._check(calls_paid({kind: n}, self._target.n_rows if kind == "rows" else None))

    def _check(self, more: float) -> None:
        reason = self.budget.spent(self._target.paid + more, self._clock.elapsed())
        if reason is not None:
            raise BudgetSpent(reason)

    def check_before_iteration(self, *, exact: bool) -> None:
        """Raise ``BudgetSpent`` where an iteration cannot be paid for.

        Parameters
        ----------
        exact
            Whether it may pay for a whole position of each chain, and not only for data rows.
        """
        self._check(self._chains if exact else 0)

    def used(self, part: Budget) -> bool:
        """Return whether a part of the budget is used up, or the next iteration would do so."""
        calls = self._target.paid + self._chains
        return part.spent(calls, self._clock.elapsed()) is not None

    def reached(self, kept: History) -> StopReason | None:
        """Return which of the targets the kept draws have reached, at growing intervals."""
        if not self.budget.looks_at_draws or len(kept) < self.next_look:
            return None
        draws = self._transform.to_bounded(kept.positions())
        growth = _GROWTH
        if self.budget.target_ess is not None:
            ess = _least_ess(draws, self.budget.target_ess)
            if ess >= self.budget.target_ess:
                return "target_ess"
            if ess > 0:
                growth = min(max(self.budget.target_ess / ess, 1.05), _MOST_GROWTH)
        if self.budget.target_rhat is not None:
            growth = min(growth, _GROWTH)
            if float(np.max(r_hat(draws))) <= self.budget.target_rhat:
                return "target_rhat"
        self.next_look = math.ceil(growth * len(kept))
        return None

    def draws_begin(self) -> None:
        """Take note that there are no kept draws yet, or again none."""
        self.next_look = self._first_look()

    def _first_look(self) -> int:
        if self.budget.target_ess is None or self.budget.target_rhat is not None:
            return FIRST_LOOK
        # draws are hardly ever worth more than twice as many independent ones
        return max(FIRST_LOOK, math.ceil(0.5 * self.budget.target_ess / self._chains))


def _least_ess(draws: FloatArray, target: float) -> float:
    """Return the least effective sample size; where it is far from the target, a bound of it."""
    least = math.inf
    for kind in LEAST_OF:
        least = float(np.minimum(least, np.min(effective_sample_size(draws, kind))))
        if not least * _MOST_GROWTH > target:  # or NaN: the next look is as late as can be
            break
    return least
