from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from scipy.stats import bernoulli, norm

from surrokit.errors import ConfigurationError, ShapeError
from surrokit.testing import check_potential
from surrokit_problems.logistic import LogisticRegression, simulate_regression


@pytest.fixture
def regression():
    rng = np.random.default_rng(0)
    design = rng.standard_normal((3001, 6))  # two blocks, and no multiple of eight rows
    response = (rng.uniform(size=3001) < 0.4).astype(float)
    return design, response


@pytest.fixture
def positions():
    return np.random.default_rng(1).standard_normal((5, 6))


def test_value_is_minus_the_log_density_up_to_a_constant(regression, positions):
    design, response = regression
    values = LogisticRegression(design, response, 4.0).value(positions)
    expected = [
        -bernoulli(1 / (1 + np.exp(-design @ b))).logpmf(response).sum()
        - norm(0, 2.0).logpdf(b).sum()
        for b in positions
    ]
    assert_allclose(np.diff(values), np.diff(expected), rtol=1e-9)


def test_several_blocks_are_the_sum_of_their_rows(positions):
    rng = np.random.default_rng(2)
    design, response = rng.standard_normal((70_001, 6)), (rng.random(70_001) < 0.4) * 1.0
    value, gradient = LogisticRegression(design, response, 4.0).value_and_gradient(positions)
    e = design @ positions.T
    terms = np.logaddexp(0.0, e) - response[:, None] * e
    prior = -norm(0, 2.0).logpdf(positions).sum(axis=1)
    assert_allclose(value, terms.sum(axis=0) + prior, rtol=1e-12)
    residuals = expit(e) - response[:, None]
    assert_allclose(gradient, residuals.T @ design + positions / 4.0, rtol=1e-9, atol=1e-9)


def test_it_keeps_to_the_contract_of_potentials(regression):
    results = check_potential(lambda: LogisticRegression(*regression))
    assert [f"{r.name}: {r.message}" for r in results if r.outcome != "passed"] == []
    names = {r.name.partition("[")[0] for r in results}
    assert {"check_hessian_derivative", "check_metric_derivative", "check_convex"} <= names
    assert {"check_hessian_product", "check_metric_matrix", "check_hessian_diagonal"} <= names


def test_far_out_only_the_prior_is_left_of_derivatives(regression):
    far = np.full((2, 6), 1e8)
    far[1] = -1e8
    potential = LogisticRegression(*regression)
    vectors = np.ones((2, 6))
    assert_allclose(potential.hessian_product(far, vectors), 0.01 * vectors, atol=1e-12)
    assert_allclose(potential.hessian_form_gradient(far, vectors), np.zeros((2, 6)), atol=1e-12)
    matrices = np.ones((2, 6, 6))
    assert_allclose(potential.hessian_trace_gradient(far, matrices), np.zeros((2, 6)), atol=1e-12)


def test_far_positions_do_not_overflow(regression):
    design, response = regression
    far = np.full((3, 6), 1e4)
    far[1] = 0.1
    value, gradient = LogisticRegression(design, response).value_and_gradient(far)
    z = design @ far.T
    expected = (np.logaddexp(0, z) - response[:, None] * z).sum(axis=0)
    prior = 0.5 * np.square(far).sum(axis=1) / 100 + 6 * np.log(10.0 * np.sqrt(2.0 * np.pi))
    assert_allclose(value, expected + prior, rtol=1e-12)
    assert np.isfinite(gradient).all()


def test_value_is_infinite_at_infinity(regression):
    positions = np.full((2, 6), np.inf)
    positions[1] = [np.nan, 0, 0, 0, 0, 0]
    assert_allclose(LogisticRegression(*regression).value(positions), np.inf)


def test_value_of_separated_data_is_precise():
    potential = LogisticRegression(np.ones((8, 1)), np.ones(8), prior_variance=np.array([np.inf]))
    value = potential.value(np.array([[20.0]]))
    assert_allclose(value, 8 * np.log1p(np.exp(-20)), rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("variance", "error", "message"),
    [
        (0.0, ConfigurationError, "prior_variance must be positive and finite, got 0"),
        (np.array([1.0, 0.0, 1.0]), ConfigurationError, "prior_variance must be positive"),
        (np.ones(2), ShapeError, r"prior_variance must be one number or have shape \(6,\)"),
    ],
)
def test_variances_that_are_none(regression, variance, error, message):
    with pytest.raises(error, match=message):
        LogisticRegression(*regression, variance)


def test_simulated_data_follow_the_recipe():
    design, response, truth = simulate_regression(50_000, 10, seed=3)
    assert_allclose(design[:, 0], 0.1)
    assert_allclose(design[:, 1:].std(axis=0), 0.1, rtol=0.02)
    assert ((truth >= 0) & (truth <= 1)).all()
    probability = 1 / (1 + np.exp(-design @ truth))
    assert abs(response.mean() - probability.mean()) < 4 * 0.5 / np.sqrt(50_000)
    again = simulate_regression(50_000, 10, seed=3)
    assert_allclose(again[0], design)
    assert_allclose(again[1], response)


def test_simulated_data_need_a_size():
    with pytest.raises(ConfigurationError, match="n_rows and dim must be at least 1"):
        simulate_regression(0, 10, seed=3)
