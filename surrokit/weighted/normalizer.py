"""Logarithms of normalising constants: of a surrogate, and of the target from chains or rounds."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtri, expit

from surrokit.diagnostics import mean_error
from surrokit.errors import ConfigurationError, NumericalError, ShapeError
from surrokit.kernel.jumps import StudentT
from surrokit.potentials import Potential
from surrokit.types import FloatArray
from surrokit.weighted.correction import measure_degrees, pareto_k_of, sum_without
from surrokit.weighted.round import Estimate, Round, combine_degrees, count_rounds

FEWEST = 8
"""Draws of each chain that a bridge takes at least."""

MOST = 2000
"""Draws on each side of a bridge at most."""

HEAVY = 0.7
"""Pareto's k of importance weights from which on their mean cannot be relied on (Vehtari, Simpson,
Gelman, Yao and Gabry 2024, JMLR 25:72)."""

_NARROW, _INNER = 0.8, 0.9
# part of the draws' variance that a normal distribution in place of V has, and its part that is
# kept, about the centre: it must not go on where exp(-U) ends


def bridge(
    potential: Callable[[FloatArray], FloatArray],
    draws: FloatArray,
    rng: np.random.Generator,
    *,
    values: FloatArray | None = None,
    most: int = MOST,
) -> Estimate:
    """Return the logarithm of the integral of exp(-V), by bridge sampling from draws of V.

    A multivariate t is fitted to the first half of each chain. The second half and as many draws of
    the t make the iterated optimal bridge (Meng and Wong 1996, Statistica Sinica 6:831-860). Its
    error is the one of Fruehwirth-Schnatter (2004, doi:10.1111/j.1368-423X.2004.00125.x), with the
    autocorrelation of the chains by :func:`surrokit.diagnostics.mean_error`.

    Draws of another potential U make a bridge to U, with importance weights w = exp(U - V) at its
    draws alone: for t's density r and any function h, the integral of exp(-U) is
    E_r[h exp(-V) / r] / E_U[h w]. U is not evaluated at draws of the t. This is exact for any V
    whose tails are not heavier than those of U.

    Parameters
    ----------
    potential
        V, from positions (n, dim) to values (n,); infinite outside its support.
    draws : ndarray of shape (chains, n, dim)
        Of chains on V, in the coordinates that V is a density in; or on U.
    values : ndarray of shape (chains, n), optional
        U at the draws; None if they are draws of V.
    most
        Draws on each side at most.

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
    NumericalError
        If importance weights have too heavy a tail.
    """
    if draws.ndim != 3 or draws.shape[1] < FEWEST:
        raise ShapeError(
            f"a bridge needs draws (chains, n, dim) with n at least {FEWEST}, got {draws.shape}"
        )
    n, dim = draws.shape[1:]
    law = StudentT.fit(_thinned(draws[:, : n // 2], MOST).reshape(-1, dim))
    late = _thinned(draws[:, n // 2 :], most)
    at = late.reshape(-1, dim)
    other = law.draw(len(at), rng)
    with np.errstate(over="ignore"):
        known, theirs = potential(at), -np.asarray(potential(other)) - law.log_density(other)
    ours = -np.asarray(known) - law.log_density(at)
    if values is None and not np.isfinite(ours).all():
        raise ConfigurationError(
            "the potential must be finite at its own draws; pass the potential that they are of"
        )
    shape = late.shape[:2]
    logs = np.zeros(shape)
    if values is not None:
        logs = _thinned(values[:, n // 2 :], most) - np.reshape(known, shape)
    return _solve(ours.reshape(shape), theirs, logs)


def evidence_of_chains(
    positions: FloatArray,
    values: FloatArray,
    rng: np.random.Generator,
    surrogate: Potential | None = None,
) -> Estimate:
    """Return the logarithm of the integral of exp(-U) from exact draws alone, without a call.

    The bridge is to the surrogate, or to a normal distribution narrower than the draws where there
    is none or it is less precise, without its tails (Robert and Wraith 2009,
    doi:10.1063/1.3275622).

    Parameters
    ----------
    positions : ndarray of shape (chains, n, dim)
        Draws in the sampling coordinates.
    values : ndarray of shape (chains, n)
        U there.

    Raises
    ------
    ShapeError
        If chains are too short.
    NumericalError
        If neither is near enough to U.
    """
    flat = positions[:, : positions.shape[1] // 2].reshape(-1, positions.shape[2])
    normal, end = StudentT.about(flat, _NARROW), chdtri(flat.shape[1], 1.0 - _INNER)

    def inner(places: FloatArray) -> FloatArray:
        within = normal.distances(places) <= end
        return np.where(within, np.log(_INNER) - normal.log_density(places), np.inf)

    found: list[Estimate] = []
    for potential in (inner,) if surrogate is None else (surrogate.value, inner):
        with contextlib.suppress(NumericalError):
            found.append(bridge(potential, positions, rng, values=values))
    if not found:
        raise NumericalError(
            "the evidence cannot be estimated from these draws alone, as no density at hand is "
            "near enough to the posterior. Pass the target, which is then evaluated at more "
            "positions: run.log_evidence(target)"
        )
    return min(found, key=lambda each: float(each.error))


def _thinned(array: FloatArray, most: int) -> FloatArray:
    """Return every k-th draw of each chain, (chains, m, ...), with chains * m about ``most``."""
    chains, n = array.shape[:2]
    return array[:, :: max(chains * n // max(most, chains * FEWEST // 2), 1)]


def evidence_of_rounds(
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


def _solve(ours: FloatArray, theirs: FloatArray, logs: FloatArray) -> Estimate:
    """Return the bridge's estimate from log ratios of densities at both sets of draws.

    With x a log ratio less the logarithm sought, and as many draws on both sides, mean of
    expit(x) over theirs equals mean of expit(-x) over ours, by weights. One side falls, the other
    rises.
    """
    highest = logs.max()
    if not np.isfinite(highest):
        raise NumericalError("no draw is where the potential has mass; take a nearer potential")
    weights = np.exp(logs - highest)
    if (weights != 1.0).any() and pareto_k_of(weights.reshape(1, -1)) > HEAVY:
        raise NumericalError("importance weights have too heavy a tail; take a nearer potential")
    level = highest + np.log(weights.mean())
    weights /= weights.mean()

    def gap(log_constant: float) -> float:
        at_ours = (weights * expit(log_constant - ours)).mean()
        return float(expit(theirs - log_constant).mean() - at_ours)

    seen = np.concatenate([ours[np.isfinite(ours)], theirs[np.isfinite(theirs)]])
    found = float(brentq(gap, seen.min() - 40.0, seen.max() + 40.0, xtol=1e-10))
    at_ours, at_theirs = weights * expit(found - ours), expit(theirs - found)
    first = mean_error(at_ours[..., None])[0] / at_ours.mean()
    second = at_theirs.std() / at_theirs.mean() / np.sqrt(len(theirs))
    return _estimate(found - level, first**2 + second**2, np.inf, 0.0)
