"""Coordinates in which parameters are about normal: the map, the potential there, and the fit."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from surrokit.interfaces import StepInfo
from surrokit.kernel.tuning import Tuner
from surrokit.marginals import Scales, Warp, _fit_widths, fit_marginals, fit_scales
from surrokit.testing import CountingPotential
from surrokit.testing.targets import Banana
from surrokit.warping import Warped

WARP = Warp(
    centre=np.array([0.5, -1.0]),
    scale=np.array([2.0, 0.3]),
    lean=np.array([0.8, -0.4]),
    tail=np.array([0.6, 1.7]),
    covariance=np.eye(2),
)
SCALED = attrs.evolve(
    WARP,
    scales=Scales(
        locations=np.array([[0.0, 0.4], [0.0, 0.0]]), logs=np.array([[0.0, -0.3], [0.0, 0.0]])
    ),
)
WARPED = Warped(Banana(), WARP)
BOTH = pytest.mark.parametrize("warp", [WARP, SCALED], ids=["by itself", "scaled by another"])


@pytest.fixture
def straight(rng):
    return rng.standard_normal((7, 2))


def skewness(positions):
    centred = positions - positions.mean(axis=0)
    return (centred**3).mean(axis=0) / positions.std(axis=0) ** 3


# --- the map ---


@BOTH
def test_there_and_back(straight, warp):
    assert_allclose(warp.straighten(warp.bend(straight)), straight, rtol=1e-11, atol=1e-12)


@BOTH
def test_its_volume_is_that_of_differences(straight, warp, differences):
    columns = [differences(lambda z, i=i: warp.bend(z)[:, i], straight) for i in range(2)]
    volume = np.linalg.slogdet(np.stack(columns, axis=1))[1]
    assert_allclose(warp.log_volume(straight), volume, rtol=1e-5, atol=1e-6)


# --- the potential ---


@BOTH
def test_its_gradient_is_that_of_differences(straight, warp, differences):
    warped = Warped(Banana(), warp)
    value, gradient = warped.value_and_gradient(straight)
    assert_array_equal(warped.value(straight), value)
    assert_allclose(gradient, differences(warped.value, straight), rtol=1e-5, atol=1e-6)


def test_it_counts_the_volume():
    """The density of z integrates to what that of x does."""

    class Normal:
        dim = 1
        capabilities = frozenset()

        def value(self, q):
            return 0.5 * np.square(q).sum(axis=1)

    numbers = {name: np.array([0.7]) for name in ("centre", "scale", "lean", "tail")}
    one = Warp(**numbers, covariance=np.eye(1))
    grid = np.linspace(-40.0, 40.0, 200_001)
    density = np.exp(-Warped(Normal(), one).value(grid[:, None]))
    assert density.sum() * (grid[1] - grid[0]) == pytest.approx(np.sqrt(2 * np.pi), rel=1e-6)


def test_a_gradient_alone_costs_one(straight):
    class WithGradientAlone:
        dim, capabilities = 2, frozenset({"gradient", "gradient-alone"})
        value, value_and_gradient = Banana().value, Banana().value_and_gradient

        def gradient(self, q):
            return self.value_and_gradient(q)[1]

    counting = CountingPotential(WithGradientAlone())
    gradient = Warped(counting, WARP).gradient(straight)
    assert_allclose(gradient, WARPED.value_and_gradient(straight)[1])
    assert (counting.positions["gradient"], counting.positions["value"]) == (7, 0)


@BOTH
def test_what_is_kept_is_turned_into_what_is_evaluated(straight, warp):
    warped, positions = Warped(Banana(), warp), warp.bend(straight)
    at_x = dict(zip(("value", "gradient"), Banana().value_and_gradient(positions), strict=True))
    at_z = dict(zip(("value", "gradient"), warped.value_and_gradient(straight), strict=True))
    for name, found in warped.straighten(at_x, straight).items():
        assert_allclose(found, at_z[name], rtol=1e-10)
    for name, found in warped.bend(at_z, straight).items():
        assert_allclose(found, at_x[name], rtol=1e-8, atol=1e-10)


# --- the fit ---


def test_normal_draws_are_not_bent(rng):
    draws = 3.0 + 2.0 * rng.standard_normal((500, 30))
    centre, scale, lean, tail = fit_marginals(draws)
    assert_allclose(centre, draws.mean(axis=0))
    assert_allclose(scale, draws.std(axis=0))
    assert (lean == 0.0).all()
    assert (tail == 1.0).all()


def test_skewed_draws_become_about_normal(rng):
    draws = np.column_stack([rng.gamma(1.5, size=2000), -np.exp(0.5 * rng.standard_normal(2000))])
    centre, scale, lean, tail = fit_marginals(draws)
    warp = Warp(centre=centre, scale=scale, lean=lean, tail=tail, covariance=np.eye(2))
    straight = warp.straighten(draws)
    assert np.abs(skewness(draws)).min() > 1.3
    assert np.abs(skewness(straight)).max() < 0.25
    assert_allclose(straight.std(axis=0), 1.0, atol=0.1)


def test_a_few_draws_do_not_bend(rng):
    draws = rng.gamma(1.0, size=(2000, 1))
    assert_array_equal(fit_marginals(np.full((9, 1), 4.0)).ravel(), [4.0, 1.0, 0.0, 1.0])
    assert fit_marginals(draws[:8])[2] == 0.0
    assert fit_marginals(draws)[2] > 0.3


# --- scales that depend on others ---


def funnel(rng, n):
    """Return draws of Neal's funnel with six x, and gradients there."""
    v = 3.0 * rng.standard_normal(n)
    x = rng.standard_normal((n, 6)) * np.exp(0.5 * v)[:, None]
    by_v = v / 9.0 + 3.0 - 0.5 * np.square(x).sum(axis=1) * np.exp(-v)
    return np.column_stack([v, x]), np.column_stack([by_v, x * np.exp(-v)[:, None]])


