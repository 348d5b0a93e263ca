"""How many exact evaluations an exploration in rounds may pay for."""

from __future__ import annotations

import attrs

from surrokit.model.model import calls_per_gradient
from surrokit.potentials import Potential
from surrokit_learning.modes.limits import Limits, unnoticed
from surrokit_learning.rounds.bill import Bill
from surrokit_learning.rounds.settings import RoundsSettings

SEARCHED = 0.1
"""Part of the evaluations that may be paid to look for other modes than the first one found."""


@attrs.frozen(kw_only=True, eq=False)
class Allowance:
    """What settings and a budget allow.

    Parameters
    ----------
    settings, potential, pays_gradients
        Of the exploration.
    is_shared
        Whether a half of what is affordable is left to what follows.
    calls
        Exact calls that a run's budget leaves; None for no budget.
    """

    settings: RoundsSettings
    potential: Potential
    pays_gradients: bool
    is_shared: bool
    calls: int | None

    @property
    def affordable(self) -> int | None:
        """Evaluations that the calls left pay for; None for no limit."""
        if self.calls is None or not self.pays_gradients:
            return self.calls
        return max(self.calls // calls_per_gradient(self.potential), 1)

    def most(self, dim: int, chains: int) -> int:
        """Return how many evaluations are paid at most."""
        if self.settings.evaluations is not None:
            return max(self.settings.evaluations, chains + 1)
        most = 100 + 10 * dim if self.pays_gradients else 200 + 20 * dim
        if self.affordable is None or not self.is_shared:
            return most
        return min(most, max(self.affordable // 2, chains + 1))

    def spare(self, most: int) -> int:
        """Return how many more are paid where the surrogate lacks a part of the target's mass."""
        if self.settings.evaluations is not None:
            return 0
        return most if self.affordable is None else max(min(most, self.affordable // 2 - most), 0)

    def search(self, bill: Bill, dim: int, paid: int) -> Limits:
        """Return what a search for modes may pay for that has paid for so much."""
        # a search is not an exploration: unless told, its cost does not shorten what follows
        affordable, most = self.affordable, self.most(dim, 0)
        limit = bill.most_paid // 2
        if self.settings.evaluations is None:
            limit = 2 * most if affordable is None else min(2 * most, affordable // 2)
        later = SEARCHED * (most if affordable is None else affordable)
        return Limits(
            total=limit - bill.paid + paid,
            later=later,
            searches=self.settings.searches,
            spare=int(2 * later) if self.settings.evaluations is None else 0,
            beside=unnoticed(affordable),
        )
