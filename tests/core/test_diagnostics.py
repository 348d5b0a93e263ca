"""Effective sample size, R-hat, Monte Carlo error, intervals, relative error of the mean."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from arviz_stats.base import array_stats
from numpy.testing import assert_allclose, assert_array_equal
from scipy.signal import lfilter

from surrokit import effective_sample_size, r_hat, relative_error_of_mean
from surrokit.diagnostics import energy_information, highest_density, mean_error
from surrokit.errors import ConfigurationError, ShapeError


def autoregressive(rng, phi, chains=4, draws=4000, dim=1):
    noise = rng.standard_normal((chains, draws + 500, dim)) * np.sqrt(1 - phi**2)
    return lfilter([1.0], [1.0, -phi], noise, axis=1)[:, 500:]


@pytest.fixture
def draws(rng):
    return autoregressive(rng, 0.6, draws=500, dim=3) * [1.0, 10.0, 0.1] + [0.0, 5.0, -1.0]


def of_each(function, draws, **options):
    return [
        float(function(draws[:, :, i], chain_axis=0, draw_axis=1, **options))
        for i in range(draws.shape[2])
    ]


def test_figures_are_those_of_arviz(draws):
    squares = np.square(draws - draws.mean(axis=(0, 1)))
    ends = [of_each(array_stats.ess, draws, method="quantile", prob=p) for p in (0.05, 0.95)]
    three = {
        "bulk": of_each(array_stats.ess, draws, method="bulk"),
        "tail": np.minimum(*ends),
        "square": of_each(array_stats.ess, squares, method="bulk"),
    }
    for kind, expected in three.items():
        assert_allclose(effective_sample_size(draws, kind), expected, rtol=1e-10)
    assert_allclose(effective_sample_size(draws), np.min([*three.values()], axis=0), rtol=1e-10)
    ess = np.array(of_each(array_stats.ess, draws, method="mean"))
    assert_allclose(mean_error(draws), draws.std(axis=(0, 1), ddof=1) / np.sqrt(ess), rtol=1e-3)
    draws[0, :, 1] += 20.0
    assert_allclose(r_hat(draws), of_each(array_stats.rhat, draws, method="rank"), rtol=1e-10)
    assert r_hat(draws)[0] < 1.05 < 1.1 < r_hat(draws)[1]


def test_antithetic_draws_are_not_worth_more_than_their_squares(rng):
    """For x' = -0.9 x + noise, squares have correlations 0.81^k: n (1 - 0.81) / (1 + 0.81)."""
    draws = autoregressive(rng, -0.9)
    assert effective_sample_size(draws, "bulk") > 2.0 * 16_000
    assert_allclose(effective_sample_size(draws), 16_000 * 0.19 / 1.81, rtol=0.15)
    assert_allclose(effective_sample_size(draws, "paper"), 16_000)  # which never exceeds the draws


def by_hand(x):
    """Geyer's initial monotone sequence for one chain, written out."""
    n, centred = len(x), x - x.mean()
    gamma = [centred[: n - k] @ centred[k:] / (centred @ centred) for k in range(n)]
    total, least = 0.0, np.inf
    for k in range(n // 2):
        pair = gamma[2 * k] + gamma[2 * k + 1]
        if pair <= 0:
            break
        least = min(least, pair)
        total += least
    return n / max(2 * total - 1, 1.0)


@pytest.mark.parametrize("n", [4, 5, 60, 61])
@pytest.mark.parametrize("phi", [0.3, 0.95])
def test_the_papers_estimator_is_the_initial_monotone_sequence(rng, n, phi):
    draws = autoregressive(rng, phi, chains=3, draws=n)
    expected = sum(by_hand(chain[:, 0]) for chain in draws)
    assert_allclose(effective_sample_size(draws, "paper"), expected, rtol=1e-9)


# --- nothing to say ---

KINDS = ("least", "bulk", "tail", "square", "paper")
MEASURES = {
    **{kind: lambda draws, kind=kind: effective_sample_size(draws, kind) for kind in KINDS},
    "r-hat": r_hat,
    "error": mean_error,
}
EACH = pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)


@EACH
@pytest.mark.parametrize("constant", [0.0, 0.1, 1e8, "each its own"])
def test_a_parameter_that_never_moved_is_nan_without_a_warning(draws, measure, constant):
    draws[:, :, 1] = draws[:, :1, 1] if constant == "each its own" else constant
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = measure(draws)
    assert np.isnan(result).tolist() == [False, True, False]


