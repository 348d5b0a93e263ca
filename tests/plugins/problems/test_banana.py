from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from surrokit.errors import ConfigurationError
from surrokit_problems.banana import Banana


def test_value_is_minus_the_log_density_up_to_a_constant():
    potential = Banana()
    positions = np.random.default_rng(0).standard_normal((5, 2))
    expected = [
        -norm(a + b**2, 2.0).logpdf(potential.data).sum() - norm().logpdf([a, b]).sum()
        for a, b in positions
    ]
    assert_allclose(np.diff(potential.value(positions)), np.diff(expected), rtol=1e-9)


def test_derivatives(differences):
    potential = Banana(n_observations=20, sigma_y=1.5, sigma_theta=0.7)
    positions = np.random.default_rng(1).standard_normal((6, 2))
    _, gradient = potential.value_and_gradient(positions)
    assert_allclose(gradient, differences(potential.value, positions), rtol=1e-5, atol=1e-6)
    hessian = differences(lambda q: potential.value_and_gradient(q)[1], positions)
    assert_allclose(potential.hessian(positions), hessian, rtol=1e-5, atol=1e-5)


def test_metric_is_the_hessian_expected_over_data():
    # averaged over data, the residuals vanish and the Fisher matrix stays
    potential = Banana(sigma_theta=2.0)
    theta = np.array([[0.3, -1.1]])
    slopes = np.array([1.0, -2.2])
    expected = 100 / 4.0 * np.outer(slopes, slopes) + np.eye(2) / 4.0
    assert_allclose(potential.metric(theta), expected[None])


def test_the_data_are_reproducible_and_about_the_truth():
    assert_allclose(Banana().data, Banana().data)
    assert abs(Banana().data.mean() - 1.0) < 4 * 2.0 / np.sqrt(100)


@pytest.mark.parametrize(
    "settings", [{"sigma_y": 0.0}, {"sigma_theta": np.inf}, {"n_observations": 0}]
)
def test_settings_that_are_not_positive(settings):
    with pytest.raises(ConfigurationError, match="must be positive and finite"):
        Banana(**settings)
