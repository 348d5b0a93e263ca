"""Families of terms against arithmetic of 80 digits, and bounds by brute force."""

from __future__ import annotations

import pickle

import attrs
import mpmath as mp
import numpy as np
import pytest
from mpmath import mpf
from scipy import stats
from scipy.special import expit, ndtr

from surrokit.errors import ConfigurationError
from surrokit_problems.families import LOGISTIC, family


def log_one_plus_exp(x):
    return mp.log1p(mp.exp(-abs(x))) + max(x, 0)


def probit(e, y):
    x = (2 * y - 1) * e
    return -mp.log(mp.ncdf(x)) if x < 1 else -mp.log1p(-mp.ncdf(-x))


def student(degrees, scale):
    return lambda e, y: mpf(degrees + 1) / 2 * mp.log1p(((y - e) / scale) ** 2 / degrees)


def survival(shape):
    return lambda e, y: abs(y) ** mpf(shape) * mp.exp(e) - (e if y > 0 else 0)


# Terms, what SciPy calls the distribution, and some responses.
CASES = {
    "logistic": (
        LOGISTIC,
        lambda e, y: log_one_plus_exp(e) - y * e,
        lambda e: stats.bernoulli(expit(e)).logpmf,
        (0.0, 1.0),
    ),
    "probit": (family("probit"), probit, lambda e: stats.bernoulli(ndtr(e)).logpmf, (0.0, 1.0)),
    "gaussian": (
        family("gaussian", scale=0.5),
        lambda e, y: 2 * (y - e) ** 2,
        lambda e: stats.norm(e, 0.5).logpdf,
        (0.0, 1.7),
    ),
    "student": (
        family("student"),
        student(4, 1),
        lambda e: stats.t(4, e).logpdf,
        (0.0, 1.7),
    ),
    "cauchy": (
        family("student", degrees=1.0, scale=0.25),
        student(1, mpf("0.25")),
        lambda e: stats.cauchy(e, 0.25).logpdf,
        (1.7,),
    ),
    "logistic-errors": (
        family("logistic-errors", scale=0.25),
        lambda e, y: 2 * log_one_plus_exp(4 * (y - e)) - 4 * (y - e),
        lambda e: stats.logistic(e, 0.25).logpdf,
        (0.0, 1.7),
    ),
    "poisson": (
        family("poisson"),
        lambda e, y: mp.exp(e) - y * e,
        lambda e: stats.poisson(np.exp(e)).logpmf,
        (0.0, 4.0, 1e6),
    ),
    "gamma": (
        family("gamma", shape=2.5),
        lambda e, y: mpf("2.5") * (e + y * mp.exp(-e)),
        lambda e: stats.gamma(2.5, scale=np.exp(e) / 2.5).logpdf,
        (0.03, 4.7),
    ),
    "exponential": (
        family("exponential"),
        survival(1),
        lambda e: stats.expon(scale=np.exp(-e)).logpdf,
        (0.3, -4.0),
    ),
    "weibull": (
        family("weibull", shape=1.75),
        survival("1.75"),
        lambda e: stats.weibull_min(1.75, scale=np.exp(-e / 1.75)).logpdf,
        (0.3, -4.0),
    ),
    "negative-binomial": (
        family("negative-binomial", size=0.5),
        lambda e, y: (y + 0.5) * mp.log1p(2 * mp.exp(e)) - y * (e + mp.log(2)),
        lambda e: stats.nbinom(0.5, 0.5 / (0.5 + np.exp(e))).logpmf,
        (0.0, 6.0, 1e4),
    ),
}
EACH = pytest.mark.parametrize("name", CASES)
PREDICTORS = (-101.0, -36.9, -9.1, -2.4, -0.3, 0.0, 0.2, 1.7, 5.3, 33.0, 64.0)
STEPS = np.array([-41.0, -3.1, -0.21, -1e-3, 1e-6, 0.04, 1.3, 8.5, 120.0])


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(80):
        yield


def each_place(name):
    """Yield a predictor, a response, and the value and four derivatives there."""
    for y in CASES[name][-1]:
        for e in PREDICTORS:
            taylor = mp.taylor(lambda x, y=y: CASES[name][1](x, mpf(y)), mpf(e), 4)
            yield e, y, [c * mp.factorial(k) for k, c in enumerate(taylor)]


def at(function, e, y, *more):
    return function(np.array([e]), np.array([y]), *more)


@EACH
def test_values_and_constants_are_minus_log_densities(name):
    made, _, density, responses = CASES[name]
    for e in (-1.3, 0.4):
        y = max(responses[:2])
        found = at(made.value, e, y)[0] + made.constant(np.array([y]))[0]
        assert found == pytest.approx(-density(e)(y), rel=1e-10)


@EACH
def test_values_and_derivatives_have_their_digits(name):
    """All are within 1e-10 of their size, or of what rounding the predictor makes of them."""
    made = CASES[name][0]
    for e, y, exact in each_place(name):
        for k, function in enumerate((made.value, made.first, made.second, made.third)):
            if function is not None:
                moved = 1e-15 * float(abs(exact[k + 1])) * (abs(e) + abs(y))
                limit = 1e-10 * float(abs(exact[k])) + moved + 1e-60
                assert abs(at(function, e, y)[0] - float(exact[k])) <= limit, (k, e, y)


