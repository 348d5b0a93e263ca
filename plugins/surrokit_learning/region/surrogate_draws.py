"""Draws from a surrogate, which cost nothing but time."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.interfaces import Correction, Sampler, Tuning
from surrokit.kernel.kernel import Binding, mover, warm_up
from surrokit.limits import one_thread
from surrokit.potentials import Potential
from surrokit.surrogate.umbrella import Edges
from surrokit.types import FloatArray
from surrokit_learning.region.outskirts import look_around
from surrokit_learning.region.region import Confined, Region


@attrs.frozen(kw_only=True, eq=False)
class SurrogateDraws:
    """Where chains on a surrogate ended, and what was found on the way.

    Parameters
    ----------
    positions : ndarray of shape (n, dim)
        The last position of each chain.
    values : ndarray of shape (n,)
        V there.
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
    covariance: FloatArray | None,
    step_size: float | None,
    n_transitions: int,
    rng: np.random.Generator,
    n_outer: int = 0,
) -> SurrogateDraws:
    """Run a sampler on a surrogate V, tuned on the way; moves out of a region are refused.

    Parameters
    ----------
    surrogate
        V.
    sampler, correction
        The kernel, not bound yet.
    region
        Where V is believed.
    starts : ndarray of shape (n, dim)
        Where the chains start.
    covariance, step_size
        Where tuning begins.
    n_transitions
        How many for each chain.
    rng
        Generator.
    n_outer
        Positions about the mass of V to look for.
    """
    moves = Binding(sampler, surrogate, len(starts))
    decider = correction.bind(Confined(potential=surrogate, region=region))
    moves.tune(n_transitions, covariance=covariance, step_size=step_size)
    kept, accepted = [], []
    with one_thread():
        for i, (state, info) in enumerate(warm_up(moves, decider, starts, n_transitions, rng)):
            if 2 * i >= n_transitions:
                kept.append(state.positions)
                accepted.append(info.accepted)
        tuning, positions, outer = moves.tuning, state.positions, None
        if n_outer:
            positions, outer = look_around(
                surrogate,
                mover(sampler),
                tuning,
                correction,
                region=region,
                starts=positions,
                n=n_outer,
                rng=rng,
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
