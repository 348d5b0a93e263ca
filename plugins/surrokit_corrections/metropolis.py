"""The Metropolis-Hastings correction with the full exact potential."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.acceptance import metropolis
from surrokit.errors import ConfigurationError
from surrokit.protocols import Potential
from surrokit.records import ChainState, Proposal, Status, StepInfo
from surrokit.types import BoolArray, Cache, Capabilities, FloatArray

DIVERGENCE = 1000.0
"""Loss of energy on a path, in nats, beyond which the integrator is not to be trusted there."""


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

    def start(self, positions: FloatArray, cache: Cache, source: Potential | None) -> ChainState:
        """Return the state at ``positions (n, dim)``; pays n values unless the cache has them."""
        exact = self._exact()
        values = cache["value"] if source is exact else exact.value(positions)
        return ChainState(positions=positions, values=values, cache=cache)

    def decide(
        self, state: ChainState, proposal: Proposal, rng: np.random.Generator
    ) -> tuple[ChainState, StepInfo]:
        """Accept or reject every chain's proposal."""
        values = self._proposed_values(state, proposal)
        with np.errstate(invalid="ignore"):
            log_ratio = state.values - values + proposal.log_correction
        log_ratio = np.where(proposal.status == Status.OK, log_ratio, -np.inf)
        accepted, acceptance = metropolis(log_ratio, rng)
        after = ChainState(
            positions=_chosen(accepted, proposal.positions, state.positions),
            values=_chosen(accepted, values, state.values),
            cache={
                name: _chosen(accepted, array, state.cache[name])
                for name, array in proposal.cache.items()
            },
        )
        return after, _info(proposal, accepted, acceptance)

    def _proposed_values(self, state: ChainState, proposal: Proposal) -> FloatArray:
        if proposal.source is self._exact():
            return proposal.cache["value"]
        values = state.values.copy()
        rows = np.flatnonzero(proposal.moved & (proposal.status == Status.OK))
        if rows.size:
            values[rows] = self._exact().value(proposal.positions[rows])
        return values

    def _exact(self) -> Potential:
        if self.potential is None:
            raise ConfigurationError(
                "metropolis has no exact potential to decide by; call with_potential first"
            )
        return self.potential


def _chosen(accepted: BoolArray, proposed: FloatArray, current: FloatArray) -> FloatArray:
    if accepted.all():
        return proposed
    shape = (-1,) + (1,) * (proposed.ndim - 1)
    return np.where(accepted.reshape(shape), proposed, current)


def _info(proposal: Proposal, accepted: BoolArray, acceptance: FloatArray) -> StepInfo:
    divergent = proposal.status != Status.OK
    path_acceptance = acceptance
    if proposal.log_path_ratio is not None:
        ratio = np.where(np.isnan(proposal.log_path_ratio), -np.inf, proposal.log_path_ratio)
        ratio = np.where(divergent, -np.inf, ratio)
        divergent = ratio < -DIVERGENCE
        path_acceptance = np.exp(np.minimum(ratio, 0.0))
    return StepInfo(
        accepted=accepted,
        acceptance=acceptance,
        path_acceptance=path_acceptance,
        status=proposal.status,
        divergent=divergent,
        n_steps=proposal.n_steps,
    )
