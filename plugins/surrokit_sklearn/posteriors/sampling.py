"""Draws of a regression's posterior, by the parts that suit it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np

from surrokit.compose import sample
from surrokit.contracts.potential import Potential
from surrokit.result.run import Run
from surrokit.targets.bounds import transform_of
from surrokit.types import FloatArray
from surrokit_sklearn.posteriors.laplace import laplace_of, misfit_of

_TRIALS = 8
_NEAR = 0.6  # nats between a posterior and a normal one: independent moves are accepted often then
_WARMUP_NEAR = 20
_WARMUP = 200
_LONGEST = 40
"""Draws for each effective one that is wanted, at most."""

MANY = 20_000
"""Rows from which on a few of them decide on a move."""


@attrs.frozen(kw_only=True)
class Goals:
    """What a run is to reach.

    Parameters
    ----------
    chains, target_ess
        As for :func:`surrokit.sample`.
    """

    chains: int
    target_ess: float


def sample_by(
    target: Potential,
    rng: np.random.Generator,
    goals: Goals,
    parts: Mapping[str, Any],
    settings: Mapping[str, Any] | None,
) -> Run:
    """Return a run with some parts; a user's settings take their place."""
    shared: dict[str, Any] = {
        "chains": goals.chains,
        "target_ess": goals.target_ess,
        "warmup": _WARMUP,
        "draws": int(np.ceil(_LONGEST * goals.target_ess / goals.chains)),
        "seed": rng,
        "progress": False,
    }
    return sample(target, **{**shared, **parts, **(settings or {})})


def draw_posterior(
    target: Potential,
    start: FloatArray,
    few: Callable[[int], Potential],
    n_rows: int,
    *,
    goals: Goals,
    rng: np.random.Generator,
    settings: Mapping[str, Any] | None,
) -> Run:
    """Return a run on a regression's posterior.

    With :data:`MANY` rows or more, where the posterior is near its Laplace approximation, moves are
    independent draws of that, decided by a few rows, exactly. Elsewhere the chains move by
    Hamiltonian dynamics with its covariance as inverse mass matrix. Parts are never picked by the
    clock, so that a fit can be made again.

    Parameters
    ----------
    target
        The posterior: a sum over rows with gradient and Hessian.
    start : ndarray of shape (dim,)
        Where the search for the mode starts.
    few
        Makes the posterior of every k-th row alone.
    n_rows
        How many rows there are.
    goals
        What the run is to reach.
    rng
        Of all random numbers.
    settings
        Of :func:`surrokit.sample`, in place of what is chosen here.
    """
    normal = laplace_of(target, start, few, n_rows)
    if normal is None:
        return sample_by(target, rng, goals, {"sampler": "hmc"}, settings)
    starts = normal.draw_around(goals.chains, rng)
    parts: dict[str, Any] = {"initial": transform_of(target).to_bounded(starts)}
    if n_rows >= MANY and misfit_of(normal, target, _TRIALS, rng) <= _NEAR:
        rows = {"centre": normal.mean, "hessian": normal.precision}
        parts |= {"sampler": "gaussian", "surrogate": normal, "correction": ("subsampled", rows)}
        parts["warmup"] = _WARMUP_NEAR
    else:
        covariance = normal.factor @ normal.factor.T
        parts |= {"sampler": "hmc", "metric": ("dense", {"inverse_mass": covariance})}
    return sample_by(target, rng, goals, parts, settings)
