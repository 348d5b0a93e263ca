"""Logarithms of normalising constants: of a surrogate from its draws, of the target from rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from surrokit.diagnostics import mean_error
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.kernel.jumps import StudentT
from surrokit.types import FloatArray
from surrokit.weighted.correction import measure_degrees, sum_without
from surrokit.weighted.round import Estimate, Round, combine_degrees, count_rounds

FEWEST = 8
"""Draws of each chain that a bridge takes at least."""


def bridge(
    potential: Callable[[FloatArray], FloatArray], draws: FloatArray, rng: np.random.Generator
) -> Estimate:
    """Return the logarithm of the integral of exp(-V), by bridge sampling from draws of V.

    A multivariate t is fitted to the first half of each chain. The second half and as many draws of
    the t make the iterated optimal bridge (Meng and Wong 1996, Statistica Sinica 6:831-860). Its
    error is the one of Fruehwirth-Schnatter (2004, doi:10.1111/j.1368-423X.2004.00125.x), with the
    autocorrelation of the chains by :func:`surrokit.diagnostics.mean_error`.

    Parameters
    ----------
    potential
        V, from positions (n, dim) to values (n,); infinite outside its support.
    draws : ndarray of shape (chains, n, dim)
        Of chains on V, in the coordinates that V is a density in.

    Returns
    -------
    Estimate
        A number, worth 1 / error^2 effective draws.

    Raises
    ------
    ShapeError
        If draws have another shape, or chains are too short.
    ConfigurationError
        If V is not finite at one of the draws.
    """
    if draws.ndim != 3 or draws.shape[1] < FEWEST:
        raise ShapeError(
            f"a bridge needs draws (chains, n, dim) with n at least {FEWEST}, got {draws.shape}"
        )
    draws = draws[:, :: max(len(draws) * draws.shape[1] // max(4000, len(draws) * FEWEST), 1)]
    half, dim = draws.shape[1] // 2, draws.shape[2]
    law = StudentT.fit(draws[:, :half].reshape(-1, dim))
    at = draws[:, half:].reshape(-1, dim)
    other = law.draw(len(at), rng)
    ours, theirs = (-np.asarray(potential(z)) - law.log_density(z) for z in (at, other))
    if not np.isfinite(ours).all():
        raise ConfigurationError(
            "the potential must be finite at its own draws; pass the potential that they are of"
        )
    return _solve(ours.reshape(len(draws), -1), theirs)


def log_normalizer(
    rounds: Sequence[Round], surrogates: Sequence[Estimate], calls: float
) -> Estimate:
    """Return the logarithm of the integral of exp(-U), log Z = log Z_V + log mean exp(V - U).

    The bias of the logarithm, about -Var(w) / 2n, is removed by the jackknife, which also tells the
    error. Rounds are combined as in :class:`surrokit.weighted.answer.Answer`.

    Parameters
    ----------
    rounds
        At least one. Log weights less log evens are V - U itself, not up to a constant.
    surrogates
        What :func:`bridge` says of the V of each round.
    calls
        Exact calls of the whole run.
    """
    counts = count_rounds(rounds)
    found = [_log_mean(each) for each in rounds]
    values = [mean + v.value for (mean, _, _), v in zip(found, surrogates, strict=True)]
    parts = np.square(counts) * [variance for _, variance, _ in found]
    total = parts.sum() + np.square(counts) @ np.square([v.error for v in surrogates])
    degrees = np.array([[degrees] for _, _, degrees in found])
    of_total = combine_degrees(parts[:, None], degrees, np.atleast_1d(total))[0]
    return _estimate(float(counts @ values), float(total), float(of_total), calls)


def _log_mean(found: Round) -> tuple[float, float, float]:
    """Return the log mean of exp(V - U) over V, its variance, and the degrees of that."""
    logs, even = found.log_weights, np.exp(found.log_evens)
    n, largest = len(logs), logs.max()
    if not np.isfinite(largest):
        return -np.inf, np.inf, 1.0
    weights = np.exp(logs - largest)
    plain, rest = np.log(weights.sum() / even.sum()), sum_without(weights)
    if not rest.all():
        return float(largest + plain), np.inf, 1.0
    without = np.log(rest / sum_without(even))
    moves = without - without.mean()
    variance = (n - 1) / n * np.square(moves).sum()
    mean = largest + n * plain - (n - 1) * without.mean()
    return float(mean), float(variance), float(measure_degrees(moves[:, None])[0])


def _estimate(value: float, variance: float, degrees: float, calls: float) -> Estimate:
    with np.errstate(divide="ignore"):
        effective = 1.0 / np.asarray(variance)
    return Estimate(
        value=np.asarray(value),
        error=np.sqrt(np.asarray(variance)),
        effective=np.asarray(effective),
        degrees=np.asarray(degrees),
        calls=calls,
    )


def _solve(ours: FloatArray, theirs: FloatArray) -> Estimate:
    """Return the bridge's estimate from log ratios of densities at both sets of draws.

    With x a log ratio less the logarithm sought, and as many draws on both sides, mean of
    expit(x) over theirs equals mean of expit(-x) over ours. One side falls, the other rises.
    """

    def gap(log_constant: float) -> float:
        return float(expit(theirs - log_constant).mean() - expit(log_constant - ours).mean())

    seen = np.concatenate([ours.ravel(), theirs[np.isfinite(theirs)]])
    found = float(brentq(gap, seen.min() - 40.0, seen.max() + 40.0, xtol=1e-10))
    at_ours, at_theirs = expit(found - ours), expit(theirs - found)
    first = mean_error(at_ours[..., None])[0] / at_ours.mean()
    second = at_theirs.std() / at_theirs.mean() / np.sqrt(len(theirs))
    return _estimate(found, first**2 + second**2, np.inf, 0.0)
