"""The map between the whole line and bounded parameters."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

from surrokit import Parameters
from surrokit.coordinates.transforms import Transform

BOUNDS = {
    "free": (None, None),
    "above": (1.5, None),
    "below": (None, -2.0),
    "between": (-1.0, 4.0),
    "fraction": (0.0, 1.0),
}


@pytest.fixture
def transform():
    return Transform.of(Parameters.declare(BOUNDS))


def one(lower, upper):
    return Transform.of(Parameters.declare({"a": (lower, upper)}))


@pytest.fixture
def z(rng):
    return 2.0 * rng.standard_normal((50, len(BOUNDS)))


def test_there_and_back(transform, z):
    q = transform.to_bounded(z)
    assert ((q > transform.lower) & (q < transform.upper)).all()
    assert_allclose(transform.to_unbounded(q), z, atol=1e-9)
    assert_allclose(transform.to_bounded(transform.to_unbounded(q)), q, rtol=1e-12)


def test_values_are_the_textbook_ones(transform):
    z = np.full((1, 5), 0.7)
    e, p = np.exp(0.7), expit(0.7)
    assert_allclose(transform.to_bounded(z), [[0.7, 1.5 + e, -2 - e, -1 + 5 * p, p]])


def test_any_leading_axes_are_kept(transform, rng):
    z = rng.standard_normal((3, 4, 5))
    assert_array_equal(transform.to_bounded(z)[1, 2], transform.to_bounded(z[1, 2]))
    assert transform.to_unbounded(transform.to_bounded(z)).shape == (3, 4, 5)


def test_the_argument_is_left_as_it_is(transform, z):
    before = z.copy()
    transform.to_unbounded(transform.to_bounded(z))
    transform.derivatives(z)
    assert_array_equal(z, before)


def test_the_jacobian_is_the_determinant_of_differences(transform, z, differences):
    jacobian = differences(transform.to_bounded, z)
    assert_allclose(np.linalg.slogdet(jacobian)[1], transform.log_jacobian(z), atol=1e-5)


def test_derivatives_agree_with_differences(transform, z, differences):
    def diagonal(function):
        return np.diagonal(differences(function, z), axis1=1, axis2=2)

    def of(name):
        return diagonal(lambda x: getattr(transform.derivatives(x), name))

    d, (third, log_third) = transform.derivatives(z), transform.third_derivatives(z)
    logs = diagonal(lambda x: np.log(np.abs(transform.derivatives(x).first)))
    assert_allclose(d.log_first, logs, rtol=1e-4, atol=1e-6)
    for found, expected in (
        (d.first, diagonal(transform.to_bounded)),
        (d.second, of("first")),
        (d.log_second, of("log_first")),
        (third, of("second")),
        (log_third, of("log_second")),
    ):
        assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("z", [-800.0, 800.0])
def test_far_out_nothing_is_nan_and_nothing_warns(z):
    for bounds in BOUNDS.values():
        transform, far = one(*bounds), np.array([[z]])
        assert not np.isnan(transform.to_bounded(far)).any()
        assert np.isfinite(transform.log_jacobian(far)).all()
        assert not np.isnan(transform.derivatives(far).first).any()
        assert np.isfinite(transform.derivatives(far).log_first).all()
        assert not np.isnan(transform.third_derivatives(far)).any()


@pytest.mark.parametrize("z", [-700.0, -50.0, 50.0, 700.0])
def test_the_jacobian_of_the_logistic_map_has_tails_of_slope_one(z):
    assert_allclose(one(0, 1).log_jacobian(np.array([[z]])), -abs(z), rtol=1e-12)


def test_overflow_goes_to_infinity_on_the_open_side():
    far = np.array([[800.0]])
    assert one(0, None).to_bounded(far) == np.inf
    assert one(None, 0).to_bounded(far) == -np.inf


def test_bounds_themselves_are_infinitely_far():
    assert_array_equal(one(0, 1).to_unbounded(np.array([[0.0], [1.0]])), [[-np.inf], [np.inf]])
    assert one(0, None).to_unbounded(np.array([[0.0]])) == -np.inf


def test_outside_the_bounds_is_nan():
    assert np.isnan(one(0, 1).to_unbounded(np.array([[-0.5], [1.5]]))).all()
    assert np.isnan(one(0, None).to_unbounded(np.array([[-1.0]])))


def test_without_bounds_nothing_changes(z):
    transform = Transform.of(Parameters.unnamed(5))
    assert_array_equal(transform.to_bounded(z), z)
    assert_array_equal(transform.to_unbounded(z), z)
    assert_array_equal(transform.log_jacobian(z), 0.0)


@pytest.mark.parametrize("z", [-20.0, -30.0, -40.0, -600.0])
def test_the_logistic_map_keeps_its_digits_near_a_lower_bound_of_zero(z):
    at = np.array([[z]])
    assert_allclose(one(0, 1).to_bounded(at), expit(at), rtol=1e-12)
    assert_allclose(one(0, 1).to_unbounded(one(0, 1).to_bounded(at)), at, rtol=1e-12)
