"""Metropolis decisions."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.interfaces import ChainState, Proposal, Status, StepInfo
from surrokit.kernel.hamiltonian import DIVERGENCE, choose, metropolis, of_moves
from surrokit.potentials import Potential
from surrokit.types import BoolArray, Cache, Capabilities, FloatArray


def state_at(
    exact: Potential, positions: FloatArray, cache: Cache, source: Potential | None
) -> ChainState:
    """Return the state of chains at positions; pays their values unless the cache has them.

    Parameters
    ----------
    exact
        What decides.
    positions : ndarray of shape (n, dim)
        Where the chains are.
    cache
        The sampler's, on the potential ``source``.
    source
        Whose values the cache holds.
    """
    values = cache["value"] if source is exact else exact.value(positions)
    return ChainState(positions=positions, values=values, cache=cache)


def carry_out(
    state: ChainState,
    proposal: Proposal,
    values: FloatArray,
    accepted: BoolArray,
    acceptance: FloatArray,
) -> tuple[ChainState, StepInfo]:
    """Return the state after a decision, and what is to be said of it.

    Parameters
    ----------
    state, proposal
        Where the chains were, and where they might go.
    values : ndarray of shape (n,)
        Exact U at the proposed positions; NaN where it is not known.
    accepted : ndarray of bool, shape (n,)
        Who goes.
    acceptance : ndarray of shape (n,)
        With what probability, or an unbiased estimate of that.
    """
    after = ChainState(
        positions=choose(accepted, proposal.positions, state.positions),
        values=choose(accepted, values, state.values),
        cache={
            name: choose(accepted, array, state.cache[name])
            for name, array in proposal.cache.items()
        },
    )
    return after, _info(proposal, *of_moves(state, proposal, accepted, acceptance))


def decide_by_values(
    state: ChainState, proposal: Proposal, values: FloatArray, rng: np.random.Generator
) -> tuple[ChainState, StepInfo]:
    """Return what comes of log u < U(q) - U(q') + c.

    Parameters
    ----------
    state, proposal
        Where the chains are, with exact values, and where they might go.
    values : ndarray of shape (n,)
        Exact U at the proposed positions.
    rng
        Draws u.
    """
    with np.errstate(invalid="ignore"):
        log_ratio = state.values - values + proposal.log_correction
    log_ratio = np.where(proposal.status == Status.OK, log_ratio, -np.inf)
    return carry_out(state, proposal, values, *metropolis(log_ratio, rng))


def _info(proposal: Proposal, accepted: BoolArray, acceptance: FloatArray) -> StepInfo:
    divergent = proposal.status != Status.OK
    path_acceptance = acceptance
    if proposal.log_path_ratio is not None:
        ratio = np.where(np.isnan(proposal.log_path_ratio), -np.inf, proposal.log_path_ratio)
        ratio = np.where(divergent, -np.inf, ratio)
        divergent = ratio < -DIVERGENCE
        path_acceptance = np.exp(np.minimum(ratio, 0.0))
    if proposal.divergent is not None:
        divergent = divergent | proposal.divergent
    return StepInfo(
        accepted=accepted,
        acceptance=acceptance,
        path_acceptance=path_acceptance,
        status=proposal.status,
        divergent=divergent,
        n_steps=proposal.n_steps,
        excursion=proposal.excursion,
        energy=proposal.energy,
        ends=proposal.positions if proposal.keeps_source else None,
    )


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
class MetropolisDecider:
    """Decides by one exact potential.

    Parameters
    ----------
    potential
        The exact one.
    """

    potential: Potential

    def prepare(self, near: FloatArray) -> MetropolisDecider:  # noqa: ARG002
        """Return itself: values at the proposals are all it needs."""
        return self

    def start(self, positions: FloatArray, cache: Cache, source: Potential | None) -> ChainState:
        """Return the state at ``positions (n, dim)``; pays n values unless the cache has them."""
        return state_at(self.potential, positions, cache, source)

    def decide(
        self, state: ChainState, proposal: Proposal, rng: np.random.Generator
    ) -> tuple[ChainState, StepInfo]:
        """Accept or reject every chain's proposal."""
        return decide_by_values(state, proposal, self._proposed_values(state, proposal), rng)

    def suppose(
        self, state: ChainState, proposal: Proposal, rng: np.random.Generator, *, accepted: bool
    ) -> ChainState:
        """Return the state if all proposals were accepted, or none; its values are zero."""
        none = np.zeros(len(state.positions))
        values = np.full(len(none), -np.inf if accepted else np.inf)
        before = attrs.evolve(state, values=none)
        after, _ = decide_by_values(before, proposal, values, rng)
        return attrs.evolve(after, values=none)

    def _proposed_values(self, state: ChainState, proposal: Proposal) -> FloatArray:
        if proposal.source is self.potential:
            return proposal.cache["value"]
        values = state.values.copy()
        rows = np.flatnonzero(proposal.moved & (proposal.status == Status.OK))
        if rows.size:
            values[rows] = self.potential.value(proposal.positions[rows])
        return values
