"""Families of terms against arithmetic of 400 digits; of errors and classes, from 1e-8 to 1e4.

A number is right if it is within 1e-12 of its own size. Rounding the predictor, the response and
the step alone moves some numbers by more, those that are small because they change their sign
nearby (and exponentials far out); these are to be within 16 such roundings. What underflows is to
be within 1e-300. Nothing is random here.
"""

from __future__ import annotations

import itertools

import attrs
import mpmath as mp
import numpy as np
import pytest
from mpmath import mpf
from scipy.special import expit

from surrokit_problems.logistic_terms import LOGISTIC
from surrokit_problems.probit import PROBIT
from surrokit_problems.ready_made import (
    exponential,
    gamma,
    logistic_errors,
    negative_binomial,
    poisson,
    student_errors,
    weibull,
)

ROUNDING = 2.0**-52
CLOSE = 1e-12
UNDERFLOW = 1e-300


def logistic(x):
    """Return log(1 + exp(x)) and four derivatives."""
    q = mp.exp(-abs(x))
    v, tanh = q / (1 + q) ** 2, mp.sign(x) * (-mp.expm1(-abs(x))) / (1 + q)
    p = 1 / (1 + q) if x > 0 else q / (1 + q)
    return mp.log1p(q) + max(x, 0), p, v, -v * tanh, v * (1 - 6 * v)


def logistic_error(x):
    """Return 2 log(1 + exp(x)) - x and four derivatives."""
    value, slope, *others = (2 * each for each in logistic(x))
    return value - x, slope - 1, *others


@mp.workdps(150)  # digits enough for what cancels, at a third of the time
def probit(x):
    """Return -log Phi(x) and three derivatives."""
    below, above = mp.erfc(-x / mp.sqrt(2)) / 2, mp.erfc(x / mp.sqrt(2)) / 2
    m = mp.npdf(x) / below
    value = -mp.log(below) if x < 1 else -mp.log1p(-above)
    return value, -m, m * (m + x), -m * ((m + x) * (2 * m + x) - 1)


def student(degrees):
    """Return (nu + 1) / 2 log(1 + x^2 / nu) and three derivatives."""

    def terms(x):
        total, c = degrees + x * x, mpf(degrees) + 1
        third = 2 * c * x * (x * x - 3 * degrees) / total**3
        second = c * (degrees - x * x) / total**2
        return c / 2 * mp.log1p(x * x / degrees), c * x / total, second, third

    return terms


def of_side(function, sign):
    """Return a function of x = e for one class, and of -e for the other."""

    def terms(e, y):
        factor = sign * (2 * mpf(y) - 1)
        return [each * factor**k for k, each in enumerate(function(e * factor))]

    return terms


def of_error(function, scale):
    """Return a function of x = (y - e) / scale."""

    def terms(e, y):
        factor = -1 / mpf(scale)
        return [each * factor**k for k, each in enumerate(function((e - mpf(y)) * factor))]

    return terms


def exponential_terms(size, slope, sign=1):
    """Return c exp(s e) - b e and four derivatives."""

    def terms(e, y):
        growth, b = size(mpf(y)) * mp.exp(sign * e), slope(mpf(y))
        return growth - b * e, sign * growth - b, growth, sign * growth, growth

    return terms


def counts(size):
    """Return a negative binomial term and four derivatives."""

    def terms(e, y):
        u, total = e - mp.log(mpf(size)), mpf(y) + mpf(size)
        p = 1 / (1 + mp.exp(-u))
        v = p * (1 - p)
        value = total * mp.log1p(mp.exp(u)) - mpf(y) * u
        third = v * (1 - 2 * p)
        return value, total * p - mpf(y), total * v, total * third, total * v * (1 - 6 * v)

    return terms


def came(y):
    return mpf(1 if y > 0 else 0)


def signed(n):
    sizes = np.geomspace(1e-8, 1e4, n)
    return np.concatenate([-sizes[::-1], sizes])


COARSE = (
    np.concatenate([signed(5), [-350.3, -36.9, -9.1, -2.4, -1.3, 0.0, 0.2, 1.7, 5.3, 33.0]]),
    np.concatenate([signed(5), [-41.0, -3.1, -0.7, -0.21, 0.04, 0.4, 1.3, 8.5]]),
)
FINE = (
    np.concatenate([signed(25), [0.0], np.linspace(-9.7, 9.9, 29), np.linspace(-47.0, 53.0, 12)]),
    np.concatenate([signed(31), np.linspace(-3.3, 3.7, 31), np.linspace(-70.0, 60.0, 12)]),
)
SIZES = np.array([1e-8, 1e-4, 0.01, 0.07, 0.3, 0.8, 0.999, 1.001, 1.4, 3.0, 20.0, 200.0])
GROWING = (
    np.array([-300.0, -36.9, -9.1, -2.4, -0.3, 0.0, 1e-6, 0.2, 1.7, 5.3, 33.0, 300.0]),
    np.concatenate([-SIZES, SIZES]),
)


@attrs.frozen
class Case:
    family: object
    terms: object
    responses: tuple
    grid: tuple = COARSE


