"""Diagnostics of draws: effective sample size, R-hat, Monte Carlo error, error of the mean.

Rank-normalised bulk and tail ESS and split R-hat are those of Vehtari et al. (2021,
doi:10.1214/20-BA1221), as ArviZ computes them, for all parameters at once: every run needs them,
and ArviZ takes most of a second to import. All functions raise a ShapeError where arrays have other
shapes than these.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np
import numpy.typing as npt

from surrokit.arguments import is_number
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.types import BoolArray, FloatArray

EssKind: TypeAlias = Literal["least", "bulk", "tail", "square", "paper"]
"""``bulk`` and ``tail`` as ArviZ reports them, ``square`` for squared distances from the mean,
``least`` for the least of these three, ``paper`` as defined in section 5 of the paper."""

LEAST_OF: tuple[EssKind, ...] = ("tail", "square", "bulk")
"""The three kinds behind ``least``, the quickest to compute first."""

MIN_DRAWS = 4  #: Least number of draws of each chain; with fewer, every diagnostic is NaN.

LARGEST_RHAT = 1.01
"""R-hat above which chains disagree (Vehtari et al. 2021, doi:10.1214/20-BA1221)."""

FEWEST_EFFECTIVE = 100
"""Effective draws below which means are uncertain by a tenth of a standard deviation, and R-hat
itself shows little."""

LEAST_INFORMATION = 0.3
"""Energy fraction of missing information below which tails are not reached (Betancourt 2016,
arXiv:1604.00695)."""

MISSING = "missing"  #: Stands in a table for NaN.


def _check(draws: npt.ArrayLike) -> FloatArray:
    array = np.asarray(draws, dtype=np.float64)
    if array.ndim != 3:
        raise ShapeError(
            f"draws must have shape (chains, draws, dim), got {array.shape}; "
            "add the missing axes, for example draws[None] for one chain"
        )
    return array


def format_figure(column: str, value: float) -> str:
    """Return a figure of a column as tables print it; :data:`MISSING` for NaN."""
    if np.isnan(value):
        return MISSING
    if column.startswith("ess"):
        return f"{value:.0f}"
    return f"{value:.3f}" if column == "rhat" else f"{value:.4g}"


def units(draws: FloatArray) -> FloatArray:
    """Return a power of two for each parameter, shape (dim,), in which squares stay finite.

    It is about the largest magnitude of draws (chains, draws, dim); 1 where that is 0. Division by
    a power of two is exact: results that do not depend on scale keep every bit.
    """
    exponents = np.frexp(np.abs(draws).max(axis=(0, 1), initial=0.0))[1]
    return np.asarray(np.ldexp(1.0, np.clip(exponents, -1021, 1023)))  # a normal double


def _moving(draws: FloatArray) -> BoolArray:
    # within a chain: if every chain stands still, no variance is known, wherever the chains are
    return np.asarray((draws.max(axis=1) > draws.min(axis=1)).any(axis=0))


def _of_moving(draws: FloatArray, figure: Callable[[FloatArray], npt.ArrayLike]) -> FloatArray:
    """Return a figure of draws in units of their own; NaN where they stand still or are few."""
    if draws.shape[1] < MIN_DRAWS or not draws.shape[2]:
        return np.full(draws.shape[2], np.nan)
    # figures make copies, for which many parameters take turns
    turns = np.array_split(draws, draws.shape[2] if draws.size > 2**22 else 1, axis=2)
    with warnings.catch_warnings(), np.errstate(all="ignore"):  # NaN is the answer in such cases
        warnings.simplefilter("ignore")
        found = np.concatenate([np.asarray(figure(part / units(part))) for part in turns])
    return np.where(_moving(draws), found, np.nan)


def _halves(draws: FloatArray) -> FloatArray:
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def _normal_scores(draws: FloatArray) -> FloatArray:
    """Return normal quantiles of the ranks of all draws of a parameter; equal draws share one."""
    from scipy.special import ndtri

    columns = np.ascontiguousarray(draws.reshape(-1, draws.shape[2]).T)
    order, n = np.argsort(columns, axis=1), columns.shape[1]
    ordered, unlike = np.take_along_axis(columns, order, axis=1), np.ones(columns.shape, dtype=bool)
    unlike[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    first = np.flatnonzero(unlike)  # of draws that are alike, columns one after another
    alike = np.diff(first, append=unlike.size)
    # a mean rank, from 1 on, is a multiple of a half
    scores = ndtri((0.5 * np.arange(2.0, 2 * n + 1) - 0.375) / (n + 0.25))
    by_rank = np.repeat(scores[2 * (first % n) + alike - 1], alike).reshape(columns.shape)
    np.put_along_axis(columns, order, by_rank, axis=1)
    return np.asarray(columns.T.reshape(draws.shape))


_FEW_LAGS, _MANY_COLUMNS = 8, 16
"""Distances of draws to begin with, of many parameters: nearly independent draws need no more."""


def _effective(draws: FloatArray) -> FloatArray:
    """Return the draws over their autocorrelation time, by Geyer's initial monotone sequence."""
    chains, n, dim = draws.shape
    between = draws.mean(axis=1).var(axis=0, ddof=1) if chains > 1 else np.zeros(dim)
    time, left = np.empty(dim), np.arange(dim)
    if n > 4 * _FEW_LAGS and dim >= _MANY_COLUMNS:
        time, over = _autocorrelation_time(_few_autocovariances(draws), between, chains, n)
        left = np.flatnonzero(~over)
    if left.size:
        covariance = _autocovariance(draws[:, :, left]).mean(axis=0) / n
        time[left] = _autocorrelation_time(covariance, between[left], chains, n)[0]
    still = np.ptp(draws, axis=(0, 1)) < 1e-15
    return np.asarray(np.where(still, chains * n, chains * n / time))


