"""Logarithms of normalising constants: of a surrogate, and of the target from chains or rounds."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import cast

import attrs
import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtri, expit, logsumexp

from surrokit.capabilities import COVARIANCE
from surrokit.diagnostics import mean_error
from surrokit.errors import ConfigurationError, NumericalError, ShapeError
from surrokit.kernel.jumps import Jumps, StudentT, jumps_of
from surrokit.modes import Modes
from surrokit.potentials import CovariancePotential, Potential, straight_of
from surrokit.types import FloatArray
from surrokit.weighted.correction import measure_degrees, sum_without
from surrokit.weighted.round import Estimate, Round, combine_degrees, count_rounds
from surrokit.weighted.rounds import LARGEST_K, MOST_VARIANCE, pareto_k

FEWEST = 8
"""Draws of each chain that a bridge takes at least."""

ValueOf = Callable[[FloatArray], FloatArray]
"""From positions (n, dim) to values of a potential (n,)."""

MOST = 8000
"""Draws on each side of a bridge at most."""

MOST_ERRORS = 5.0
"""Monte Carlo errors that the two sides of a bridge may differ by."""

_SMALL = 1e-3
# by so much the largest importance weight may move their mean, however heavy their tail is

_NARROW, _INNER = 0.8, 0.9
# part of the draws' variance that a normal distribution in place of V has, and its part that is
# kept, about the centre: it must not go on where exp(-U) ends. Of V what is kept is that part of a
# normal distribution as wide as the draws


def bridge(
    potential: ValueOf,
    draws: FloatArray,
    rng: np.random.Generator,
    *,
    values: FloatArray | None = None,
    exact: FloatArray | None = None,
    most: int = MOST,
    law: Jumps | None = None,
) -> Estimate:
    """Return the logarithm of the integral of exp(-V), by bridge sampling from draws of V.

    A multivariate t is fitted to the first half of each chain, unless a ``law`` of several modes is
    known. The second half and as many draws of the law make the iterated optimal bridge (Meng and
    Wong 1996, Statistica Sinica 6:831-860). Its error is the one of Fruehwirth-Schnatter (2004,
    doi:10.1111/j.1368-423X.2004.00125.x), with the autocorrelation of the chains by
    :func:`surrokit.diagnostics.mean_error`.

    Draws of another potential U make a bridge to U, with importance weights w = exp(U - V) at its
    draws alone: for t's density r and any function h, the integral of exp(-U) is
    E_r[h exp(-V) / r] / E_U[h w]. U is not evaluated at draws of the t. This is exact for any V
    whose tails are not heavier than those of U.

    Both sides, weighted, are draws of one density. Where their means or squares differ by more than
    :data:`MOST_ERRORS` Monte Carlo errors, one side has mass where the other has no draws, and the
    difference, in standard deviations, is part of the error.

    Parameters
    ----------
    potential
        V, from positions (n, dim) to values (n,); infinite outside its support.
    draws : ndarray of shape (chains, n, dim)
        Of chains on V, in the coordinates that V is a density in; or on U.
    values, exact : ndarrays of shape (chains, n), optional
        V at the draws, where it is known; and U there, if they are draws of U.
    most
        Draws on each side at most.
    law
        Draws of it are on the other side.

    Returns
    -------
    Estimate
        A number, worth 1 / error^2 effective draws.

    Raises
    ------
    ShapeError
        If draws have another shape, or chains are too short.
    ConfigurationError
        If V is not finite at one of its own draws.
    NumericalError
        If importance weights have too heavy a tail, or chains stand.
    """
    if draws.ndim != 3 or draws.shape[1] < FEWEST:
        raise ShapeError(
            f"the evidence takes draws (chains, n, dim) with n at least {FEWEST}, got "
            f"{draws.shape}; draw more"
        )
    if not np.ptp(draws, axis=1).any(axis=0).all():
        raise NumericalError("the chains never moved, and give no evidence; draw more")
    n, dim = draws.shape[1:]
    near = law or StudentT.fit(_thinned(draws[:, : n // 2], MOST).reshape(-1, dim))
    late, *known = (
        None if each is None else _thinned(each[:, n // 2 :], most)
        for each in (draws, values, exact)
    )
    assert late is not None
    shape, at = late.shape[:2], late.reshape(-1, dim)
    ours = potential(at).reshape(shape) if known[0] is None else known[0]
    if exact is None and not np.isfinite(ours).all():
        raise ConfigurationError(
            "the potential must be finite at its own draws; pass the potential that they are of"
        )
    logs = np.zeros(shape) if known[1] is None else known[1] - ours
    other = near.draw(len(at), rng)
    with np.errstate(over="ignore"):
        theirs = -np.asarray(potential(other)) - near.log_density(other)
    return _solve(-ours - near.log_density(at).reshape(shape), theirs, logs, late, other)


def evidence_of_surrogate(
    surrogate: Potential, draws: FloatArray, rng: np.random.Generator
) -> Estimate:
    """Return the logarithm of the integral of exp(-U), where a surrogate is all that is known of U.

    Of a process V is the mean, and exp(-U) is exp(-V + s^2 / 2) on average, with s^2 its variance.

    Parameters
    ----------
    draws : ndarray of shape (chains, n, dim)
        Of chains on V, as :func:`bridge` takes them, whose errors there are.
    """
    straight, flat = straight_of(surrogate), draws.reshape(-1, draws.shape[2])
    found = bridge(straight.potential.value, straight.apply(flat).reshape(draws.shape), rng)
    if COVARIANCE in surrogate.capabilities:
        few = _thinned(draws, MOST // 4).reshape(-1, draws.shape[2])
        variances = np.minimum(cast(CovariancePotential, surrogate).variance(few), MOST_VARIANCE)
        more = logsumexp(0.5 * variances) - np.log(len(few))
        found = attrs.evolve(found, value=found.value + more)
    return found


def evidence_of_chains(
    positions: FloatArray,
    values: FloatArray,
    rng: np.random.Generator,
    surrogate: Potential | None = None,
    within: Callable[[ValueOf], ValueOf] | None = None,
    modes: Modes | None = None,
) -> Estimate:
    """Return the logarithm of the integral of exp(-U) from exact draws alone, without a call.

    The bridge is to the surrogate, or to a normal distribution narrower than the draws where there
    is none or it is less precise, each without its tails (Robert and Wraith 2009,
    doi:10.1063/1.3275622): draws say little about what a surrogate has there. Of several modes each
    has a normal distribution.

    Parameters
    ----------
    positions : ndarray of shape (chains, n, dim)
        Draws in the sampling coordinates.
    values : ndarray of shape (chains, n)
        U there.
    within
        Makes a potential infinite where the draws are not taken from.
    modes
        Those that the draws are at; None for one.

    Raises
    ------
    ShapeError
        If chains are too short.
    NumericalError
        If neither is near enough to U.
    """
    flat = positions[:, : positions.shape[1] // 2].reshape(-1, positions.shape[2])
    normals, end = _narrow(flat, modes), chdtri(flat.shape[1], 1.0 - _INNER)

    def inner(places: FloatArray) -> FloatArray:
        logs = [
            np.where(law.distances(places) <= end, np.log(part) + law.log_density(places), -np.inf)
            for law, part in zip(normals.laws, normals.shares, strict=True)
        ]
        return np.asarray(np.log(_INNER) - np.logaddexp.reduce(logs, axis=0))

    def learnt(places: FloatArray) -> FloatArray:
        assert surrogate is not None
        distances = np.min([law.distances(places) for law in normals.laws], axis=0)
        return np.where(distances <= end / _NARROW, surrogate.value(places), np.inf)

    found: list[Estimate] = []
    potentials: list[ValueOf] = [inner] if surrogate is None else [learnt, inner]
    law = None if modes is None else jumps_of(surrogate) or normals
    for potential in potentials:
        near = potential if within is None else within(potential)
        with contextlib.suppress(NumericalError):
            found.append(bridge(near, positions, rng, exact=values, law=law))
    if not found:
        raise NumericalError(
            "the evidence cannot be estimated from these draws alone, as no density at hand is "
            "near enough to the posterior. Pass the target, which is then evaluated at more "
            "positions: run.log_evidence(target)"
        )
    return min(found, key=lambda each: float(each.error))


def _narrow(draws: FloatArray, modes: Modes | None) -> Jumps:
    """Return normals narrower than draws (n, dim), one for all or for those at each mode."""
    at = np.zeros(len(draws), dtype=np.int64) if modes is None else modes.nearest(draws)
    groups = [draws[at == k] for k in np.unique(at)]
    groups = [each for each in groups if len(each) >= 10 * draws.shape[1]] or [draws]
    shares = np.array([len(each) for each in groups]) / sum(map(len, groups))
    return Jumps(laws=tuple(StudentT.about(each, _NARROW) for each in groups), shares=shares)


def _thinned(array: FloatArray, most: int) -> FloatArray:
    """Return every k-th draw of each chain, (chains, m, ...), at most ``most`` together."""
    chains, n = array.shape[:2]
    return array[:, :: -(-n // max(most // chains, 1))]


def evidence_of_rounds(
    rounds: Sequence[Round], surrogates: Sequence[Estimate], calls: float
) -> Estimate:
    """Return the logarithm of the integral of exp(-U), log Z = log Z_V + log mean exp(V - U).

    The bias of the logarithm, about -Var(w) / 2n, is removed by the jackknife, which also gives the
    error. A process that has learnt from all evaluations has an estimate of its own, d away: this
    one moves there by min(d / 2, error^2 / d), which is added to its error. Rounds are combined as
    in :class:`surrokit.weighted.answer.Answer`.

    Parameters
    ----------
    rounds
        At least one. Log weights less log surrogate_weights are V - U itself, not up to a constant.
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
    logs, even = found.log_weights, np.exp(found.log_surrogate_weights)
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
    # a later surrogate sees what few evaluations miss, as in errors of means
    if (by_later := found.predictive_variance.mean() / n) > variance:
        variance, moves = by_later, np.sqrt(found.predictive_variance).ravel()
    mean = largest + n * plain - (n - 1) * without.mean()
    if among := found.realisations.shape[2]:  # the potential of their mean has too small a mass
        logs_of_z = logsumexp(-found.realisations.reshape(-1, among), axis=0)
        mean += logs_of_z.mean() - np.log(found.realisations[..., 0].size)
        variance += logs_of_z.var()
    # a process of all values tells as much as few of them, unless these contradict it
    apart = found.log_mass - mean
    if np.isfinite(apart) and apart != 0.0:
        moved = min(0.5, variance / apart**2) * apart
        mean, variance = mean + moved, variance + moved**2
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


