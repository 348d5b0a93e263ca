"""The Metropolis rule, shared by corrections and sub-chains."""

from __future__ import annotations

import numpy as np

from surrokit.contracts.dynamics import Status
from surrokit.contracts.sampler import ChainState, Proposal
from surrokit.types import BoolArray, FloatArray

DIVERGENCE = 1000.0
"""Error of the energy on a path, in nats, beyond which the integrator is not trusted there."""


def metropolis(log_ratio: FloatArray, rng: np.random.Generator) -> tuple[BoolArray, FloatArray]:
    """Accept each chain with probability min(1, exp(log_ratio)).

    Parameters
    ----------
    log_ratio : ndarray of shape (n,)
        Log of the ratio of proposed to current density, with all corrections; NaN never accepts.
    rng
        One uniform number is drawn for every chain, whatever the ratios.

    Returns
    -------
    accepted : ndarray of bool, shape (n,)
    acceptance : ndarray of shape (n,)
        The probabilities used.
    """
    acceptance = np.exp(np.minimum(np.where(np.isnan(log_ratio), -np.inf, log_ratio), 0.0))
    return rng.random(len(log_ratio)) < acceptance, acceptance


def of_moves(
    state: ChainState, proposal: Proposal, accepted: BoolArray, acceptance: FloatArray
) -> tuple[BoolArray, FloatArray]:
    """Return the outcome of a decision for moves alone, without proposals to stay.

    A proposal to stay needs no decision: it would always be "accepted", however stuck the chain is.
    The same holds for a step too small to change a position in double precision.

    Parameters
    ----------
    state, proposal
        The chains before the decision, and their proposals.
    accepted : ndarray of bool, shape (n,)
        Chains whose proposal was accepted, proposals to stay included.
    acceptance : ndarray of shape (n,)
        Probability of acceptance.

    Returns
    -------
    accepted : ndarray of bool, shape (n,)
        Chains that moved.
    acceptance : ndarray of shape (n,)
        NaN where the proposal was to stay.
    """
    there = (proposal.positions == state.positions).all(axis=1)
    stays = (there | ~proposal.moved) & (proposal.status == Status.OK)
    return accepted & ~stays, np.where(stays, np.nan, acceptance)


def choose(accepted: BoolArray, proposed: FloatArray, current: FloatArray) -> FloatArray:
    """Return proposed rows where accepted, and current ones elsewhere.

    Parameters
    ----------
    accepted : ndarray of bool, shape (n,)
        Whether each row is accepted.
    proposed, current : ndarray of shape (n, ...)
        Arrays whose first axis runs over chains; they may be returned themselves.
    """
    if accepted.all():
        return proposed
    return np.where(accepted.reshape((-1,) + (1,) * (proposed.ndim - 1)), proposed, current)
