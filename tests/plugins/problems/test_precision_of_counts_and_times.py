"""Families of counts, times and positive responses against arithmetic of 400 digits.

A number is right if it is within 1e-12 of its own size, or within 16 roundings of the predictor,
the response or the step.
"""

from __future__ import annotations

import itertools

import attrs
import mpmath as mp
import numpy as np
import pytest
from mpmath import mpf

from surrokit_problems.ready_made import exponential, gamma, negative_binomial, poisson, weibull

ROUNDING = 2.0**-52
CLOSE = 1e-12
UNDERFLOW = 1e-300


def exponential_terms(size, slope, sign=1):
    """Return c exp(s e) - b e and four derivatives, and sizes of what is added up in these."""

    def terms(e, y):
        growth = size(mpf(y)) * mp.exp(sign * e)
        b = slope(mpf(y))
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


@attrs.frozen
class Case:
    family: object
    terms: object
    responses: tuple


CASES = {
    "poisson": Case(poisson(), exponential_terms(lambda y: mpf(1), lambda y: y), (0.0, 4.0)),
    "gamma": Case(
        gamma(2.5),
        exponential_terms(lambda y: mpf(2.5) * y, lambda y: -mpf(2.5), sign=-1),
        (0.03, 4.7),
    ),
    "exponential": Case(exponential(), exponential_terms(abs, came), (0.3, -4.0)),
    "weibull": Case(
        weibull(1.7), exponential_terms(lambda y: abs(y) ** mpf(1.7), came), (0.3, -4.0)
    ),
    "negative binomial": Case(negative_binomial(0.4), counts(0.4), (0.0, 6.0)),
}
EACH = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
PREDICTORS = np.array([-300.0, -36.9, -9.1, -2.4, -0.3, 0.0, 1e-6, 0.2, 1.7, 5.3, 33.0, 300.0])
SIZES = np.array([1e-8, 1e-4, 0.01, 0.07, 0.3, 0.8, 0.999, 1.001, 1.4, 3.0, 20.0, 200.0])
STEPS = np.concatenate([-SIZES, SIZES])


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(400):
        yield


def wrong(found, exact, moved):
    allowed = max(CLOSE * abs(exact), 16 * ROUNDING * moved, mpf(UNDERFLOW))
    return float(abs(mpf(float(found)) - exact) / allowed)


@EACH
def test_values_and_derivatives_have_twelve_digits(case):
    family = case.family
    functions = (family.value, family.first, family.second, family.third)
    for y, (k, function) in itertools.product(case.responses, enumerate(functions)):
        for e, found in zip(PREDICTORS, function(PREDICTORS, np.full(12, y)), strict=True):
            terms = case.terms(mpf(e), y)
            moved = abs(terms[k + 1]) * (abs(mpf(e)) + abs(mpf(y)))
            assert wrong(found, terms[k], moved) < 1, (k, e, y, found)


@EACH
def test_remainders_have_twelve_digits(case):
    e, t = (each.ravel() for each in np.meshgrid(PREDICTORS, STEPS, indexing="ij"))
    for y, order in itertools.product(case.responses, (2, 3)):
        prepared = case.family.prepare_rows(e, np.full(len(e), y))
        found = case.family.remaining_of(prepared, t, order)
        for each, step, one in zip(e, t, found, strict=True):
            before = case.terms(mpf(each), y)
            after = case.terms(mpf(each) + mpf(step), y)
            exact, slope = after[0], after[1]
            for k in range(order + 1):
                exact -= before[k] * mpf(step) ** k / mp.factorial(k)
                if k < order:
                    slope -= before[k + 1] * mpf(step) ** k / mp.factorial(k)
            bent = slope - before[order + 1] * mpf(step) ** order / mp.factorial(order)
            moved = abs(slope * step) + abs(bent) * (abs(mpf(each)) + abs(mpf(y)))
            assert wrong(one, exact, moved) < 1, (order, each, step, y, one, exact)