def _solve(
    ours: FloatArray, theirs: FloatArray, logs: FloatArray, late: FloatArray, other: FloatArray
) -> Estimate:
    """Return the bridge's estimate from log ratios of densities at both sets of draws.

    With x a log ratio less the logarithm sought, and as many draws on both sides, mean of
    expit(x) over theirs equals mean of expit(-x) over ours, by weights. One side falls, the other
    rises.
    """
    highest = logs.max()
    weights = np.exp(logs - highest)
    level = highest + np.log(weights.mean())
    weights /= weights.mean()
    if weights.max() - 1.0 > _SMALL * weights.size and pareto_k(logs.ravel()) > LARGEST_K:
        raise NumericalError("importance weights have too heavy a tail; take a nearer potential")

    def gap(log_constant: float) -> float:
        at_ours = (weights * expit(log_constant - ours)).mean()
        return float(expit(theirs - log_constant).mean() - at_ours)

    seen = np.concatenate([ours[np.isfinite(ours)], theirs[np.isfinite(theirs)]])
    lowest = max(seen.min(), ours.min() - 1000.0)  # what is below has no part in the mean
    found = float(brentq(gap, lowest - 40.0, seen.max() + 40.0, xtol=1e-10))
    at_ours, at_theirs = weights * expit(found - ours), expit(theirs - found)
    first = mean_error(at_ours[..., None])[0] / at_ours.mean()
    if not np.isfinite(first):
        raise NumericalError("the chains rarely moved, and give no evidence; draw more")
    second = at_theirs.std() / at_theirs.mean() / np.sqrt(len(theirs))
    differ = _difference(late, other, at_ours / at_ours.mean(), at_theirs / at_theirs.mean())
    return _estimate(found - level, first**2 + second**2 + differ**2, np.inf, 0.0)


