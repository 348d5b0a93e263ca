"""Where a surrogate that seems good may yet lack a part of the target's mass."""

from __future__ import annotations

import itertools

import attrs
import numpy as np

from surrokit.interfaces import ChainState, Correction, Sampler, Tuning
from surrokit.kernel.kernel import STEPS, follow
from surrokit.potentials import Potential
from surrokit.surrogate.umbrella import Edges, Umbrella
from surrokit.types import FloatArray
from surrokit_learning.region.region import Confined, Region

CHAINS = 60
"""Chains that look: many draws at once cost little more than few."""

TURNS = 20
"""Transitions with each step size: on the surrogate, and again under the umbrella."""

EDGES = 4
"""Edges of the mass that are looked at; the other positions are draws under the umbrella."""


def look_around(
    surrogate: Potential,
    sampler: Sampler,
    tuning: Tuning,
    correction: Correction,
    *,
    region: Region,
    starts: FloatArray,
    n: int,
    rng: np.random.Generator,
) -> tuple[FloatArray, Edges]:
    """Return draws of a surrogate V by chains with shorter steps, and positions about its mass.

    Draws of V say how good V is where it has its mass. Where the target has more, V is too high,
    and has no draws.

    Parameters
    ----------
    surrogate
        V.
    sampler, tuning, correction
        The kernel; it needs no more of a potential than its gradient.
    region
        Where V is believed; moves out of it are refused.
    starts : ndarray of shape (chains, dim)
        Draws of V.
    n
        How many positions.
    rng
        Generator.

    Returns
    -------
    draws : ndarray of shape (chains, dim)
        Where the chains are in the end.
    outer
        The positions, and V there.
    """

    def draw(potential: Potential, starts: FloatArray) -> list[ChainState]:
        decider = correction.bind(Confined(potential=potential, region=region))
        cache = sampler.bind(potential, tuning).cache(starts)
        state = decider.start(starts, cache, potential)
        chains = follow(sampler, potential, tuning, decider, state, rng)
        return list(itertools.islice(chains, TURNS * len(STEPS)))

    states = draw(surrogate, starts[np.arange(CHAINS) % len(starts)])
    draws = np.concatenate([each.positions for each in states])
    values = np.concatenate([each.values for each in states])
    edges = Edges.of(draws, values, surrogate, min(EDGES, n), rng)
    last = states[-1].positions
    far = draw(Umbrella.about(surrogate, values), last)[-1].positions
    chosen = far[rng.permutation(len(far))[: n - len(edges)]]
    outer = attrs.evolve(
        edges,
        positions=np.concatenate([edges.positions, chosen]),
        values=np.concatenate([edges.values, surrogate.value(chosen)]),
    )
    return last[: len(starts)], outer