def test_r_hat_of_chains_that_moved_once_alone_is_nan(draws):
    draws[:, 250:, 1] = draws[:, 250:251, 1]
    draws[:, :250, 1] = draws[:, :1, 1]
    assert np.isnan(r_hat(draws)).tolist() == [False, True, False]


def test_r_hat_beyond_arithmetic_is_infinite(draws):
    """Chains that alternate around 0, each by an amount of its own: spreads without variance."""
    signs = np.where(np.arange(500) % 2, 1.0, -1.0)
    draws[:, :, 1] = signs * np.array([[1.0], [2.0], [3.0], [4.0]])
    assert np.isinf(r_hat(draws)).tolist() == [False, True, False]


@EACH
@pytest.mark.parametrize("scale", [2.0**-900, 2.0**1020])
def test_no_scale_is_too_small_or_too_large(draws, measure, scale):
    draws = draws / 16.0  # so that the largest can be had
    factor = scale if measure is mean_error else 1.0
    assert_array_equal(measure(scale * draws), factor * measure(draws))
    assert np.isfinite(measure(draws[:1])).all()  # one chain is enough


@EACH
def test_draws_have_three_axes_and_enough_of_them(measure):
    for n in (0, 1, 3):
        result = measure(np.arange(2.0 * n * 3).reshape(2, n, 3))
        assert np.isnan(result).tolist() == [True] * 3
    for shape in ((10,), (4, 10), (1, 4, 10, 2)):
        with pytest.raises(ShapeError, match=r"must have shape \(chains, draws, dim\), got"):
            measure(np.zeros(shape))


def test_r_hat_of_one_chain_compares_its_halves(draws):
    assert (r_hat(draws[:1]) < 1.1).all()
    assert [np.isfinite(r_hat(draws[:1, :n])).all() for n in (7, 8)] == [False, True]
    draws[0, :250] += 30.0
    assert (r_hat(draws[:1]) > 1.5).all()


def test_an_unknown_kind_is_refused(draws):
    with pytest.raises(ConfigurationError, match="least, bulk, tail, square, paper, got 'mean'"):
        effective_sample_size(draws, "mean")


# --- relative error of the mean, intervals, energies ---


def test_the_relative_error_is_that_of_the_running_mean(draws):
    few = np.array([[[3.0, 0.0], [1.0, 4.0], [5.0, 2.0]]])
    mean = np.array([3.0, 4.0])
    expected = [
        np.linalg.norm(few[0, :t].mean(axis=0) - mean) / np.linalg.norm(mean) for t in (1, 2, 3)
    ]
    assert_allclose(relative_error_of_mean(few, mean), [expected])
    curves = relative_error_of_mean(draws, [1.0, 5.0, -1.0])
    assert_allclose(curves[2], relative_error_of_mean(draws[2:3], [1.0, 5.0, -1.0])[0])
    with pytest.raises(ShapeError, match=r"mean must have shape \(3,\), got \(2,\)"):
        relative_error_of_mean(draws, [1.0, 2.0])
    with pytest.raises(ConfigurationError, match="the mean is zero"):
        relative_error_of_mean(draws, np.zeros(3))


def test_the_interval_is_the_shortest_one(rng):
    draws = rng.exponential(size=(4, 500, 1)) * 1e300
    low, high = highest_density(draws, 0.9)[0]
    ordered = np.sort(draws.ravel())
    widths = ordered[1800:] - ordered[:200]
    assert_allclose(high - low, widths.min())
    assert low == ordered[widths.argmin()]
    for n, expected in ((0, np.nan), (1, 1.0)):
        assert_array_equal(highest_density(np.ones((1, n, 2)), 0.9), np.full((2, 2), expected))
    with pytest.raises(ShapeError, match="shape"):
        highest_density(np.ones(3), 0.9)


def test_the_energy_fraction_is_that_of_its_definition():
    energy = np.random.default_rng(3).standard_normal((2, 200)).cumsum(axis=1)
    steps = np.square(np.diff(energy, axis=1)).mean(axis=1)
    assert_allclose(energy_information(energy), steps / energy.var(axis=1, ddof=1))
    energy[1, 5] = np.nan
    assert np.isnan(energy_information(energy)).tolist() == [False, True]
    assert np.isnan(energy_information(energy[:, :3])).all()
    with pytest.raises(ShapeError, match=r"energy must have shape \(chains, draws\), got \(200,\)"):
        energy_information(energy[0])
