"""Transitions of chains: tuned on the way, and thereafter."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import cast

import attrs
import numpy as np

from surrokit.contracts.potential import Potential
from surrokit.contracts.sampler import ChainState, Decider, Sampler, StepInfo, Tuning
from surrokit.kernel.binding import Binding
from surrokit.limits.deadline import check_deadline
from surrokit.types import FloatArray

STEPS = (1.0, 0.5, 0.25)
"""Parts of the tuned step size that transitions take in turn. A step that is right on the average
is too long for narrow tails: chains would neither enter nor leave them, all of them alike, and
look as if they had mixed."""


def warm_up(
    moves: Binding,
    decider: Decider,
    starts: FloatArray,
    n_transitions: int,
    rng: np.random.Generator,
) -> Iterator[tuple[ChainState, StepInfo]]:
    """Run chains on one potential, and tune their kernel as they go.

    Parameters
    ----------
    moves
        Their kernel, bound and set to be tuned.
    decider
        Decides on proposals, by any potential.
    starts : ndarray of shape (chains, dim)
        Where they begin.
    n_transitions
        How many for each chain.
    rng
        Generator.

    Yields
    ------
    state, info
        After each transition.
    """
    state = decider.start(starts, moves.cache(starts), moves.kernel.potential)
    for _ in range(n_transitions):
        check_deadline()
        state = moves.renew(state)
        state, info = decider.decide(state, moves.kernel.propose(state, rng), rng)
        moves.update(state, info)
        yield state, info


def follow(
    sampler: Sampler,
    potential: Potential,
    tuning: Tuning,
    decider: Decider,
    state: ChainState,
    rng: np.random.Generator,
) -> Iterator[ChainState]:
    """Run tuned chains without end, with the tuned step size and shorter ones in turn.

    Parameters
    ----------
    sampler, potential, tuning
        Of the chains' kernel.
    decider
        Decides on proposals, by any potential.
    state
        Of the chains, with a cache of the kernel.
    rng
        Generator.

    Yields
    ------
    state
        After each transition.
    """
    steps = [tuning.step_size * part for part in STEPS]
    kernels = [sampler.bind(potential, attrs.evolve(tuning, step_size=step)) for step in steps]
    for kernel in itertools.cycle(kernels):
        check_deadline()
        state, _ = decider.decide(state, kernel.propose(state, rng), rng)
        yield state


def mover(sampler: Sampler) -> Sampler:
    """Return what makes the moves of a sampler: the kernel of sub-chains, else the sampler."""
    return cast("Sampler", getattr(sampler, "kernel", sampler))
