"""The Metropolis-Hastings correction with the full exact potential."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.contracts.dynamics import Status
from surrokit.contracts.potential import Potential
from surrokit.contracts.sampler import ChainState, Proposal, StepInfo
from surrokit.kernel.acceptance import metropolis
from surrokit.types import Cache, Capabilities, FloatArray
from surrokit_corrections.decision import decided, exact_in_use, state_at


@attrs.frozen(kw_only=True, eq=False)
class Metropolis:
    """Accept where log u < U(q) - U(q') + c, with exact U at both ends.

    Algorithms 1 and 3 and appendix A of Zhang, Shahbaba and Zhao (2017): c comes with the
    proposal and holds no exact value, so whatever made the proposal cannot bias the draws. All
    chains that moved are evaluated in one call; those made on the exact potential bring their
    values along and cost nothing.

    Parameters
    ----------
    potential
        The exact one.
    """

    potential: Potential | None = None

    @property
    def needs(self) -> Capabilities:
        """Nothing but values."""
        return frozenset()

    def with_potential(self, potential: Potential) -> Metropolis:
        """Return a copy that decides by another exact potential."""
        return attrs.evolve(self, potential=potential)

    def prepared(self, near: FloatArray) -> Metropolis:  # noqa: ARG002
        """Return itself: values at the proposals are all it needs."""
        return self

    def start(self, positions: FloatArray, cache: Cache, source: Potential | None) -> ChainState:
        """Return the state at ``positions (n, dim)``; pays n values unless the cache has them."""
        return state_at(self._exact(), positions, cache, source)

    def decide(
        self, state: ChainState, proposal: Proposal, rng: np.random.Generator
    ) -> tuple[ChainState, StepInfo]:
        """Accept or reject every chain's proposal."""
        values = self._proposed_values(state, proposal)
        with np.errstate(invalid="ignore"):
            log_ratio = state.values - values + proposal.log_correction
        log_ratio = np.where(proposal.status == Status.OK, log_ratio, -np.inf)
        accepted, acceptance = metropolis(log_ratio, rng)
        return decided(state, proposal, values, accepted, acceptance)

    def _proposed_values(self, state: ChainState, proposal: Proposal) -> FloatArray:
        if proposal.source is self._exact():
            return proposal.cache["value"]
        values = state.values.copy()
        rows = np.flatnonzero(proposal.moved & (proposal.status == Status.OK))
        if rows.size:
            values[rows] = self._exact().value(proposal.positions[rows])
        return values

    def _exact(self) -> Potential:
        return exact_in_use("metropolis", self.potential)
