"""Exploration in rounds: exact evaluations where the surrogate of those so far has its mass."""

from __future__ import annotations

import attrs

from surrokit.capabilities import GRADIENT
from surrokit.contracts.explorer import Past
from surrokit.potentials import Potential
from surrokit.types import Capabilities
from surrokit_learning.rounds.allowance import Allowance
from surrokit_learning.rounds.exploration import RoundsExploration
from surrokit_learning.rounds.settings import RoundsSettings


@attrs.frozen(kw_only=True, eq=False)
class Rounds(RoundsSettings):
    """Evaluate where the surrogate has its mass, learn, and look where it has it now.

    The first points lie about the mode, or in a box where there are no gradients. Then each round
    runs a sampler on the surrogate, which is free, evaluates the target where its chains end, and
    so sees, at points that the surrogate has not learnt from, what the exact decision will make of
    its draws. It ends when that is good enough.
    """

    def recall(self, past: Past) -> RecallingRounds:
        """Return the explorer that goes on from what earlier runs on a target have left."""
        return RecallingRounds(rounds=self, past=past)

    def bind(self, potential: Potential, calls: int | None = None) -> RoundsExploration:
        """Return the exploration of a potential, of which so many ``calls`` can be paid for."""
        gradients = GRADIENT in potential.capabilities if self.gradients is None else self.gradients
        start = ("mode" if gradients else "sobol") if self.start_by == "auto" else self.start_by
        return RoundsExploration(
            settings=self,
            potential=potential,
            pays_gradients=gradients,
            start_by=start,
            allowance=Allowance(
                settings=self,
                potential=potential,
                pays_gradients=gradients,
                is_shared=start == "mode",
                calls=calls,
            ),
        )


@attrs.frozen(kw_only=True, eq=False)
class RecallingRounds:
    """Go on from what earlier runs have left.

    If their draws say that a surrogate of all they have paid for is good, nothing is paid.

    Parameters
    ----------
    rounds
        What to do otherwise, from there.
    past
        The draws.
    """

    rounds: Rounds
    past: Past

    @property
    def needs(self) -> Capabilities:
        """What the rounds need."""
        return self.rounds.needs

    def bind(self, potential: Potential, calls: int | None = None) -> RoundsExploration:
        """Return the exploration of a potential, of which so many ``calls`` can be paid for."""
        return attrs.evolve(self.rounds.bind(potential, calls), past=self.past)
