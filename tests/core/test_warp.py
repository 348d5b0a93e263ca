"""Coordinates in which parameters are about normal: the map, the potential there, and the fit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from surrokit.interfaces import StepInfo
from surrokit.kernel.tuning import Tuner
from surrokit.marginals import Warp, _misfit, fit_marginals
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
WARPED = Warped(Banana(), WARP)


@pytest.fixture
def straight(rng):
    return rng.standard_normal((7, 2))


def skewness(positions):
    centred = positions - positions.mean(axis=0)
    return (centred**3).mean(axis=0) / positions.std(axis=0) ** 3


# --- the map ---


def test_there_and_back(straight):
    assert_allclose(WARP.straighten(WARP.bend(straight)), straight, rtol=1e-12, atol=1e-13)


def test_slopes_are_those_of_differences(straight):
    h = 1e-6
    up, down = straight + h, straight - h
    slope, by_straight = WARP.slopes(straight)
    assert_allclose(slope, (WARP.bend(up) - WARP.bend(down)) / (2 * h), rtol=1e-7)
    logs = [np.log(WARP.slopes(side)[0]) for side in (up, down)]
    assert_allclose(by_straight, (logs[0] - logs[1]) / (2 * h), rtol=1e-6, atol=1e-9)


# --- the potential ---


def test_its_gradient_is_that_of_differences(straight, differences):
    value, gradient = WARPED.value_and_gradient(straight)
    assert_array_equal(WARPED.value(straight), value)
    assert_allclose(gradient, differences(WARPED.value, straight), rtol=1e-5, atol=1e-6)


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


def test_what_is_kept_is_turned_into_what_is_evaluated(straight):
    positions = WARP.bend(straight)
    at_x = dict(zip(("value", "gradient"), Banana().value_and_gradient(positions), strict=True))
    at_z = dict(zip(("value", "gradient"), WARPED.value_and_gradient(straight), strict=True))
    for name, found in WARPED.straighten(at_x, straight).items():
        assert_allclose(found, at_z[name], rtol=1e-10)
    for name, found in WARPED.bend(at_z, straight).items():
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


def test_the_slope_of_the_misfit_is_that_of_differences(rng):
    setting, units = np.array([0.2, -0.3, 0.4, 0.5]), rng.gamma(2.0, size=40) - 2.0
    h = 1e-6
    expected = [
        (_misfit(setting + h * one, units)[0] - _misfit(setting - h * one, units)[0]) / (2 * h)
        for one in np.eye(4)
    ]
    assert_allclose(_misfit(setting, units)[1], expected, rtol=1e-6)


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
