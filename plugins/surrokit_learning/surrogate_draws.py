"""Draws from a surrogate, which cost nothing but time, and points about its mass."""

from __future__ import annotations

import itertools

import attrs
import numpy as np

from surrokit.capabilities import GRADIENT, HESSIAN
from surrokit.errors import NumericalError
from surrokit.interfaces import ChainState, Correction, Evaluations, Sampler, Tuning
from surrokit.kernel.kernel import STEPS, Binding, follow, warm_up
from surrokit.limits import one_thread
from surrokit.mode.descent import descend
from surrokit.potentials import Potential, with_hessian
from surrokit.surrogate.umbrella import Edges, Umbrella
from surrokit.types import FloatArray
from surrokit_learning.designs import Design, inverse_curvature, normal_design
from surrokit_learning.region import Confined, Region

CHAINS = 60
"""Chains that look about the mass: many draws at once cost little more than few."""

TURNS = 20
"""Transitions of these with each step size: on the surrogate, and again under the umbrella."""

EDGES = 4
"""Edges of the mass that are looked at; the other positions are draws under the umbrella."""

LOWER = 1.0
"""Nats by which the mode of a surrogate must lie below the best point for the next ones to be about
it."""


@attrs.frozen(kw_only=True, eq=False)
class SurrogateDraws:
    """Where chains on a surrogate V ended, and what was found on the way.

    Parameters
    ----------
    positions, values : ndarrays of shape (n, dim) and (n,)
        The last position of each chain, and V there.
    covariance : ndarray of shape (dim, dim) or None
        Of the draws; None where they hardly moved.
    tuning
        What the sampler needs on this surrogate.
    accepted : float
        Part of the moves that were accepted on V, over the second half.
    outer
        Positions about the mass of V, and V there; None where nobody asked.
    """

    positions: FloatArray
    values: FloatArray
    covariance: FloatArray | None
    tuning: Tuning
    accepted: float
    outer: Edges | None = None


def surrogate_draws(
    surrogate: Potential,
    sampler: Sampler,
    correction: Correction,
    *,
    region: Region,
    starts: FloatArray,
    n_transitions: int,
    rng: np.random.Generator,
    n_outer: int = 0,
) -> SurrogateDraws:
    """Run a sampler on a surrogate V from ``starts (n, dim)``, tuned on the way.

    Moves out of a region where V is trusted are rejected, and tuning begins with its covariance.
    ``n_outer`` positions about the mass of V are looked for as well.
    """
    moves = Binding(sampler, surrogate, len(starts))
    decider = correction.bind(Confined(potential=surrogate, region=region))
    moves.tune(n_transitions, covariance=region.covariance, step_size=None)
    kept, accepted = [], []
    with one_thread():
        for i, (state, info) in enumerate(warm_up(moves, decider, starts, n_transitions, rng)):
            if 2 * i >= n_transitions:
                kept.append(state.positions)
                accepted.append(info.accepted)
        tuning, positions, outer = moves.tuning, state.positions, None
        if n_outer:
            kernel = sampler.kernel, tuning, correction
            positions, outer = look_around(
                surrogate, *kernel, region=region, starts=positions, n=n_outer, rng=rng
            )
    return SurrogateDraws(
        positions=positions,
        values=surrogate.value(positions),
        covariance=tuning.covariance if sampler.tunes else _covariance(np.concatenate(kept)),
        tuning=tuning,
        accepted=float(np.mean(accepted)),
        outer=outer,
    )


def _covariance(draws: FloatArray) -> FloatArray | None:
    """Return the covariance, shrunk to its diagonal; None if a coordinate hardly moved."""
    n, dim = draws.shape
    covariance = np.cov(draws, rowvar=False).reshape(dim, dim)
    variance = np.diag(covariance).copy()
    if not (np.isfinite(covariance).all() and (variance > 0).all()):
        return None
    weight = n / (n + 5.0 + dim)
    return np.asarray(weight * covariance + (1.0 - weight) * np.diag(variance))


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
    and has no draws. The chains start at draws of V, ``starts (chains, dim)``.
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


def mode_of(surrogate: Potential, start: FloatArray) -> FloatArray:
    """Return the mode of a surrogate, or where there is none to be found, the start (dim,)."""
    if GRADIENT not in surrogate.capabilities:
        return start
    try:
        # a surrogate's gradients cost no exact calls, whatever they are made of
        found = descend(surrogate, start)
    except NumericalError:
        return start
    return found.position if found.converged else start


def design_below(
    surrogate: Potential, seen: Evaluations, n: int, rng: np.random.Generator
) -> Design | None:
    """Return n draws about the surrogate's mode if that is lower than all that was seen.

    Draws from a surrogate that do not move may be held back by the region of its points: the mass
    is beyond it, farther along a valley in which the search for the mode has stopped. This is for
    one that has learnt from gradients: values tell nothing of what lies beyond their points.
    """
    if HESSIAN not in surrogate.capabilities:
        return None
    best = seen.positions[int(np.argmin(seen.values))]
    mode = mode_of(surrogate, best)
    at_mode, at_best = surrogate.value(np.stack([mode, best]))
    if not at_mode < at_best - LOWER:
        return None
    hessian = with_hessian(surrogate).hessian(mode[None])[0]
    return normal_design(mode, inverse_curvature(hessian), n, rng)