GAMMA = exponential_terms(lambda y: mpf(2.5) * y, lambda y: -mpf(2.5), sign=-1)
BOUNDED = {
    "logistic": Case(LOGISTIC, of_side(logistic, -1), (0.0, 1.0)),
    "probit": Case(PROBIT, of_side(probit, 1), (0.0, 1.0)),
    "Student": Case(student_errors(), of_error(student(4), 1.0), (0.0, 1.7)),
    "Cauchy": Case(student_errors(1.0, 0.3), of_error(student(1), 0.3), (1.7,)),
    "logistic errors": Case(logistic_errors(0.25), of_error(logistic_error, 0.25), (0.0, 1.7)),
}
UNBOUNDED = {
    "poisson": (poisson(), exponential_terms(lambda y: mpf(1), lambda y: y), (0.0, 4.0)),
    "gamma": (gamma(2.5), GAMMA, (0.03, 4.7)),
    "exponential": (exponential(), exponential_terms(abs, came), (0.3, -4.0)),
    "weibull": (weibull(1.7), exponential_terms(lambda y: abs(y) ** mpf(1.7), came), (0.3, -4.0)),
    "negative binomial": (negative_binomial(0.4), counts(0.4), (0.0, 6.0)),
}
CASES = BOUNDED | {name: Case(*each, GROWING) for name, each in UNBOUNDED.items()}
EACH = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
EACH_BOUNDED = pytest.mark.parametrize("case", BOUNDED.values(), ids=BOUNDED)


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(400):
        yield


def off_by(found, exact, moved):
    """Return by how many times the tolerance a number is off; NaN is infinitely wrong."""
    allowed = max(CLOSE * abs(exact), 16 * ROUNDING * moved, mpf(UNDERFLOW))
    off = float(abs(mpf(float(found)) - exact) / allowed)
    return off if off < np.inf else np.inf


def worst_derivative(case, predictors):
    family, worst = case.family, (0.0, ())
    functions = [family.value, family.first, family.second]
    functions += [] if family.third is None else [family.third]
    for y, e in itertools.product(case.responses, predictors):
        terms = case.terms(mpf(e), y)
        for k, function in enumerate(functions):
            found = function(np.array([e]), np.array([y]))[0]
            moved = abs(terms[k + 1]) * (abs(mpf(e)) + abs(mpf(y)))
            worst = max(worst, (off_by(found, terms[k], moved), (k, e, y, found)))
    return worst


def exact_remainder(before, after, step, order):
    """Return R, and derivatives of it by the step and by the predictor."""
    value, slope = after[0], after[1]
    for k in range(order + 1):
        value -= before[k] * step**k / mp.factorial(k)
        slope -= before[k + 1] * step**k / mp.factorial(k) if k < order else 0
    return value, slope, slope - before[order + 1] * step**order / mp.factorial(order)


def worst_remainder(case, predictors, steps, family=None):
    family, worst = family or case.family, (0.0, ())
    e, t = (each.ravel() for each in np.meshgrid(predictors, steps, indexing="ij"))
    orders = (2,) if family.third is None else (2, 3)
    for y in case.responses:
        with np.errstate(all="ignore"):
            prepared = family.prepare_rows(e, np.full(len(e), y))
            remainders = [family.remaining_of(prepared, t, order) for order in orders]
        around = {each: case.terms(mpf(each), y) for each in predictors}
        for each, step, *found in zip(e, t, *remainders, strict=True):
            after = case.terms(mpf(each) + mpf(step), y)
            for order, one in zip(orders, found, strict=True):
                exact, slope, bent = exact_remainder(around[each], after, mpf(step), order)
                moved = abs(slope * step) + abs(bent) * (abs(mpf(each)) + abs(mpf(y)))
                worst = max(worst, (off_by(one, exact, moved), (order, each, step, y, one)))
    return worst


@EACH
def test_values_and_derivatives_have_twelve_digits(case):
    off, where = worst_derivative(case, case.grid[0])
    assert off < 1, where


@EACH
def test_remainders_have_twelve_digits(case):
    off, where = worst_remainder(case, *case.grid)
    assert off < 1, where


@pytest.mark.long
@EACH_BOUNDED
def test_twelve_digits_everywhere(case):
    for off, where in (worst_derivative(case, FINE[0]), worst_remainder(case, *FINE)):
        assert off < 1, where


def unfolded(e, y, t, order):
    """Return what growth lost beside log(1 + exp(e)) leaves of a logistic remainder."""
    p = expit(e)
    cubic = p * (1.0 - p) * (1.0 - 2.0 * p) / 6.0 * t**3 if order == 3 else 0.0
    return np.log1p(p * np.expm1(t)) - p * t * (1.0 + 0.5 * (1.0 - p) * t) - cubic


@pytest.mark.parametrize("remainder", [unfolded, None], ids=["growth lost", "difference"])
def test_formulas_that_lose_digits_are_seen(remainder):
    broken = attrs.evolve(LOGISTIC, remainder=remainder, prepare=None)
    short, tail = np.array([1e-3]), np.array([-41.0])
    for e, t in ((np.array([0.7]), short), (np.array([64.0]), tail)):
        off, _ = worst_remainder(CASES["logistic"], e, t, broken)
        assert off > 100


@EACH_BOUNDED
def test_no_remainder_changes_by_more_than_its_bound_allows(case):
    """Nor by more than rounding: what the correction takes for a bound too small is one."""
    family = case.family
    steps = np.concatenate([signed(13), 10.0 * np.sin(np.arange(40.0))])
    bounds = {2: family.third_bound / 6.0, 3: (family.fourth_bound or np.nan) / 24.0}
    before, after = (each.ravel() for each in np.meshgrid(steps, steps))
    for order in (2,) if family.third is None else (2, 3):
        here, there = (np.sign(t) * np.abs(t) ** (order + 1) for t in (before, after))
        limits = bounds[order] * np.abs(there - here)
        for e, y in itertools.product(FINE[0][::3], case.responses):
            prepared = family.prepare_rows(np.full(len(before), e), np.full(len(before), y))
            here, there = (family.remaining_of(prepared, t, order) for t in (before, after))
            rounding = CLOSE * (np.abs(here) + np.abs(there))
            assert (np.abs(there - here) <= limits * (1 + CLOSE) + rounding + UNDERFLOW).all(), e
