"""The frame of corrections: how they start, and what follows a decision."""

from __future__ import annotations

import numpy as np

from surrokit.contracts.dynamics import Status
from surrokit.contracts.potential import Potential
from surrokit.contracts.sampler import ChainState, Proposal, StepInfo
from surrokit.kernel.acceptance import DIVERGENCE, choose, metropolis, of_moves
from surrokit.types import BoolArray, Cache, FloatArray


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
