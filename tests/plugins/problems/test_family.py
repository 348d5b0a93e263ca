"""Families of terms: their densities, and bounds by brute force; test_precision has the rest."""

from __future__ import annotations

import pickle

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import expon, logistic, nbinom, norm, weibull_min
from scipy.stats import gamma as gamma_distribution
from scipy.stats import poisson as poisson_distribution
from scipy.stats import t as student

from surrokit.errors import ConfigurationError
from surrokit_problems.families import Family
from surrokit_problems.logistic_terms import LOGISTIC
from surrokit_problems.probit import PROBIT
from surrokit_problems.ready_made import (
    exponential,
    gamma,
    gaussian,
    logistic_errors,
    negative_binomial,
    poisson,
    student_errors,
    weibull,
)

FAMILIES = [
    LOGISTIC,
    PROBIT,
    student_errors(),
    student_errors(degrees=1.0, scale=0.3),
    student_errors(degrees=30.0, scale=4.0),
    logistic_errors(),
    logistic_errors(scale=0.25),
    gaussian(scale=0.7),
    poisson(),
    negative_binomial(size=0.4),
    negative_binomial(size=7.0),
    gamma(shape=2.5),
    exponential(),
    weibull(shape=1.7),
]
GLOBAL = [family for family in FAMILIES if not family.local]
LOCAL = [family for family in FAMILIES if family.local]
WITH_THIRD = [family for family in FAMILIES if family.third is not None]
EACH = pytest.mark.parametrize("family", FAMILIES, ids=[family.name for family in FAMILIES])
PREDICTORS = np.linspace(-30.0, 30.0, 60_001)


RESPONSES = {
    "real": (-1.5, 0.0, 2.0),
    "binary": (0.0, 1.0),
    "count": (0.0, 1.0, 9.0),
    "positive": (0.02, 1.3, 8.0),
    "time": (-3.0, -0.1, 0.4, 2.0),
}


def each_of(families):
    return pytest.mark.parametrize("family", families, ids=[family.name for family in families])


def responses(family):
    return RESPONSES[family.responses]


def bound_at(family, e, y, reach, order=2):
    return family.bounds(*(np.array([each]) for each in (e, y, reach)), order)[0]


@each_of(GLOBAL)
def test_the_bound_holds_on_a_fine_grid_and_is_attained(family):
    for y in responses(family):
        thirds = np.abs(np.diff(family.second(PREDICTORS, y)) / np.diff(PREDICTORS))
        bound = bound_at(family, 0.0, y, np.inf)
        assert thirds.max() <= bound * (1 + 1e-7)
        if family.responses not in ("binary", "real"):
            assert thirds.max() > 0.999 * bound
    if family.responses in ("binary", "real"):  # one bound for all responses
        assert thirds.max() >= 0.999 * bound


@each_of([family for family in WITH_THIRD if not family.local])
def test_the_fourth_bound_holds_on_a_fine_grid_and_is_attained(family):
    for y in responses(family):
        fourth = np.abs(np.diff(family.third(PREDICTORS, y)) / np.diff(PREDICTORS)).max()
        bound = bound_at(family, 0.0, y, np.inf, order=3)
        assert 0.999 * bound <= fourth <= bound * (1 + 1e-7)


@each_of(LOCAL)
def test_bounds_hold_as_far_as_they_reach_and_are_attained(family):
    rng = np.random.default_rng(3)
    for y in responses(family):
        for e, reach in zip(3.0 * rng.standard_normal(40), rng.gamma(1.0, 1.0, 40), strict=True):
            near = np.linspace(e - reach, e + reach, 2001)
            thirds = np.abs(np.gradient(family.second(near, y), near)[1:-1]).max()
            fourths = np.abs(np.gradient(family.third(near, y), near)[1:-1]).max()
            for order, largest in ((2, thirds), (3, fourths)):
                bound = bound_at(family, e, y, reach, order)
                # differences over a step overstate an exponential by the square of the step / 6
                assert largest <= bound * (1 + (near[1] - near[0]) ** 2)
                assert largest > 0.99 * bound


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fourth_bound": None}, "go together; give both, or neither"),
        ({"third": None}, "go together; give both, or neither"),
        ({"fourth_bound": -1.0}, "fourth_bound of the family 'logistic' must not be negative"),
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


@pytest.mark.parametrize(
    ("family", "y", "log_density"),
    [
        (PROBIT, 1.0, lambda e: norm.logcdf(e)),
        (PROBIT, 0.0, lambda e: norm.logsf(e)),
        (LOGISTIC, 1.0, lambda e: logistic.logcdf(e)),
        (LOGISTIC, 0.0, lambda e: logistic.logsf(e)),
        (student_errors(3.0, 0.5), 1.2, lambda e: student(3.0, loc=e, scale=0.5).logpdf(1.2)),
        (logistic_errors(0.5), 1.2, lambda e: logistic(loc=e, scale=0.5).logpdf(1.2)),
        (gaussian(0.5), 1.2, lambda e: norm(loc=e, scale=0.5).logpdf(1.2)),
        (poisson(), 3.0, lambda e: poisson_distribution(np.exp(e)).logpmf(3)),
        (
            negative_binomial(2.5),
            3.0,
            lambda e: nbinom(2.5, 2.5 / (2.5 + np.exp(e))).logpmf(3),
        ),
        (
            gamma(2.5),
            0.7,
            lambda e: gamma_distribution(2.5, scale=np.exp(e) / 2.5).logpdf(0.7),
        ),
        (exponential(), 0.7, lambda e: expon(scale=np.exp(-e)).logpdf(0.7)),
        (exponential(), -0.7, lambda e: expon(scale=np.exp(-e)).logsf(0.7)),
        (weibull(1.7), 0.7, lambda e: weibull_min(1.7, scale=np.exp(-e / 1.7)).logpdf(0.7)),
        (weibull(1.7), -0.7, lambda e: weibull_min(1.7, scale=np.exp(-e / 1.7)).logsf(0.7)),
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
        for derivative in (family.first(e, y), family.second(e, y)):
            # exponentials grow beyond all numbers on one side
            assert not np.isnan(derivative).any()
            assert family.local or np.isfinite(derivative).all()


@EACH
def test_families_travel(family):
    again = pickle.loads(pickle.dumps(family))
    e = np.array([0.3, -2.0])
    assert_allclose(again.value(e, 1.0), family.value(e, 1.0))
    assert again.name in repr(again)


@pytest.mark.parametrize("bound", [-1.0, np.inf, np.nan])
def test_a_bound_that_bounds_nothing_is_refused(bound):
    with pytest.raises(
        ConfigurationError, match="third_bound of the family 'mine' must not be negative, and"
    ):
        Family(name="mine", value=np.add, first=np.add, second=np.add, third_bound=bound)


def test_a_number_is_no_bound_in_a_ball():
    with pytest.raises(
        ConfigurationError, match="'poisson', which is local, must be a function of"
    ):
        attrs.evolve(poisson(), third_bound=1.0)


@pytest.mark.parametrize(
    ("make", "setting"),
    [
        (gaussian, {"scale": 0.0}),
        (student_errors, {"scale": 0.0}),
        (student_errors, {"degrees": -1.0}),
        (negative_binomial, {"size": -1.0}),
        (gamma, {"shape": np.inf}),
        (weibull, {"shape": 0.0}),
    ],
)
def test_families_need_positive_settings(make, setting):
    with pytest.raises(ConfigurationError, match="must be positive and finite, got"):
        make(**setting)
