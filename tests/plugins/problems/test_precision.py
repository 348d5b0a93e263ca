"""Families of terms against arithmetic of fifty digits, from 1e-8 to 1e4 on both sides.

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
from surrokit_problems.ready_made import logistic_errors, student_errors

ROUNDING = 2.0**-52
CLOSE = 1e-12
UNDERFLOW = 1e-300


def logistic(x):
    """Return log(1 + exp(x)) and four derivatives."""
    q = mp.exp(-abs(x))
    v, tanh = q / (1 + q) ** 2, mp.sign(x) * (-mp.expm1(-abs(x))) / (1 + q)
    p = 1 / (1 + q) if x > 0 else q / (1 + q)
    return mp.log1p(q) + max(x, 0), p, v, -v * tanh, v * (1 - 6 * v)


def probit(x):
    """Return -log Phi(x) and four derivatives; digits enough for what cancels far out."""
    with mp.extradps(int(10 * mp.log10(2 + abs(x)))):
        below, above = mp.erfc(-x / mp.sqrt(2)) / 2, mp.erfc(x / mp.sqrt(2)) / 2
        m = mp.npdf(x) / below
        gap = m + x
        third = -m * (gap * (m + gap) - 1)
        fourth = m * gap * (gap * (m + gap) - 1) - m * (
            (1 - m * gap) * (m + gap) + gap * (1 - 2 * m * gap)
        )
        value = -mp.log(below) if x < 1 else -mp.log1p(-above)
        return value, -m, m * gap, third, fourth


def student(x, degrees):
    """Return (nu + 1) / 2 log(1 + x^2 / nu) and three derivatives."""
    total, c = degrees + x * x, degrees + 1
    return (
        c / 2 * mp.log1p(x * x / degrees),
        c * x / total,
        c * (degrees - x * x) / total**2,
        2 * c * x * (x * x - 3 * degrees) / total**3,
        None,
    )


@attrs.frozen
class Reference:
    """A family's term as a function of x, which is linear in e: x = (e - shift) * factor.

    The term may lack a function that is linear in x: no remainder notices.
    """

    family: object
    function: object
    responses: tuple
    scale: float | None = None
    even: bool = False  # remainders do not change with the sign of x and of the step
    multiple: int = 1

    def factor(self, y):
        if self.scale is not None:
            return -1 / mpf(self.scale)
        return mpf(2 * y - 1) * (-1 if self.even else 1)

    def x(self, e, y):
        return (mpf(e) - (mpf(y) if self.scale is not None else 0)) * self.factor(y)

    def terms(self, e, y):
        return [
            None if each is None else self.multiple * each for each in self.function(self.x(e, y))
        ]

    def derivative(self, e, y, k):
        """Return the k-th derivative in e, and how far the roundings of e and y move it."""
        terms, factor = self.terms(e, y), self.factor(y)
        if self.scale is not None and self.even and k < 2:  # 2 log(1 + exp(x)) - x
            terms[0] -= self.x(e, y)
            terms[1] -= 1
        moved = 0 if terms[k + 1] is None else abs(terms[k + 1] * factor ** (k + 1))
        return terms[k] * factor**k, moved * (abs(mpf(e)) + abs(mpf(y)))

    def remainder(self, e, y, t, order):
        """Return R, and how far the roundings of e, y and t move it."""
        x, step = self.x(e, y), mpf(t) * self.factor(y)
        if self.even and x > 0:  # else p is 1 to all the digits there are
            x, step = -x, -step
        with mp.extradps(int(20 + 4 * abs(np.log10(abs(t))) + 4 * np.log10(1 + abs(e)))):
            before = [None if each is None else self.multiple * each for each in self.function(x)]
            after = [
                None if each is None else self.multiple * each for each in self.function(x + step)
            ]
            value, slope = after[0], after[1]
            for k in range(order + 1):
                value -= before[k] * step**k / mp.factorial(k)
                slope -= before[k + 1] * step**k / mp.factorial(k) if k < order else 0
            bent = slope - before[order + 1] * step**order / mp.factorial(order)
            moved = abs(slope * step) + abs(bent * self.factor(y)) * (abs(mpf(e)) + abs(mpf(y)))
            return value, moved


REFERENCES = {
    "logistic": Reference(LOGISTIC, logistic, (0.0, 1.0), even=True),
    "probit": Reference(PROBIT, probit, (0.0, 1.0)),
    "Student": Reference(student_errors(), lambda x: student(x, mpf(4)), (0.0, 1.7), 1.0),
    "Cauchy": Reference(student_errors(1.0, 0.3), lambda x: student(x, mpf(1)), (1.7,), 0.3),
    "logistic errors": Reference(
        logistic_errors(0.25), logistic, (0.0, 1.7), 0.25, even=True, multiple=2
    ),
}
EACH = pytest.mark.parametrize("reference", REFERENCES.values(), ids=REFERENCES)


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


def wrong(found, exact, moved):
    """Return by how many times the tolerance a number is off."""
    allowed = max(CLOSE * abs(exact), 16 * ROUNDING * moved, mpf(UNDERFLOW))
    return float(abs(mpf(float(found)) - exact) / allowed)


def worst_derivative(reference, predictors):
    family, worst = reference.family, (0.0, None)
    functions = [family.value, family.first, family.second]
    functions += [] if family.third is None else [family.third]
    for y, (k, function) in itertools.product(reference.responses, enumerate(functions)):
        for e, found in zip(
            predictors, function(predictors, np.full(len(predictors), y)), strict=True
        ):
            off = wrong(found, *reference.derivative(e, y, k))
            worst = max(worst, (off, (k, e, y, found)), key=lambda pair: pair[0])
    return worst


def worst_remainder(reference, predictors, steps, family=None):
    family = family or reference.family
    e, t = (each.ravel() for each in np.meshgrid(predictors, steps, indexing="ij"))
    worst = (0.0, None)
    orders = (2,) if family.third is None else (2, 3)
    responses = reference.responses[:1] if family.prepare else reference.responses  # y drops out
    for y, order in itertools.product(responses, orders):
        with np.errstate(all="ignore"):
            remainders = family.remaining_of(family.prepare_rows(e, np.full(len(e), y)), t, order)
        for each, step, found in zip(e, t, remainders, strict=True):
            off = wrong(found, *reference.remainder(each, y, step, order))
            off = off if off < np.inf else np.inf  # NaN is wrong
            worst = max(worst, (off, (order, each, step, y, found)), key=lambda pair: pair[0])
    return worst


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(50):
        yield


@EACH
def test_values_and_derivatives_have_twelve_digits(reference):
    off, where = worst_derivative(reference, COARSE[0])
    assert off < 1, where


@EACH
def test_remainders_have_twelve_digits(reference):
    off, where = worst_remainder(reference, *COARSE)
    assert off < 1, where


@pytest.mark.long
@EACH
def test_values_and_derivatives_have_twelve_digits_everywhere(reference):
    off, where = worst_derivative(reference, FINE[0])
    assert off < 1, where


@pytest.mark.long
@EACH
def test_remainders_have_twelve_digits_everywhere(reference):
    off, where = worst_remainder(reference, *FINE)
    assert off < 1, where


def unfolded(e, y, t, order):
    """Return what growth lost beside log(1 + exp(e)) leaves of a logistic remainder."""
    p = expit(e)
    cubic = p * (1.0 - p) * (1.0 - 2.0 * p) / 6.0 * t**3 if order == 3 else 0.0
    return np.log1p(p * np.expm1(t)) - p * t * (1.0 + 0.5 * (1.0 - p) * t) - cubic


def difference(family):
    """Return a family whose remainders are differences of its values."""
    return attrs.evolve(family, remainder=None, prepare=None)


@pytest.mark.parametrize(
    "broken",
    [
        attrs.evolve(difference(LOGISTIC), remainder=unfolded),
        difference(LOGISTIC),
    ],
    ids=["growth lost", "difference"],
)
def test_formulas_that_lose_digits_are_seen(broken):
    short, tail = np.array([1e-3]), np.array([-41.0])
    for e, t in ((np.array([0.7]), short), (np.array([64.0]), tail)):
        off, _ = worst_remainder(REFERENCES["logistic"], e, t, broken)
        assert off > 100


@EACH
def test_no_remainder_changes_by_more_than_its_bound_allows(reference):
    """Nor by more than rounding: what the correction takes for a bound too small is one."""
    family = reference.family
    steps = np.concatenate([signed(13), 10.0 * np.sin(np.arange(40.0))])
    bounds = {2: family.third_bound / 6.0, 3: (family.fourth_bound or np.nan) / 24.0}
    before, after = (each.ravel() for each in np.meshgrid(steps, steps))
    for order in (2,) if family.third is None else (2, 3):
        sides = np.sign(before), np.sign(after)
        ends = [
            side * np.abs(t) ** (order + 1) for side, t in zip(sides, (before, after), strict=True)
        ]
        limits = bounds[order] * np.abs(ends[1] - ends[0])
        for e, y in itertools.product(FINE[0][::3], reference.responses):
            prepared = family.prepare_rows(np.full(len(before), e), np.full(len(before), y))
            here, there = (family.remaining_of(prepared, t, order) for t in (before, after))
            rounding = CLOSE * (np.abs(here) + np.abs(there))
            assert (np.abs(there - here) <= limits * (1 + CLOSE) + rounding + UNDERFLOW).all(), e
