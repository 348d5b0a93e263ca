"""Draws of a regression's posterior, by the parts that suit it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from surrokit.compose import sample
from surrokit.contracts.potential import Potential
from surrokit.result.run import Run
from surrokit.types import FloatArray
from surrokit_sklearn.posteriors.laplace import laplace_of, misfit_of

_TRIALS = 8
_NEAR = 0.6  # nats between a posterior and a normal one: independent moves are accepted often then
_WARMUP = 20
_LONGEST = 40
"""Draws for each effective one that is wanted, at most."""

MANY = 20_000
"""Rows from which on a few of them decide on a move."""


def draw_posterior(
    target: Potential,
    start: FloatArray,
    few: Callable[[int], Potential],
    n_rows: int,
    *,
    by_rows: bool,
    chains: int,
    target_ess: float,
    seed: int,
    settings: Mapping[str, Any] | None,
) -> Run:
    """Return a run on a regression's posterior.

    With :data:`MANY` rows or more, where the posterior is near its Laplace approximation, moves are
    independent draws of that, decided by a few rows, exactly. Elsewhere the chains move by
    Hamiltonian dynamics. Parts are never picked by the clock, so a fit can be made again.

    Parameters
    ----------
    target
        The posterior, with gradient and Hessian.
    start : ndarray of shape (dim,)
        Where the search for the mode starts.
    few
        Makes the posterior of every k-th row alone.
    n_rows
        How many rows there are.
    by_rows
        Whether the target is a sum over rows.
    chains, target_ess
        As for :func:`surrokit.sample`.
    seed
        Of all random numbers.
    settings
        Of :func:`surrokit.sample`, in place of what is chosen here.
    """
    rng = np.random.default_rng(seed)
    shared: dict[str, Any] = {
        "chains": chains,
        "target_ess": target_ess,
        "draws": int(np.ceil(_LONGEST * target_ess / chains)),
        "seed": rng,
        "progress": False,
    }
    normal = laplace_of(target, start, few, n_rows)
    if normal is None:
        return sample(target, **{**shared, "sampler": "hmc", **(settings or {})})
    # rows are expanded at the mode, the search for which begins at the mean of the chains
    starts = normal.draw_around(chains, rng)
    parts: dict[str, Any] = {"initial": starts, "sampler": "hmc"}
    if by_rows and n_rows >= MANY and misfit_of(normal, target, _TRIALS, rng) <= _NEAR:
        parts |= {"sampler": "gaussian", "surrogate": normal, "warmup": _WARMUP}
        parts["correction"] = "subsampled"
    return sample(target, **{**shared, **parts, **(settings or {})})
