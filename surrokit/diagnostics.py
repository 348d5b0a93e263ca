"""How good draws are: effective sample size, R-hat, Monte Carlo error, error of the mean.

Rank-normalised bulk and tail ESS and split R-hat (Vehtari et al. 2021, doi:10.1214/20-BA1221) come
from the ArviZ project; the paper's own estimator is here because its tables need it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from surrokit.errors import ConfigurationError, ShapeError
from surrokit.types import BoolArray, FloatArray

EssKind: TypeAlias = Literal["bulk", "tail", "paper"]
"""``bulk`` and ``tail`` as ArviZ reports them; ``paper`` as section 5 of the paper does."""

MIN_DRAWS = 4
"""Fewer draws a chain than this say nothing; the result is NaN."""


def _checked(draws: npt.ArrayLike) -> FloatArray:
    array = np.asarray(draws, dtype=np.float64)
    if array.ndim != 3:
        raise ShapeError(
            f"draws must have shape (chains, draws, dim), got {array.shape}; "
            "add the missing axes, for example draws[None] for one chain"
        )
    return array


def _by_parameter(function: Callable[..., Any], draws: FloatArray, **options: Any) -> FloatArray:
    # a constant parameter, such as one of a stuck chain, is NaN and no warning
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        result = function(draws, chain_axis=0, draw_axis=1, **options)
    return np.where(_moving(draws), np.asarray(result, dtype=np.float64), np.nan)


def _moving(draws: FloatArray) -> BoolArray:
    return np.asarray(draws.max(axis=(0, 1)) > draws.min(axis=(0, 1)))


def effective_sample_size(draws: npt.ArrayLike, kind: EssKind = "bulk") -> FloatArray:
    """Return the effective sample size of each parameter, all chains together.

    Parameters
    ----------
    draws : array_like of shape (chains, draws, dim)
        Kept draws.
    kind
        ``"bulk"``, ``"tail"`` (the smaller of the 5 % and 95 % quantiles), or ``"paper"``.

    Returns
    -------
    ndarray of shape (dim,)
        NaN for parameters that never moved, or with fewer than four draws.

    Raises
    ------
    ShapeError
        If draws are not three-dimensional.
    ConfigurationError
        If the kind is none of these.
    """
    array = _checked(draws)
    if kind not in get_args(EssKind):
        raise ConfigurationError(
            f"kind of effective sample size must be one of {', '.join(get_args(EssKind))}, "
            f"got {kind!r}"
        )
    if array.shape[1] < MIN_DRAWS:
        return np.full(array.shape[2], np.nan)
    if kind == "paper":
        return np.where(_moving(array), _initial_monotone(array), np.nan)
    from arviz_stats.base import array_stats

    options = {"prob": (0.05, 0.95)} if kind == "tail" else {}
    return _by_parameter(array_stats.ess, array, method=kind, **options)


def r_hat(draws: npt.ArrayLike) -> FloatArray:
    """Return rank-normalised split R-hat of each parameter.

    A single chain is cut into two first.

    Parameters
    ----------
    draws : array_like of shape (chains, draws, dim)
        Kept draws.

    Returns
    -------
    ndarray of shape (dim,)
        NaN for parameters that never moved, or with fewer than four draws.

    Raises
    ------
    ShapeError
        If draws are not three-dimensional.
    """
    array = _checked(draws)
    if array.shape[1] < MIN_DRAWS:
        return np.full(array.shape[2], np.nan)
    from arviz_stats.base import array_stats

    if len(array) == 1:
        half = array.shape[1] // 2
        array = np.concatenate([array[:, :half], array[:, -half:]])
        if half < MIN_DRAWS:
            return np.full(array.shape[2], np.nan)
    return _by_parameter(array_stats.rhat, array, method="rank")


def mean_error(draws: npt.ArrayLike) -> FloatArray:
    """Return the Monte Carlo standard error of each parameter's mean, shape (dim,).

    Parameters
    ----------
    draws : array_like of shape (chains, draws, dim)
        Kept draws.

    Raises
    ------
    ShapeError
        If draws are not three-dimensional.
    """
    array = _checked(draws)
    if array.shape[1] < MIN_DRAWS:
        return np.full(array.shape[2], np.nan)
    from arviz_stats.base import array_stats

    return _by_parameter(array_stats.mcse, array, method="mean")


def relative_error_of_mean(draws: npt.ArrayLike, mean: npt.ArrayLike) -> FloatArray:
    """Return |mean of the first t draws - E q| / |E q| for every t (section 5.3 of the paper).

    Parameters
    ----------
    draws : array_like of shape (chains, draws, dim)
        Draws from the first one on.
    mean : array_like of shape (dim,)
        E q, known or from a much longer run.

    Returns
    -------
    ndarray of shape (chains, draws)
        One curve for each chain.

    Raises
    ------
    ShapeError
        If the mean does not fit the draws.
    ConfigurationError
        If the mean is zero, so that nothing is relative to it.
    """
    array, expected = _checked(draws), np.asarray(mean, dtype=np.float64)
    if expected.shape != array.shape[2:]:
        raise ShapeError(f"mean must have shape {array.shape[2:]}, got {expected.shape}")
    size = float(np.linalg.norm(expected))
    if size == 0.0:
        raise ConfigurationError("the mean is zero, so no error is relative to it; shift the draws")
    count = np.arange(1, array.shape[1] + 1)[:, None]
    running = np.cumsum(array, axis=1) / count
    return np.asarray(np.linalg.norm(running - expected, axis=2) / size)


def _initial_monotone(draws: FloatArray) -> FloatArray:
    """Return B / (1 + 2 sum gamma(k)) over Geyer's initial monotone sequence, section 5.

    Geyer (1992), doi:10.1214/ss/1177011137, section 3.3: sums of adjacent pairs of
    autocorrelations, as long as they are positive, each no larger than the one before. At most B a
    chain, as in the paper's tables; chains add up.
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
