from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal, norm

from surrokit.errors import ConfigurationError, ShapeError
from surrokit_problems.densities import Banana, GaussianPotential

MEAN = np.array([1.0, -2.0, 0.5])
COVARIANCE = np.array([[2.0, 0.6, 0.0], [0.6, 0.5, 0.1], [0.0, 0.1, 1.0]])


def test_value_is_minus_the_log_density_up_to_a_constant():
    positions = np.random.default_rng(0).standard_normal((6, 3))
    potential = GaussianPotential(MEAN, COVARIANCE)
    expected = -multivariate_normal(MEAN, COVARIANCE).logpdf(positions)
    assert_allclose(np.diff(potential.value(positions)), np.diff(expected), rtol=1e-10)
    assert_allclose(potential.value(np.array([[np.inf, -np.inf, 0.0], [1e200, 0, 0]])), np.inf)
    assert_allclose(potential.hessian(np.ones((2, 3))), [np.linalg.inv(COVARIANCE)] * 2)
    draws = potential.sample(np.random.default_rng(2), 200_000)
    assert_allclose(draws.mean(axis=0), MEAN, atol=0.02)
    assert_allclose(np.cov(draws.T), COVARIANCE, atol=0.03)


@pytest.mark.parametrize(
    ("mean", "covariance", "error"),
    [
        (MEAN, np.eye(2), ShapeError),
        (MEAN[:2], [[1.0, 2.0], [2.0, 1.0]], ConfigurationError),
        (MEAN[:2], [[1.0, 0.5], [0.0, 1.0]], ConfigurationError),
        ([np.nan, 0.0], np.eye(2), ConfigurationError),
    ],
)
def test_settings_that_are_no_gaussian(mean, covariance, error):
    with pytest.raises(error, match="covariance"):
        GaussianPotential(mean, covariance)


def test_the_banana_is_minus_the_log_density_up_to_a_constant():
    potential = Banana()
    positions = np.random.default_rng(0).standard_normal((5, 2))
    expected = [
        -norm(a + b**2, 2.0).logpdf(potential.data).sum() - norm().logpdf([a, b]).sum()
        for a, b in positions
    ]
    assert_allclose(np.diff(potential.value(positions)), np.diff(expected), rtol=1e-9)


def test_metric_is_the_hessian_expected_over_data():
    # averaged over data, the residuals vanish and the Fisher matrix stays
    potential = Banana(sigma_theta=2.0)
    theta = np.array([[0.3, -1.1]])
    slopes = np.array([1.0, -2.2])
    expected = 100 / 4.0 * np.outer(slopes, slopes) + np.eye(2) / 4.0
    assert_allclose(potential.metric(theta), expected[None])


@pytest.mark.parametrize(
    "settings", [{"sigma_y": 0.0}, {"sigma_theta": np.inf}, {"n_observations": 0}]
)
def test_settings_of_the_banana_are_positive(settings):
    with pytest.raises(ConfigurationError, match="must be positive and finite"):
        Banana(**settings)
