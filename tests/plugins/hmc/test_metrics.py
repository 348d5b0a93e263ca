"""Constant mass matrices."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from surrokit.errors import ConfigurationError, ShapeError
from surrokit_hmc.metrics import DenseMetric, DiagonalMetric, IdentityMetric

INVERSE = np.array([[2.0, 0.6], [0.6, 0.5]])
COVARIANCE = np.array([[3.0, -0.5], [-0.5, 1.0]])

CASES = {
    "identity": (IdentityMetric(), np.eye(2)),
    "diagonal": (DiagonalMetric([2.0, 0.5]), np.diag([2.0, 0.5])),
    "diagonal-free": (DiagonalMetric(), np.eye(2)),
    "diagonal-learnt": (DiagonalMetric().adapt(COVARIANCE), np.diag([3.0, 1.0])),
    "dense": (DenseMetric(INVERSE), INVERSE),
    "dense-free": (DenseMetric(), np.eye(2)),
    "dense-learnt": (DenseMetric().adapt(COVARIANCE), COVARIANCE),
}
EACH = pytest.mark.parametrize(("metric", "inverse"), CASES.values(), ids=CASES)


@pytest.fixture
def momenta(rng):
    return rng.standard_normal((7, 2))


@EACH
def test_the_velocity_is_the_inverse_mass_times_momentum(metric, inverse, momenta):
    assert_allclose(metric.velocity(momenta), momenta @ inverse)


@EACH
def test_the_energy_is_half_the_product_of_momentum_and_velocity(metric, inverse, momenta):
    assert_allclose(
        metric.energy(momenta), 0.5 * np.einsum("ni,ij,nj->n", momenta, inverse, momenta)
    )


@EACH
def test_the_longest_scale_is_that_of_the_whitened_covariance(metric, inverse):
    expected = np.sqrt(np.linalg.eigvals(np.linalg.solve(inverse, COVARIANCE)).real.max())
    assert metric.longest_scale(COVARIANCE) == pytest.approx(expected)


def test_a_metric_that_fits_has_scale_one():
    assert DenseMetric().adapt(COVARIANCE).longest_scale(COVARIANCE) == pytest.approx(1.0)
    assert DenseMetric().adapt(COVARIANCE).longest_scale(COVARIANCE.copy()) == pytest.approx(1.0)


@pytest.mark.parametrize("metric", [DiagonalMetric(), DenseMetric()])
def test_what_is_not_given_is_tuned(metric):
    assert metric.tunable
    assert metric.adapt(COVARIANCE).tunable
    assert metric.adapt(COVARIANCE) is not metric


@pytest.mark.parametrize(
    "metric", [DiagonalMetric([1.0, 2.0]), DenseMetric(INVERSE), IdentityMetric()]
)
def test_what_is_given_is_kept(metric, momenta):
    assert not metric.tunable
    assert_array_equal(metric.adapt(COVARIANCE).velocity(momenta), metric.velocity(momenta))


def test_the_arrays_given_can_be_changed_afterwards(momenta):
    given = INVERSE.copy()
    metric = DenseMetric(given)
    given[:] = 0.0
    assert_allclose(metric.velocity(momenta), momenta @ INVERSE)


@pytest.mark.parametrize(
    "inverse_mass", [[1.0, 0.0], [1.0, -1.0], [1.0, np.nan], [np.inf, 1.0], np.eye(2), 3.0], ids=str
)
def test_a_diagonal_must_be_positive(inverse_mass):
    with pytest.raises(
        ConfigurationError, match="must be a vector of positive finite numbers, got"
    ):
        DiagonalMetric(inverse_mass)


@pytest.mark.parametrize(
    "inverse_mass",
    [
        [[1.0, 2.0], [2.0, 1.0]],
        [[1.0, 0.5], [0.0, 1.0]],
        [[1.0, 0.0], [0.0, 0.0]],
        [[np.nan, 0.0], [0.0, 1.0]],
        [[np.inf, 0.0], [0.0, 1.0]],
        [1.0, 2.0],
        [[1.0, 0.0]],
    ],
    ids=str,
)
def test_a_dense_matrix_must_be_positive_definite(inverse_mass):
    with pytest.raises(ConfigurationError, match="symmetric positive definite matrix of finite"):
        DenseMetric(inverse_mass)


@pytest.mark.parametrize("metric", [DiagonalMetric([1.0, 2.0]), DenseMetric(INVERSE)])
def test_a_mass_for_another_number_of_parameters_is_refused(metric, rng):
    with pytest.raises(
        ShapeError, match="is for 2 parameters, but the target has 3; give one for each"
    ):
        metric.draw(rng, 4, 3)