def _difference(
    late: FloatArray, other: FloatArray, at_ours: FloatArray, at_theirs: FloatArray
) -> float:
    """Return by how many sds means of draws (chains, n, dim) and (m, dim) differ, or zero.

    Weights (chains, n) and (m,) have mean one. Of the coordinates, their squares and the sum of
    these it is the largest of those that differ by more than :data:`MOST_ERRORS`.
    """

    def functions(draws: FloatArray) -> FloatArray:
        squares = np.square(draws)
        return np.concatenate([draws, squares, squares.sum(axis=-1, keepdims=True)], axis=-1)

    centre = at_theirs @ other / len(other)
    scale = np.sqrt(at_theirs @ np.square(other - centre) / len(other))
    if not scale.all():  # all weight is on one draw, and the error is large without this
        return 0.0
    theirs = functions((other - centre) / scale)
    mean = at_theirs @ theirs / len(theirs)
    ours, theirs = functions((late - centre) / scale) - mean, theirs - mean
    sds = np.sqrt(at_theirs @ np.square(theirs) / len(theirs))
    ours, theirs = at_ours[..., None] * ours, at_theirs[:, None] * theirs
    errors = np.hypot(mean_error(ours), mean_error(theirs[None]))
    gaps = np.abs(ours.mean(axis=(0, 1)))
    return float(np.max(np.where(gaps > MOST_ERRORS * errors, gaps / sds, 0.0)))
