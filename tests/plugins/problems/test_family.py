"""Families of terms: each other's derivatives, and the bound of the third by brute force."""

from __future__ import annotations

import pickle

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import logistic, norm
from scipy.stats import t as student

from surrokit.errors import ConfigurationError
from surrokit_problems.rows.families.family import Family
from surrokit_problems.rows.families.ready_made import (
    LOGISTIC,
    PROBIT,
    logistic_errors,
    student_errors,
)

FAMILIES = [
    LOGISTIC,
    PROBIT,
    student_errors(),
    student_errors(degrees=1.0, scale=0.3),
    student_errors(degrees=30.0, scale=4.0),
    logistic_errors(),
    logistic_errors(scale=0.25),
]
EACH = pytest.mark.parametrize("family", FAMILIES, ids=[family.name for family in FAMILIES])
PREDICTORS = np.linspace(-30.0, 30.0, 60_001)


def responses(family):
    return (0.0, 1.0) if family.binary else (-1.5, 0.0, 2.0)


@EACH
def test_each_function_is_the_derivative_of_the_one_before(family):
    h = 1e-4
    for y in responses(family):
        e = np.linspace(-8.0, 8.0, 4001)
        slope = (family.value(e + h, y) - family.value(e - h, y)) / (2 * h)
        bend = (family.first(e + h, y) - family.first(e - h, y)) / (2 * h)
        assert_allclose(family.first(e, y), slope, rtol=1e-5, atol=1e-6)
        assert_allclose(family.second(e, y), bend, rtol=1e-5, atol=1e-5)


@EACH
def test_the_bound_holds_on_a_fine_grid_and_is_attained(family):
    largest = 0.0
    for y in responses(family):
        bends = family.second(PREDICTORS, y)
        third = np.diff(bends) / np.diff(PREDICTORS)
        largest = max(largest, np.abs(third).max())
    assert largest <= family.third_bound * (1 + 1e-7)
    assert largest > 0.999 * family.third_bound


def test_the_fourth_bound_holds_on_a_fine_grid_and_is_attained():
    for y in (0.0, 1.0):
        thirds = LOGISTIC.third(PREDICTORS, y)
        assert_allclose(np.gradient(LOGISTIC.second(PREDICTORS, y), PREDICTORS), thirds, atol=1e-6)
        fourth = np.abs(np.diff(thirds) / np.diff(PREDICTORS)).max()
        assert 0.999 * LOGISTIC.fourth_bound < fourth <= LOGISTIC.fourth_bound * (1 + 1e-7)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fourth_bound": None}, "go together; give both, or neither"),
        ({"third": None}, "go together; give both, or neither"),
        (
            {"fourth_bound": 0.0},
            "fourth_bound of the family 'logistic' must be positive and finite",
        ),
        ({"fourth_bound": np.inf}, "give the largest absolute fourth derivative"),
    ],
)
def test_third_derivatives_come_with_a_bound_of_the_fourth(changes, message):
    with pytest.raises(ConfigurationError, match=message):
        attrs.evolve(LOGISTIC, **changes)


@EACH
def test_convexity_is_as_declared(family):
    e = np.linspace(-30.0, 30.0, 2001)
    convex = all((family.second(e, y) > 0).all() for y in responses(family))
    assert convex == family.convex


@EACH
def test_the_remainder_is_that_of_the_second_order_expansion(family):
    rng = np.random.default_rng(0)
    e, t = 3.0 * rng.standard_normal(2000), 10.0 ** rng.uniform(-2.0, 1.0, 2000)
    t *= rng.choice([-1.0, 1.0], 2000)
    for y in responses(family):
        y = np.full(2000, y)
        plain = family.value(e + t, y) - family.value(e, y)
        plain -= family.first(e, y) * t + 0.5 * family.second(e, y) * t**2
        found = family.remaining_of(family.prepare_rows(e, y), t)
        assert_allclose(found, plain, rtol=1e-6, atol=1e-12)
        assert (np.abs(found) <= family.third_bound * np.abs(t) ** 3 / 6 + 1e-13).all()


def test_logistic_remainders_keep_their_digits_for_short_steps_and_long_ones():
    e, y = np.array([0.3]), np.array([1.0])
    p = 1 / (1 + np.exp(-0.3))
    third = p * (1 - p) * (1 - 2 * p)
    prepared = LOGISTIC.prepare_rows(e, y)
    short = LOGISTIC.remaining_of(prepared, np.array([1e-4]))
    assert_allclose(short, third * 1e-12 / 6, rtol=1e-3)
    long = LOGISTIC.remaining_of(prepared, np.array([800.0]))
    assert_allclose(long, 800 + np.log(p) - p * 800 - p * (1 - p) * 800**2 / 2, rtol=1e-12)


@pytest.mark.parametrize(
    ("family", "y", "log_density"),
    [
        (PROBIT, 1.0, lambda e: norm.logcdf(e)),
        (PROBIT, 0.0, lambda e: norm.logsf(e)),
        (LOGISTIC, 1.0, lambda e: logistic.logcdf(e)),
        (LOGISTIC, 0.0, lambda e: logistic.logsf(e)),
        (student_errors(3.0, 0.5), 1.2, lambda e: student(3.0, loc=e, scale=0.5).logpdf(1.2)),
        (logistic_errors(0.5), 1.2, lambda e: logistic(loc=e, scale=0.5).logpdf(1.2)),
    ],
)
def test_values_are_minus_log_densities_up_to_a_constant(family, y, log_density):
    e = np.array([-6.0, -0.4, 0.0, 1.0, 7.0])
    assert_allclose(np.diff(family.value(e, y)), -np.diff(log_density(e)), rtol=1e-9)


@EACH
def test_far_out_nothing_is_nan_and_second_derivatives_stay_in_their_range(family):
    e = np.array([-1e8, -1e4, -40.0, 40.0, 1e4, 1e8])
    for y in responses(family):
        assert not np.isnan(family.value(e, y)).any()
        assert np.isfinite(family.first(e, y)).all()
        assert np.isfinite(family.second(e, y)).all()


@EACH
def test_families_travel(family):
    again = pickle.loads(pickle.dumps(family))
    e = np.array([0.3, -2.0])
    assert_allclose(again.value(e, 1.0), family.value(e, 1.0))
    assert again.name in repr(again)


@pytest.mark.parametrize("bound", [0.0, -1.0, np.inf, np.nan])
def test_a_bound_that_bounds_nothing_is_refused(bound):
    with pytest.raises(ConfigurationError, match="third_bound of the family 'mine' must be"):
        Family(name="mine", value=np.add, first=np.add, second=np.add, third_bound=bound)


@pytest.mark.parametrize("settings", [{"scale": 0.0}, {"degrees": -1.0}])
def test_errors_need_positive_settings(settings):
    with pytest.raises(ConfigurationError, match="must be positive and finite, got"):
        student_errors(**settings)