def _autocorrelation_time(
    covariance: FloatArray, between: FloatArray, chains: int, n: int
) -> tuple[FloatArray, BoolArray]:
    """Return times, and whether the sequence ends within autocovariances (lags, dim)."""
    within = covariance[0] * n / (n - 1.0)
    correlation = 1.0 - (within - covariance) / (covariance[0] + between)
    correlation[0] = 1.0
    k, each = np.arange(len(covariance) // 2)[:, None], np.arange(covariance.shape[1])
    pairs = correlation[: 2 * len(k)].reshape(len(k), 2, -1).sum(axis=1)
    ends = (pairs <= 0.0) | (2 * k + 1 >= n - 3)
    n_pairs = np.argmax(ends, axis=0)
    sums = np.where(k < n_pairs, np.minimum.accumulate(pairs, axis=0), 0.0).sum(axis=0)
    rest = correlation[2 * n_pairs, each]
    rest = np.where((rest > 0.0) | (pairs[n_pairs, each] >= 0.0), rest, 0.0)
    return np.maximum(2.0 * sums - 1.0 + rest, 1.0 / np.log10(chains * n)), ends.any(axis=0)


def _few_autocovariances(draws: FloatArray) -> FloatArray:
    """Return mean products of centred draws at the first distances, shape (lags, dim)."""
    n, dim = draws.shape[1:]
    sums = np.zeros((_FEW_LAGS, dim))
    for chain in draws:  # whose numbers stay in the cache
        centred = chain - chain.mean(axis=0)
        for k, total in enumerate(sums):
            total += np.einsum("nd,nd->d", centred[k:], centred[: n - k])
    return np.asarray(sums / (len(draws) * n))


def _autocovariance(draws: FloatArray) -> FloatArray:
    """Return sums of products of centred draws by their distance, shape (chains, draws, dim)."""
    centred = draws - draws.mean(axis=1, keepdims=True)
    padded = 1 << (2 * draws.shape[1] - 1).bit_length()
    spectrum = np.fft.rfft(centred, n=padded, axis=1)
    products = np.fft.irfft(np.square(np.abs(spectrum)), n=padded, axis=1)
    return np.asarray(products[:, : draws.shape[1]])


def _below(draws: FloatArray, *probabilities: float) -> list[FloatArray]:
    """Return whether draws are below each quantile, as numbers, in halves of chains."""
    ordered = np.sort(draws.reshape(-1, draws.shape[2]).T, axis=1)
    found = []
    for place in np.multiply(probabilities, ordered.shape[1] - 1):
        low, part = int(place), place % 1.0
        limit = ordered[:, low] + part * (ordered[:, math.ceil(place)] - ordered[:, low])
        found.append(_halves((draws <= limit).astype(np.float64)))
    return found


def _scores(draws: FloatArray) -> FloatArray:
    return _normal_scores(_halves(draws))


def _distances(draws: FloatArray) -> FloatArray:
    # which have the ranks of their squares
    return np.asarray(np.abs(draws - draws.mean(axis=(0, 1))))


def _least_effective(functions: list[FloatArray]) -> FloatArray:
    """Return the least effective sample size of several functions of draws."""
    found = _effective(np.concatenate(functions, axis=2))
    return np.asarray(np.min(np.split(found, len(functions)), axis=0))


def _error_of_quantile(draws: FloatArray, probability: float) -> FloatArray:
    from scipy.special import betaincinv

    effective, n = _effective(*_below(draws, probability)), draws.shape[0] * draws.shape[1]
    sides = effective * probability + 1.0, effective * (1.0 - probability) + 1.0
    low, high = (betaincinv(*sides, share) * n - 1.0 for share in (0.1586553, 0.8413447))
    ordered, each = np.sort(draws.reshape(n, -1), axis=0), np.arange(draws.shape[2])
    at = np.floor(np.fmax(low, 0.0)), np.ceil(np.fmin(high, n - 1.0))
    lower, upper = (ordered[place.astype(np.int64), each] for place in at)
    return np.asarray(0.5 * (upper - lower))


def _error_of_sd(draws: FloatArray) -> FloatArray:
    squares = np.square(draws - draws.mean(axis=(0, 1)))
    variance = squares.mean(axis=(0, 1))
    spread = np.square(squares).mean(axis=(0, 1)) - np.square(variance)
    return np.asarray(np.sqrt(spread / _effective(_halves(draws)) / variance / 4.0))


def _error_of_mean(draws: FloatArray) -> FloatArray:
    return np.asarray(draws.std(axis=(0, 1), ddof=1) / np.sqrt(_effective(_halves(draws))))


def _ratio(draws: FloatArray) -> FloatArray:
    """Return R-hat of draws as they are."""
    n = draws.shape[1]
    between = n * draws.mean(axis=1).var(axis=0, ddof=1)
    within = draws.var(axis=1, ddof=1).mean(axis=0)
    return np.asarray(np.sqrt((between / within + n - 1.0) / n))


def effective_sample_size(draws: npt.ArrayLike, kind: EssKind = "least") -> FloatArray:
    """Return the effective sample size of each parameter, shape (dim,), over all chains.

    The default is the least of three kinds, because no one number answers every question. Chains
    whose successive draws alternate around the mean, for example, estimate the mean better than
    independent draws would, and the spread worse.

    Parameters
    ----------
    draws : array_like of shape (chains, draws, dim)
        Kept draws. The result is NaN for parameters that no chain moved, or with fewer than four.
    kind
        ``"bulk"`` (for means and medians), ``"tail"`` (the smaller of the 5 % and 95 % quantiles),
        ``"square"`` (for spreads: bulk of squared distances from the mean), ``"least"`` (the least
        of these three), or ``"paper"``.

    Raises
    ------
    ConfigurationError
        If the kind is unknown.
    """
    array = _check(draws)
    if kind not in get_args(EssKind):
        raise ConfigurationError(
            f"kind of effective sample size must be one of {', '.join(get_args(EssKind))}, "
            f"got {kind!r}"
        )
    return _of_moving(array, _EFFECTIVE[kind])


_TAILS = 0.05, 0.95

_EFFECTIVE: dict[EssKind, Callable[[FloatArray], FloatArray]] = {
    "least": lambda x: _least_effective(
        [_scores(x), _scores(_distances(x)), *_below(x, *_TAILS)],
    ),
    "bulk": lambda x: _effective(_scores(x)),
    "tail": lambda x: _least_effective(_below(x, *_TAILS)),
    "square": lambda x: _effective(_scores(_distances(x))),
    "paper": lambda x: _initial_monotone(x),
}


def r_hat(draws: npt.ArrayLike) -> FloatArray:
    """Return rank-normalised split R-hat of each parameter, shape (dim,).

    It is of draws (chains, draws, dim); a single chain is first cut into two. NaN for parameters
    that stand still in every half chain, or with fewer than four draws; infinite where the variance
    within chains is only rounding error.
    """
    array = _check(draws)
    if len(array) == 1 and array.shape[1] >= MIN_DRAWS:
        array = _halves(array)
    found = _of_moving(array, _largest_ratio)
    if array.shape[1] < MIN_DRAWS:
        return found
    found[found > 1e7] = np.inf  # the variance within chains is only rounding error
    return np.where(_moving(_halves(array)), found, np.nan)


def _largest_ratio(draws: FloatArray) -> FloatArray:
    """Return the larger R-hat of ranks of draws, and of their distances from the median."""
    halves = _halves(draws)
    distances = np.abs(halves - np.median(halves, axis=(0, 1)))
    ratios = [_ratio(_normal_scores(each)) for each in (halves, distances)]
    return np.asarray(np.fmax(*ratios))


def energy_information(energy: npt.ArrayLike) -> FloatArray:
    """Return the energy fraction of missing information of each chain, shape (chains,).

    By the energies (chains, draws) with which paths began, it is the part of the energy's variance
    that fresh momenta make up (Betancourt 2016, arXiv:1604.00695, equation 3): low where the energy
    varies much more than momenta can change it in one transition. NaN where an energy is not
    finite, or with fewer than four draws.
    """
    array = np.asarray(energy, dtype=np.float64)
    if array.ndim != 2:
        raise ShapeError(f"energy must have shape (chains, draws), got {array.shape}")
    known = np.asarray(np.isfinite(array).all(axis=1))
    if array.shape[1] < MIN_DRAWS or not known.any():
        return np.full(len(array), np.nan)
    with np.errstate(all="ignore"):  # of a constant energy NaN
        found = np.square(np.diff(array)).mean(axis=1) / array.var(axis=1, ddof=1)
    return np.where(known, found, np.nan)


def highest_density(draws: npt.ArrayLike, probability: float) -> FloatArray:
    """Return the shortest interval of each parameter that holds so much, shape (dim, 2).

    It is of draws (chains, draws, dim), all chains together; NaN without draws.

    Raises
    ------
    ConfigurationError
        If the probability is not between zero and one.
    """
    array = _check(draws)
    check_probability(probability)
    if not array.shape[1]:
        return np.full((array.shape[2], 2), np.nan)
    ordered = np.sort(array.reshape(-1, array.shape[2]), axis=0)
    inside, scaled = int(probability * len(ordered)), ordered / units(array)
    first = np.argmin(scaled[inside:] - scaled[: len(ordered) - inside], axis=0)
    each = np.arange(array.shape[2])
    return np.stack([ordered[first, each], ordered[first + inside, each]], axis=1)


def check_probability(probability: object) -> None:
    """Check that the probability of an interval is a number between zero and one."""
    if not is_number(probability) or not 0.0 < float(cast(Any, probability)) < 1.0:
        raise ConfigurationError(
            f"interval must be a number between zero and one, such as 0.9, got {probability!r}"
        )


def mean_error(draws: npt.ArrayLike) -> FloatArray:
    """Return the Monte Carlo standard error of each mean, shape (dim,), of draws (..., dim)."""
    array = _check(draws)
    return units(array) * _of_moving(array, _error_of_mean)


QUANTILES = {"q05": 0.05, "q50": 0.5, "q95": 0.95}
"""Quantiles that are reported, by the names of their columns."""


def relative_error(draws: npt.ArrayLike) -> FloatArray:
    """Return the largest Monte Carlo error of each parameter, shape (dim,), in its own sds.

    It is the largest of those of mean, standard deviation and the :data:`QUANTILES` of draws
    (chains, draws, dim); NaN for parameters that no chain moved, or with fewer than four draws.
    """

    def largest(draws: FloatArray) -> FloatArray:
        errors = [_error_of_mean(draws), _error_of_sd(draws)]
        errors += [_error_of_quantile(draws, probability) for probability in QUANTILES.values()]
        return np.asarray(np.max(errors, axis=0) / draws.std(axis=(0, 1)))

    return _of_moving(_check(draws), largest)


def relative_error_of_mean(draws: npt.ArrayLike, mean: npt.ArrayLike) -> FloatArray:
    """Return |mean of the first t draws - E q| / |E q| for every t (section 5.3 of the paper).

    Each chain has a curve, shape (chains, draws), of draws (chains, draws, dim) from the first on.
    The mean E q, shape (dim,), is known or from a much longer run.

    Raises
    ------
    ConfigurationError
        If the mean is zero, where no relative error exists.
    """
    array, expected = _check(draws), np.asarray(mean, dtype=np.float64)
    if expected.shape != array.shape[2:]:
        raise ShapeError(f"mean must have shape {array.shape[2:]}, got {expected.shape}")
    size = float(np.linalg.norm(expected))
    if size == 0.0:
        raise ConfigurationError("the mean is zero, so there is no relative error; shift the draws")
    count = np.arange(1, array.shape[1] + 1)[:, None]
    running = np.cumsum(array, axis=1) / count
    return np.asarray(np.linalg.norm(running - expected, axis=2) / size)


def _initial_monotone(draws: FloatArray) -> FloatArray:
    """Return B / (1 + 2 sum gamma(k)) over Geyer's initial monotone sequence, section 5.

    The sequence (Geyer 1992, doi:10.1214/ss/1177011137, section 3.3) sums adjacent pairs of
    autocorrelations while they are positive, and caps each sum at the one before. A chain counts
    for at most its B draws, as in the paper's tables; the sizes of the chains are added.
    """
    n_chains, n_draws, dim = draws.shape
    covariance = _autocovariance(draws)
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = covariance / covariance[:, :1]
    n_pairs = n_draws // 2
    pairs = correlation[:, : 2 * n_pairs].reshape(n_chains, n_pairs, 2, dim).sum(axis=2)
    monotone = np.minimum.accumulate(pairs, axis=1)
    inefficiency = np.maximum(2.0 * np.maximum(monotone, 0.0).sum(axis=1) - 1.0, 1.0)
    sizes = np.where(np.isnan(pairs[:, 0]), np.nan, n_draws / inefficiency)
    return np.asarray(sizes.sum(axis=0))
