"""What a run goes by that is taken up again: other sizes and limits from somewhere on."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from surrokit.cost.budget import Budget
from surrokit.cost.journal import Journal
from surrokit.plan.recipe import Recipe


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