@EACH
def test_remainders_lose_no_more_than_rounding(name):
    """Which is 1e-14 of the value, and where that may be large of f'' t or the remainder."""
    made, terms, *_ = CASES[name]
    for e, y, exact in each_place(name):
        for order in (2,) if made.third is None else (2, 3):
            found = at(made.remaining, e, y, STEPS, order)
            for t, one in zip(STEPS, found, strict=True):
                expansion = sum(exact[k] * mpf(t) ** k / mp.factorial(k) for k in range(order + 1))
                remainder = float(terms(mpf(e) + mpf(t), mpf(y)) - expansion)
                size = abs(remainder) + float(abs(exact[2])) * (abs(t) + t**2) + 1.0
                if name == "negative-binomial":  # a logistic one for each count
                    size += 0.1 * y
                if made.remainder is None:
                    size += float(abs(exact[0])) + float(abs(exact[1])) * abs(t)
                assert abs(one - remainder) <= 1e-14 * size * (10.0 + abs(e) + abs(t)), (e, y, t)


def test_growth_that_is_lost_beside_a_value_is_seen():
    def lost(e, y, t, order):
        p = 1.0 / (1.0 + np.exp(-e))
        return np.log1p(p * np.expm1(t)) - p * t * (1.0 + 0.5 * (1.0 - p) * t)

    broken = attrs.evolve(LOGISTIC, remainder=lost)
    with np.errstate(all="ignore"):
        found = broken.remaining(*(np.array([x]) for x in (64.0, 0.0, -41.0)))
    assert not np.isfinite(found).all()


def bound_at(made, e, y, reach, order):
    return made.bounds(*(np.array([each]) for each in (e, y, reach)), order)[0]


@EACH
def test_bounds_hold_as_far_as_they_reach_and_are_attained(name):
    made, *_, responses = CASES[name]
    rng = np.random.default_rng(3)
    places = [] if made.local else [(0.0, 30.0, np.inf)]
    if callable(made.third_bound):
        places += [(e, s, s) for e, s in rng.gamma(2.0, 1.0, (20, 2)) - [2.0, 0.0]]
    for order, below in ((2, made.second), (3, made.third)):
        if below is None:
            continue
        for e, width, reach in places:
            near = np.linspace(e - width, e + width, 2001 if reach < np.inf else 60_001)
            room = (near[1] - near[0]) ** 2
            shares = []
            for y in responses:
                largest = np.abs(np.gradient(below(near, np.full(near.shape, y)), near)[1:-1]).max()
                bound = bound_at(made, e, y, reach, order)
                assert largest <= bound * (1 + room) + 1e-12
                shares.append(largest / bound if bound else 1.0)
            assert max(shares) > 0.99


@EACH
def test_convexity_is_as_declared_and_families_travel(name):
    made, *_, responses = CASES[name]
    again = pickle.loads(pickle.dumps(made))
    e = np.linspace(-30.0, 30.0, 2001)
    assert made.convex == all((again.second(e, np.full(e.shape, y)) > 0).all() for y in responses)
    assert again.name in repr(again)
    for y in responses:  # exponentials alone grow beyond all numbers, on one side
        for function in (made.value, made.first, made.second):
            far = function(np.array([-1e8, -1e4, 1e4, 1e8]), np.full(4, y))
            assert not np.isnan(far).any()
            assert made.local or np.isfinite(far).all()
        if made.local:  # exp(e) underflows at one end of the step
            sign = -1.0 if made.responses == "positive" else 1.0
            found = at(made.remaining, -800.0 * sign, y, sign * np.array([810.0, -0.1]))
            assert np.isfinite(found).all()


@pytest.mark.parametrize(
    ("made", "changes", "message"),
    [
        (LOGISTIC, {"fourth_bound": None}, "go together; give both, or neither"),
        (LOGISTIC, {"third": None}, "go together; give both, or neither"),
        (LOGISTIC, {"fourth_bound": -1.0}, "fourth_bound of the family 'logistic' must not be"),
        (LOGISTIC, {"third_bound": np.nan}, "give the largest absolute third derivative"),
        (family("poisson"), {"third_bound": 1.0}, "which is local, must be a function of"),
    ],
)
def test_bounds_that_bound_nothing_are_refused(made, changes, message):
    with pytest.raises(ConfigurationError, match=message):
        attrs.evolve(made, **changes)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("gaussian", {"scale": 0.0}, "scale must be positive and finite, got 0"),
        ("weibull", {"shape": np.inf}, "shape must be positive and finite, got inf"),
        ("poisson", {"shape": 1.0}, "'poisson' has no setting shape"),
    ],
)
def test_families_that_there_are_not(name, settings, message):
    with pytest.raises(ConfigurationError, match=message):
        family(name, **settings)
