"""Effective sample size, R-hat, Monte Carlo error, relative error of the mean."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from arviz_stats.base import array_stats
from numpy.testing import assert_allclose, assert_array_equal
from scipy.signal import lfilter

from surrokit import effective_sample_size, r_hat, relative_error_of_mean
from surrokit.diagnostics import energy_information, mean_error
from surrokit.errors import ConfigurationError, ShapeError


def autoregressive(rng, phi, chains=4, draws=4000, dim=1):
    noise = rng.standard_normal((chains, draws + 500, dim)) * np.sqrt(1 - phi**2)
    return lfilter([1.0], [1.0, -phi], noise, axis=1)[:, 500:]


@pytest.fixture
def draws(rng):
    return autoregressive(rng, np.array(0.6), draws=500, dim=3) * [1.0, 10.0, 0.1] + [
        0.0,
        5.0,
        -1.0,
    ]


def of_each(function, draws, **options):
    return [
        float(function(draws[:, :, i], chain_axis=0, draw_axis=1, **options))
        for i in range(draws.shape[2])
    ]


def test_bulk_is_that_of_arviz(draws):
    expected = of_each(array_stats.ess, draws, method="bulk")
    assert_allclose(effective_sample_size(draws, "bulk"), expected, rtol=1e-10)


def test_tail_is_the_smaller_of_both_quantiles(draws):
    ends = [of_each(array_stats.ess, draws, method="quantile", prob=p) for p in (0.05, 0.95)]
    assert_allclose(effective_sample_size(draws, "tail"), np.minimum(*ends), rtol=1e-10)


def test_that_of_squares_is_bulk_of_squared_distances_from_the_mean(draws):
    squares = np.square(draws - draws.mean(axis=(0, 1)))
    expected = of_each(array_stats.ess, squares, method="bulk")
    assert_allclose(effective_sample_size(draws, "square"), expected, rtol=1e-10)


def test_the_least_of_the_three_is_the_default(draws):
    three = [effective_sample_size(draws, kind) for kind in ("bulk", "tail", "square")]
    assert_array_equal(effective_sample_size(draws, "least"), np.min(three, axis=0))
    assert_array_equal(effective_sample_size(draws), effective_sample_size(draws, "least"))


def test_antithetic_draws_are_not_worth_more_than_their_squares(rng):
    """For x' = -0.9 x + noise, squares have correlations 0.81^k: n (1 - 0.81) / (1 + 0.81)."""
    draws = autoregressive(rng, -0.9)
    assert effective_sample_size(draws, "bulk") > 2.0 * 16_000
    assert_allclose(effective_sample_size(draws), 16_000 * 0.19 / 1.81, rtol=0.15)


def test_r_hat_is_that_of_arviz(draws):
    draws[0, :, 1] += 20.0
    expected = of_each(array_stats.rhat, draws, method="rank")
    assert_allclose(r_hat(draws), expected, rtol=1e-10)
    assert r_hat(draws)[1] > 1.1
    assert r_hat(draws)[0] < 1.05


def test_the_error_of_the_mean_is_sd_over_root_ess(draws):
    ess = np.array(of_each(array_stats.ess, draws, method="mean"))
    assert_allclose(mean_error(draws), draws.std(axis=(0, 1), ddof=1) / np.sqrt(ess), rtol=1e-3)


# --- the estimator of the paper ---


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9])
def test_the_papers_estimator_knows_autoregression(rng, phi):
    """For x' = phi x + noise, ESS = B (1 - phi) / (1 + phi)."""
    draws = autoregressive(rng, phi, chains=4, draws=20_000)
    expected = 4 * 20_000 * (1 - phi) / (1 + phi)
    assert_allclose(effective_sample_size(draws, "paper"), expected, rtol=0.15)


def test_the_papers_estimator_never_exceeds_the_draws(rng):
    alternating = autoregressive(rng, -0.9, draws=1000)
    assert_allclose(effective_sample_size(alternating, "paper"), 4000.0)


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


def test_chains_add_up(rng):
    draws = autoregressive(rng, 0.7, chains=3, draws=300)
    alone = [effective_sample_size(draws[i : i + 1], "paper") for i in range(3)]
    assert_allclose(effective_sample_size(draws, "paper"), np.sum(alone, axis=0))


