"""Transitions of chains that are tuned on the way."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from surrokit.contracts.sampler import ChainState, Decider, StepInfo
from surrokit.kernel.binding import Binding
from surrokit.types import FloatArray


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
