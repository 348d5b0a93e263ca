"""Diagnostics of draws: effective sample size, R-hat, Monte Carlo error, error of the mean.

Rank-normalised bulk and tail ESS and split R-hat (Vehtari et al. 2021, doi:10.1214/20-BA1221) come
from the ArviZ project; the paper's own estimator is here because its tables need it. All functions
raise a ShapeError where arrays have other shapes than these.
"""

from __future__ import annotations

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
itself tells little."""

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
    if draws.shape[1] < MIN_DRAWS:
        return np.full(draws.shape[2], np.nan)
    parts = [draws]
    if draws.size > 2**24:  # figures make copies, for which parameters take turns
        parts = [draws[..., i : i + 1] for i in range(draws.shape[2])]
    with warnings.catch_warnings(), np.errstate(all="ignore"):  # NaN is the answer in such cases
        warnings.simplefilter("ignore")
        found = np.concatenate([np.asarray(figure(part / units(part))) for part in parts])
    return np.where(_moving(draws), found, np.nan)


def _arviz(name: str, draws: FloatArray, **options: Any) -> FloatArray:
    from arviz_stats.base import array_stats

    found = getattr(array_stats, name)(draws, chain_axis=0, draw_axis=1, **options)
    return np.asarray(found, dtype=np.float64)


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
    if kind == "least":
        return np.asarray(np.min([effective_sample_size(array, one) for one in LEAST_OF], axis=0))
    if kind == "paper":
        return _of_moving(array, _initial_monotone)
    if kind == "tail":
        return _of_moving(array, lambda x: _arviz("ess", x, method="tail", prob=(0.05, 0.95)))
    if kind == "square":  # distances have the ranks of their squares
        return _of_moving(
            array, lambda x: _arviz("ess", np.abs(x - x.mean(axis=(0, 1))), method="bulk")
        )
    return _of_moving(array, lambda x: _arviz("ess", x, method="bulk"))


def r_hat(draws: npt.ArrayLike) -> FloatArray:
    """Return rank-normalised split R-hat of each parameter, shape (dim,).

    It is of draws (chains, draws, dim); a single chain is first cut into two. NaN for parameters
    that stand still in every half chain, or with fewer than four draws; infinite where the variance
    within chains is only rounding error.
    """
    array = _check(draws)
    if len(array) == 1 and array.shape[1] >= MIN_DRAWS:
        array = _halves(array)
    found = _of_moving(array, lambda x: _arviz("rhat", x, method="rank"))
    if array.shape[1] < MIN_DRAWS:
        return found
    found[found > 1e7] = np.inf  # the variance within chains is only rounding error
    return np.where(_moving(_halves(array)), found, np.nan)


def _halves(draws: FloatArray) -> FloatArray:
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def energy_information(energy: npt.ArrayLike) -> FloatArray:
    """Return the energy fraction of missing information of each chain, shape (chains,).

    By the energies (chains, draws) with which paths began, it is the part of the energy's variance
    that fresh momenta make up (Betancourt 2016, arXiv:1604.00695, equation 3): low where the energy
    varies much more than momenta can change it in one transition. NaN where an energy is not
    finite, or with fewer than four draws.
    """
    from arviz_stats.base import array_stats

    array = np.asarray(energy, dtype=np.float64)
    if array.ndim != 2:
        raise ShapeError(f"energy must have shape (chains, draws), got {array.shape}")
    known = np.asarray(np.isfinite(array).all(axis=1))
    if array.shape[1] < MIN_DRAWS or not known.any():
        return np.full(len(array), np.nan)
    with np.errstate(all="ignore"):  # of a constant energy NaN
        found = array_stats.bfmi(np.where(known[:, None], array, 0.0))
    return np.where(known, found, np.nan)


def highest_density(draws: npt.ArrayLike, probability: float) -> FloatArray:
    """Return the shortest interval of each parameter that holds so much, shape (dim, 2).

    It is ArviZ's highest-density interval of draws (chains, draws, dim), all chains together; NaN
    without draws.

    Raises
    ------
    ConfigurationError
        If the probability is not between zero and one.
    """
    from arviz_stats.base import array_stats

    array = _check(draws)
    check_probability(probability)
    if not array.shape[1]:
        return np.full((array.shape[2], 2), np.nan)
    unit = units(array)
    flat = (array / unit).reshape(-1, array.shape[2])
    if len(flat) < 2:
        return np.column_stack([flat[0], flat[0]]) * unit[:, None]
    found = array_stats.hdi(flat, prob=float(probability), axis=0)
    return np.asarray(found, dtype=np.float64) * unit[:, None]


def check_probability(probability: object) -> None:
    """Check that the probability of an interval is a number between zero and one."""
    if not is_number(probability) or not 0.0 < float(cast(Any, probability)) < 1.0:
        raise ConfigurationError(
            f"interval must be a number between zero and one, such as 0.9, got {probability!r}"
        )


def mean_error(draws: npt.ArrayLike) -> FloatArray:
    """Return the Monte Carlo standard error of each mean, shape (dim,), of draws (..., dim)."""
    array = _check(draws)
    return units(array) * _of_moving(array, lambda x: _arviz("mcse", x, method="mean"))


QUANTILES = {"q05": 0.05, "q50": 0.5, "q95": 0.95}
"""Quantiles that are reported, by the names of their columns."""


def relative_error(draws: npt.ArrayLike) -> FloatArray:
    """Return the largest Monte Carlo error of each parameter, shape (dim,), in its own sds.

    It is the largest of those of mean, standard deviation and the :data:`QUANTILES` of draws
    (chains, draws, dim); NaN for parameters that no chain moved, or with fewer than four draws.
    """
    ways: list[dict[str, Any]] = [{"method": "mean"}, {"method": "sd"}]
    ways += [{"method": "quantile", "prob": probability} for probability in QUANTILES.values()]

    def largest(draws: FloatArray) -> FloatArray:
        errors = [_arviz("mcse", draws, **way) for way in ways]
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
    centred = draws - draws.mean(axis=1, keepdims=True)
    padded = 1 << (2 * n_draws - 1).bit_length()
    spectrum = np.fft.rfft(centred, n=padded, axis=1)
    covariance = np.fft.irfft(np.square(np.abs(spectrum)), n=padded, axis=1)[:, :n_draws]
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = covariance / covariance[:, :1]
    n_pairs = n_draws // 2
    pairs = correlation[:, : 2 * n_pairs].reshape(n_chains, n_pairs, 2, dim).sum(axis=2)
    monotone = np.minimum.accumulate(pairs, axis=1)
    inefficiency = np.maximum(2.0 * np.maximum(monotone, 0.0).sum(axis=1) - 1.0, 1.0)
    sizes = np.where(np.isnan(pairs[:, 0]), np.nan, n_draws / inefficiency)
    return np.asarray(sizes.sum(axis=0))