@pytest.mark.parametrize("kind", ["least", "bulk", "tail", "square", "paper"])
def test_location_and_scale_do_not_matter(draws, kind):
    assert_allclose(
        effective_sample_size(3.0 - 2.0 * draws, kind),
        effective_sample_size(draws, kind),
        rtol=0.02,
    )


# --- nothing to say ---

MEASURES = {
    "least": effective_sample_size,
    "bulk": lambda draws: effective_sample_size(draws, "bulk"),
    "tail": lambda draws: effective_sample_size(draws, "tail"),
    "square": lambda draws: effective_sample_size(draws, "square"),
    "paper": lambda draws: effective_sample_size(draws, "paper"),
    "r-hat": r_hat,
    "error": mean_error,
}
EACH = pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)


@EACH
@pytest.mark.parametrize("constant", [0.0, 0.1, 0.3, 1e8])
def test_a_parameter_that_never_moved_is_nan_without_a_warning(draws, measure, constant):
    draws[:, :, 1] = constant
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = measure(draws)
    assert np.isnan(result).tolist() == [False, True, False]


@EACH
def test_chains_that_stand_still_at_different_places_are_nan(draws, measure):
    draws[:, :, 1] = draws[:, :1, 1]
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


@EACH
@pytest.mark.parametrize("n", [0, 1, 3])
def test_too_few_draws_are_nan(measure, n):
    result = measure(np.arange(2.0 * n * 3).reshape(2, n, 3))
    assert result.shape == (3,)
    assert np.isnan(result).all()


@EACH
@pytest.mark.parametrize("shape", [(10,), (4, 10), (1, 4, 10, 2)])
def test_draws_must_have_three_axes(measure, shape):
    with pytest.raises(ShapeError, match=r"must have shape \(chains, draws, dim\), got"):
        measure(np.zeros(shape))


@EACH
def test_one_chain_is_enough(draws, measure):
    assert np.isfinite(measure(draws[:1])).all()


def test_r_hat_of_one_chain_compares_its_halves(draws):
    assert (r_hat(draws[:1]) < 1.1).all()
    draws[0, :250] += 30.0
    assert (r_hat(draws[:1]) > 1.5).all()


@pytest.mark.parametrize(("n", "known"), [(7, False), (8, True)])
def test_halves_of_one_chain_must_be_long_enough(draws, n, known):
    assert np.isfinite(r_hat(draws[:1, :n])).all() == known


def test_an_unknown_kind_is_refused(draws):
    with pytest.raises(ConfigurationError, match="least, bulk, tail, square, paper, got 'mean'"):
        effective_sample_size(draws, "mean")


# --- relative error of the mean ---


def test_the_relative_error_is_that_of_the_running_mean():
    draws = np.array([[[3.0, 0.0], [1.0, 4.0], [5.0, 2.0]]])
    mean = np.array([3.0, 4.0])
    expected = [
        np.linalg.norm(draws[0, :t].mean(axis=0) - mean) / np.linalg.norm(mean) for t in (1, 2, 3)
    ]
    assert_allclose(relative_error_of_mean(draws, mean), [expected])


def test_each_chain_has_its_curve(draws):
    curves = relative_error_of_mean(draws, [1.0, 5.0, -1.0])
    assert curves.shape == draws.shape[:2]
    assert_allclose(curves[2], relative_error_of_mean(draws[2:3], [1.0, 5.0, -1.0])[0])


def test_a_mean_of_another_size_is_refused(draws):
    with pytest.raises(ShapeError, match=r"mean must have shape \(3,\), got \(2,\)"):
        relative_error_of_mean(draws, [1.0, 2.0])


def test_nothing_is_relative_to_zero(draws):
    with pytest.raises(ConfigurationError, match="the mean is zero"):
        relative_error_of_mean(draws, np.zeros(3))


def test_the_energy_fraction_is_that_of_its_definition():
    energy = np.random.default_rng(3).standard_normal((2, 200)).cumsum(axis=1)
    steps = np.square(np.diff(energy, axis=1)).mean(axis=1)
    assert_allclose(energy_information(energy), steps / energy.var(axis=1, ddof=1))
    energy[1, 5] = np.nan
    assert np.isnan(energy_information(energy)).tolist() == [False, True]
    assert np.isnan(energy_information(energy[:, :3])).all()
    with pytest.raises(ShapeError, match=r"energy must have shape \(chains, draws\), got \(200,\)"):
        energy_information(energy[0])
