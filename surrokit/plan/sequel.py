"""What a run goes by that is taken up again: other sizes and limits from somewhere on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from surrokit.cost.budget import Budget
from surrokit.errors import ConfigurationError
from surrokit.model.journal import Journal
from surrokit.plan.recipe import Recipe

GOALS: Final = ("target_ess", "target_rhat", "target_mcse")
"""Limits that draws reach by being good enough."""

LIMITS: Final = ("max_calls", "max_seconds")
"""Limits that cut a run."""


@attrs.frozen(kw_only=True)
class Sequel:
    """Sizes and limits of a session of a run; what was decided before stays as it was.

    Parameters
    ----------
    draws
        Draws of each chain in all; None where left open.
    budget
        Limits of the whole run.
    after
        Number of the last event in the journal before this session; 0 for the first one.
    """

    draws: int | None
    budget: Budget
    after: int = attrs.field(default=0, eq=False)

    @classmethod
    def of(cls, recipe: Recipe) -> Sequel:
        """Return the sizes and limits that a recipe has."""
        return cls(draws=recipe.draws, budget=recipe.budget)

    def most_draws(self, recipe: Recipe) -> int:
        """Return the most draws of each chain."""
        return attrs.evolve(recipe, draws=self.draws, budget=self.budget).most_draws


class Sequels:
    """The sessions of a run, of which the journal tells the one that the run is in.

    Parameters
    ----------
    sequels
        At least one, in order.
    journal
        The run's.
    """

    def __init__(self, sequels: Sequence[Sequel], journal: Journal) -> None:
        self._sequels = tuple(sequels)
        self._journal = journal
        self._most_calls: tuple[Sequel, float] | None = None

    def most_calls(self, recipe: Recipe) -> float:
        """Return the default limit on calls in the session that the run is in."""
        now = self.now
        if self._most_calls is None or self._most_calls[0] is not now:
            asked = attrs.evolve(recipe, draws=now.draws, budget=now.budget)
            self._most_calls = now, asked.most_calls
        return self._most_calls[1]

    @property
    def now(self) -> Sequel:
        """The sizes and limits that hold now."""
        at = self._journal.position
        return next((each for each in self._sequels[::-1] if each.after < at), self._sequels[0])


def make_room(changed: Mapping[str, Any], account: Mapping[str, Any]) -> dict[str, Any]:
    """Return the limits that change, so that more draws are made than there are.

    Goals that a run has reached would end it at once again: they no longer hold.

    Parameters
    ----------
    changed
        Limits that its user changes, by name.
    account
        What its file says of the run so far.

    Raises
    ------
    ConfigurationError
        If a limit has cut the run, and stays.
    """
    ended_by = account.get("stopped") if account.get("state") == "ended" else None
    if ended_by in LIMITS and ended_by not in changed:
        raise ConfigurationError(
            f"the run has ended as {ended_by} was reached, which leaves no room for more draws; "
            f"pass a larger {ended_by} too, or None for no limit"
        )
    met = dict.fromkeys(GOALS) if ended_by in GOALS else {}
    return {**met, **changed}