def hierarchy(rng, n):
    """Return draws of eight effects, their mean, and the logarithm of their scale."""
    mean, log_scale = 5.0 * rng.standard_normal(n), rng.standard_normal(n)
    effects = mean[:, None] + np.exp(log_scale)[:, None] * rng.standard_normal((n, 8))
    return np.column_stack([effects, mean, log_scale])


def test_gradients_make_the_scales_of_a_funnel_known_exactly(rng):
    centre, scale, scales = fit_scales(*funnel(rng, 400))
    assert_allclose(scales.logs[0, 1:], 0.5, rtol=1e-6)
    assert_allclose(centre[1:], 0.0, atol=1e-6)
    assert_allclose(scale[1:] / np.exp(0.5 * centre[0]), 1.0, rtol=1e-5)
    assert not scales.logs[1:].any()


def test_draws_alone_tell_them_roughly(rng):
    _, _, scales = fit_scales(funnel(rng, 800)[0])
    assert_allclose(scales.logs[0, 1:], 0.5, atol=0.06)


def test_a_mean_among_the_parameters_belongs_to_locations(rng):
    """Effects go by it with slope one, and by the log scale with slope one; it goes by neither."""
    _, _, scales = fit_scales(hierarchy(rng, 1000))
    assert_allclose(scales.logs[9, :8], 1.0, atol=0.15)
    assert_allclose(scales.locations[8, :8], 1.0, atol=0.1)
    assert not scales.logs[:, 8:].any()


@pytest.mark.parametrize("n", [100, 400, 4000])
def test_normal_draws_have_no_scales_of_others(n):
    """None in sixty tries each: more than one false alarm in twenty fails with 0.95."""
    rng = np.random.default_rng(7)
    shape = 0.9 ** np.abs(np.subtract.outer(np.arange(10), np.arange(10)))
    draws = rng.multivariate_normal(np.zeros(10), shape, size=(60, n))
    assert all(fit_scales(each) is None for each in draws)


def test_few_draws_and_flat_ones_tell_nothing(rng):
    draws, gradients = funnel(rng, 400)
    assert fit_scales(draws[:90], gradients[:90]) is None
    draws[:, 3] = 2.0
    assert fit_scales(draws, gradients) is None


# --- in warm-up ---


def info(n):
    return StepInfo(
        accepted=np.ones(n, dtype=bool),
        acceptance=np.full(n, 0.8),
        path_acceptance=np.full(n, 0.8),
        status=np.zeros(n, dtype=np.int64),
        divergent=np.zeros(n, dtype=bool),
        n_steps=np.ones(n, dtype=np.int64),
    )


def tuned(tunes, positions, gradients=None):
    """Return the tuning after a warm-up that saw these positions, (iterations, chains, dim)."""
    sampler: Any = SimpleNamespace(
        tunes=frozenset(tunes), target_acceptance=0.8, largest_step=np.inf, tuning=None
    )
    tuner = Tuner.start(sampler, *positions.shape)
    for i, position in enumerate(positions):
        gradient = None if gradients is None else gradients[i]
        tuner = tuner.update(position, info(len(position)), gradient)
    return tuner.tuning


@pytest.fixture
def skewed(rng):
    return np.exp(rng.standard_normal((300, 4, 2)) * [0.6, 0.3])


def test_a_window_gives_a_warp(skewed):
    found = tuned({"metric", "warp"}, skewed)
    straight = found.warp.straighten(skewed.reshape(-1, 2))
    assert np.abs(skewness(straight)).max() < 0.3
    assert_allclose(np.diag(found.warp.covariance), straight.var(axis=0), rtol=0.2)
    assert_allclose(np.diag(found.covariance), skewed.reshape(-1, 2).var(axis=0), rtol=0.4)


@pytest.mark.parametrize("with_gradients", [False, True])
def test_where_nothing_bends_its_covariance_is_the_other_in_new_units(rng, with_gradients):
    covariance = np.array([[4.0, 1.99], [1.99, 1.0]])
    draws = 7.0 + rng.standard_normal((300, 4, 2)) @ np.linalg.cholesky(covariance).T
    gradients = (draws - 7.0) @ np.linalg.inv(covariance) if with_gradients else None
    found = tuned({"metric", "warp"}, draws, gradients)
    assert (found.warp.lean == 0.0).all()
    units = found.warp.scale * found.warp.scale[:, None]
    assert_allclose(units * found.warp.covariance, found.covariance, rtol=1e-6)


@pytest.mark.parametrize("has_gradients", [True, False])
def test_scales_that_overflow_are_not_fitted(has_gradients, rng):
    """A few draws, many of them repeats, may seem to have any."""
    units = np.array([1.0, 4.0, 4.0]) * rng.standard_normal((40, 3))
    slopes = np.array([[0.0, 0.0, 0.0], [-93.0, 0.0, 0.0], [-99.0, 0.0, 0.0]])
    governed = np.array([True, False, False])
    pulled = rng.standard_normal((40, 3)) if has_gradients else None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _fit_widths(units, pulled, governed, ~governed, slopes) == {}
