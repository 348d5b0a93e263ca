"""Positions beside those that a run wants, spread where the density is high by all that is told."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from surrokit.capabilities import INITIAL
from surrokit.potentials import InitialPotential, Potential
from surrokit.targets.bounds import transform_of
from surrokit.types import FloatArray

_STARTS = 500  # positions that a target is asked for, to learn where it expects itself to be
_WIDER = 1.5  # than what was told spreads: a surrogate has to see where the density falls
_UNKNOWN = 2.0  # standard deviation of positions where nothing is known


def spread(
    target: Potential, told: FloatArray, pending: FloatArray, n: int, rng: np.random.Generator
) -> FloatArray:
    """Return positions at which evaluations would teach a surrogate, shape (n, dim).

    They are evenly spread by the normal distribution that fits what was told, each position
    weighted by a power of its density that leaves enough of them. Where too little was told, they
    spread as the starts of chains do.

    The target knows the values at positions ``told`` (k, dim), in the parameters' own coordinates,
    and may say where it expects itself to be; the run wants positions ``pending`` (m, dim).
    """
    from scipy.special import ndtri

    line = transform_of(target)
    z = line.to_unbounded(told)
    with np.errstate(all="ignore"):
        values = target.value(z) if len(z) else np.zeros(0)
    known = np.isfinite(values) & np.isfinite(z).all(axis=1)
    z, values = z[known], values[known]
    enough = 2 * z.shape[1] + 2
    if len(z) >= enough:
        mean, covariance = _fit(z, values, enough)
    else:
        mean, covariance = _expected(target, line.to_unbounded(pending), rng)
    # a Latin hypercube: each number is once in each of n intervals of the same probability
    strata = rng.permuted(np.tile(np.arange(n)[:, None], len(mean)), axis=0)
    normals = ndtri((strata + rng.uniform(1e-9, 1.0 - 1e-9, strata.shape)) / n)
    return np.asarray(line.to_bounded(mean + normals @ np.linalg.cholesky(covariance).T))


def _fit(z: FloatArray, values: FloatArray, enough: int) -> tuple[FloatArray, FloatArray]:
    """Return mean and covariance of positions, weighted by a power of their density."""
    power = 1.0
    while True:
        weights = np.exp(-power * (values - values.min()))
        weights /= weights.sum()
        if 1.0 / np.sum(weights**2) >= enough or power < 1e-9:
            break
        power *= 0.7
    mean = weights @ z
    away = z - mean
    covariance = (away.T * weights) @ away
    scales = np.diag(np.maximum(np.diag(covariance), 1e-12))
    return mean, _WIDER**2 * (0.9 * covariance + 0.1 * scales)


def _expected(
    target: Any, pending: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return mean and covariance of where a target is expected to be."""
    if INITIAL in target.capabilities:
        starts = cast(InitialPotential, target).initial(rng, _STARTS)
        return starts.mean(axis=0), np.diag(starts.var(axis=0))
    dim = pending.shape[1]
    return pending.mean(axis=0), _UNKNOWN**2 * np.eye(dim)
