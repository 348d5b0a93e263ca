"""Draws from a surrogate, which cost nothing but time."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.contracts.potential import Potential
from surrokit.contracts.sampler import Correction, Sampler, Tuning
from surrokit.kernel.tuner import Tuner
from surrokit.types import FloatArray
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
    """

    positions: FloatArray
    values: FloatArray
    covariance: FloatArray | None
    tuning: Tuning
    accepted: float


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
) -> SurrogateDraws:
    """Run a sampler on a surrogate V, tuned on the way; moves out of a region are refused.

    Parameters
    ----------
    surrogate
        V.
    sampler, correction
        The kernel; whatever it is bound to.
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
    """
    moves = sampler.with_potential(surrogate)
    decides = correction.with_potential(Confined(potential=surrogate, region=region))
    tuner = Tuner.of(moves, n_transitions)
    tuned = tuner.start(*starts.shape, covariance=covariance, step_size=step_size)
    moves = tuner.tuned(tuned, moves)
    state = decides.start(starts, moves.cache(starts), moves.potential)
    kept, accepted = [], []
    for i in range(n_transitions):
        state, info = decides.decide(state, moves.propose(state, rng), rng)
        tuned = tuner.update(tuned, state.positions, info)
        moves = tuner.tuned(tuned, moves)
        if 2 * i >= n_transitions:
            kept.append(state.positions)
            accepted.append(info.accepted)
    return SurrogateDraws(
        positions=state.positions,
        values=surrogate.value(state.positions),
        covariance=tuned.covariance if moves.tunes else _covariance(np.concatenate(kept)),
        tuning=tuner.tuning(tuned),
        accepted=float(np.mean(accepted)),
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
