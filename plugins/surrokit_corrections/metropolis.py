"""Metropolis decisions."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.interfaces import OK, ChainState, Decider, Proposal, StepInfo
from surrokit.kernel.hamiltonian import carry_out, metropolis, proposed_values, state_at
from surrokit.potentials import Potential
from surrokit.types import Cache, Capabilities, FloatArray


def decide_by_values(
    state: ChainState, proposal: Proposal, values: FloatArray, rng: np.random.Generator
) -> tuple[ChainState, StepInfo]:
    """Return what comes of log u < U(q) - U(q') + c, with exact ``values (n,)`` U(q')."""
    with np.errstate(invalid="ignore"):
        log_ratio = state.values - values + proposal.log_correction
    log_ratio = np.where(proposal.status == OK, log_ratio, -np.inf)
    return carry_out(state, proposal, values, *metropolis(log_ratio, rng))


@attrs.frozen(kw_only=True, eq=False)
class Metropolis:
    """Accept where log u < U(q) - U(q') + c, with exact U at both ends.

    Algorithms 1 and 3 and appendix A of Zhang, Shahbaba and Zhao (2017): c comes with the
    proposal and holds no exact value, so whatever made the proposal cannot bias the draws. All
    chains that moved are evaluated in one call; those made on the exact potential bring their
    values along and cost nothing.
    """

    @property
    def needs(self) -> Capabilities:
        """Nothing but values."""
        return frozenset()

    def bind(self, potential: Potential) -> MetropolisDecider:
        """Return what decides by an exact potential."""
        return MetropolisDecider(potential=potential)


@attrs.frozen(kw_only=True, eq=False)
class MetropolisDecider(Decider):
    """Decides by one exact potential."""

    potential: Potential

    def start(self, positions: FloatArray, cache: Cache, source: Potential | None) -> ChainState:
        """Return the state at ``positions (n, dim)``; n values unless the cache has them."""
        return state_at(self.potential, positions, cache, source)

    def decide(
        self, state: ChainState, proposal: Proposal, rng: np.random.Generator
    ) -> tuple[ChainState, StepInfo]:
        """Accept or reject every chain's proposal."""
        values = proposed_values(self.potential, state, proposal)
        return decide_by_values(state, proposal, values, rng)
