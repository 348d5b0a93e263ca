"""The watch over warm-up for chains that are not where the others are."""

from __future__ import annotations

import numpy as np

from surrokit.capabilities import GRADIENT
from surrokit.errors import NumericalError
from surrokit.interfaces import ChainState
from surrokit.mode.search import find_mode
from surrokit.potentials import Potential, with_gradient
from surrokit.result.records import Stray
from surrokit.types import BoolArray, FloatArray, IntArray

BLOCK = 50
"""Iterations after which chains are compared, and that have to be left for one begun again."""

FEWEST = 3
"""Chains that it takes to tell which of them is elsewhere."""

ROOM = 10.0
"""Nats, beside one for each dimension, by which a chain may be above the others."""

SEARCHED = 50
"""Gradients, beside one for each dimension, that a search from a stray chain may pay for."""

PROBE = 1e-3
"""Part of the way to another chain over which the curvature along it is taken."""


class Strays:
    """The chains of a warm-up, compared block by block.

    A chain has strayed if the least potential that it saw in a block is far above what the others
    saw in the same block. A draw from among them then takes its place. One that sits in a mode of
    its own stays.

    Parameters
    ----------
    target
        The exact potential.

    Attributes
    ----------
    found
        All that were found so far.
    """

    def __init__(self, target: Potential) -> None:
        self.found: list[Stray] = []
        self._target = target
        self._values: list[FloatArray] = []

    def look_at(
        self, state: ChainState, iteration: int, room: int, rng: np.random.Generator
    ) -> ChainState:
        """Return the chains after an iteration, with those that strayed begun again.

        Parameters
        ----------
        state
            The chains.
        iteration
            Iterations of the run so far.
        room
            Iterations of warm-up that are left.
        rng
            Draws which chain takes the place of another; nothing is drawn where none strayed.
        """
        self._values.append(state.values)
        if len(self._values) < BLOCK:
            return state
        values, self._values = np.stack(self._values), []
        if len(state.values) < FEWEST or np.isnan(values).any() or room < BLOCK:
            return state
        above = _above_others(values)
        strayed = above > ROOM + self._target.dim
        if not strayed.any():
            return state
        sources = np.arange(len(above))
        for chain in np.flatnonzero(strayed & ~self._settled(len(above))):
            there = int(rng.choice(np.flatnonzero(~strayed)))
            again = not self._is_in_a_mode(state, int(chain), there)
            sources[chain] = there if again else chain
            self.found.append(
                Stray(
                    iteration=iteration,
                    chain=int(chain),
                    above=float(above[chain]),
                    begun_again=again,
                )
            )
        return _rearrange(state, sources)

    def _settled(self, chains: int) -> BoolArray:
        """Return the chains (n,) that are known to sit in modes of their own."""
        settled = np.zeros(chains, dtype=bool)
        settled[[stray.chain for stray in self.found if not stray.begun_again]] = True
        return settled

    def _is_in_a_mode(self, state: ChainState, chain: int, other: int) -> bool:
        """Return whether a search from a chain ends near it, before it is as low as another."""
        if GRADIENT not in self._target.capabilities:
            return False
        start, ceiling = state.positions[chain], state.values[other]
        try:
            found = find_mode(
                self._target,
                start,
                max_calls=SEARCHED + self._target.dim,
                until=lambda _, value, __: bool(value <= ceiling),
            )
        except NumericalError:
            return False
        way = state.positions[other] - found.position
        return found.converged and found.value > ceiling and self._rises(found.position, way)

    def _rises(self, position: FloatArray, way: FloatArray) -> bool:
        """Return whether the potential is convex at a position along a way (dim,).

        In a flat tail, where a search ends for want of a slope, it is concave.
        """
        ends = position + PROBE * np.array([[1.0], [-1.0]]) * way
        with np.errstate(all="ignore"):
            _, gradients = with_gradient(self._target).value_and_gradient(ends)
        return bool((gradients[0] - gradients[1]) @ way > 0)


def _above_others(values: FloatArray) -> FloatArray:
    """Return by how much each chain's least potential exceeds the median of the others', (n,).

    Parameters
    ----------
    values : ndarray of shape (iterations, chains)
        Potentials.
    """
    others = [np.median(np.delete(values, i, axis=1)) for i in range(values.shape[1])]
    return np.asarray(values.min(axis=0) - others)


def _rearrange(state: ChainState, sources: IntArray) -> ChainState:
    """Return chains that stand where others do: chain i where chain ``sources[i]`` is."""
    return ChainState(
        positions=state.positions[sources],
        values=state.values[sources],
        cache={name: array[sources] for name, array in state.cache.items()},
    )
