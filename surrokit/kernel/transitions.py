"""Transitions of chains: tuned on the way, and thereafter."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import attrs
import numpy as np

from surrokit.contracts.potential import Potential
from surrokit.contracts.sampler import ChainState, Decider, Kernel, Sampler, StepInfo, Tuning
from surrokit.kernel.binding import Binding
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
        state = moves.renew(state)
        state, info = decider.decide(state, moves.kernel.propose(state, rng), rng)
        moves.update(state, info)
        yield state, info


def follow(
    kernels: Iterable[Kernel], decider: Decider, state: ChainState, rng: np.random.Generator
) -> Iterator[tuple[ChainState, StepInfo]]:
    """Run chains without end, by kernels in turn.

    Parameters
    ----------
    kernels
        All of one sampler on one potential.
    decider
        Decides on proposals, by any potential.
    state
        Of the chains, with a cache of the kernels.
    rng
        Generator.

    Yields
    ------
    state, info
        After each transition.
    """
    for kernel in itertools.cycle(kernels):
        state, info = decider.decide(state, kernel.propose(state, rng), rng)
        yield state, info


def with_shorter_steps(sampler: Sampler, potential: Potential, tuning: Tuning) -> list[Kernel]:
    """Return a sampler's kernels with the tuned step size, and with shorter ones."""
    steps = [tuning.step_size * part for part in STEPS]
    return [sampler.bind(potential, attrs.evolve(tuning, step_size=step)) for step in steps]
