"""Families of errors, counts, times and positive responses, ready made."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import attrs
import numpy as np
from scipy.special import expit, gammaln

from surrokit.errors import ConfigurationError
from surrokit.predictive.families import response_family
from surrokit.types import BoolArray, FloatArray
from surrokit_problems.families import Family, exponential_remainder, second_order_remainders
from surrokit_problems.logistic_terms import (
    FOURTH_BOUND,
    THIRD_BOUND,
    density,
    remainder,
    slope_and_bend,
    softplus,
    third,
)

OfResponses: TypeAlias = Callable[[FloatArray], FloatArray]
"""A function of responses, entry by entry."""

_LONG = 1.0  # steps up to which the remainder of an exponential is summed as a series
_FAR = 30.0  # steps after which all that counts is where one comes from, or goes


def student_errors(degrees: float = 4.0, scale: float = 1.0) -> Family:
    """Return the family of responses that miss their predictor by Student's t.

    It is not convex: f'' < 0 where an error is more than sqrt(degrees) scales, so that a
    posterior may have several modes. The scale is in units of the response.

    Raises
    ------
    ConfigurationError
        If either is not positive.
    """
    _check_positive(degrees=degrees, scale=scale)
    # with u = sqrt(nu) tan(a): f''' = 2 (nu + 1) nu^(-3/2) sin(3 a) cos(a)^3 / scale^3, up to its
    # sign; the derivative of sin(3 a) cos(a)^3 is 3 cos(a)^2 cos(4 a), so the maximum is where
    # a = pi / 8: sin(3 pi / 8) cos(pi / 8)^3 = cos(pi / 8)^4 = (3 + 2 sqrt(2)) / 8
    bound = 2.0 * (degrees + 1.0) * degrees**-1.5 * (3.0 + 2.0 * np.sqrt(2.0)) / 8.0
    terms = _StudentErrors(degrees, scale)
    settings = {"scale": scale, "degrees": degrees}
    return _family("student", terms, settings, third_bound=bound / scale**3)


def logistic_errors(scale: float = 1.0) -> Family:
    """Return the family of responses that miss their predictor by the logistic distribution.

    Tails are exponential, and the terms are convex. The standard deviation of errors is 1.81 times
    their scale, which is in units of the response.

    Raises
    ------
    ConfigurationError
        If it is not positive.
    """
    _check_positive(scale=scale)
    bound = 2.0 * THIRD_BOUND / scale**3  # two terms log(1 + exp(u))
    terms = _LogisticErrors(scale)
    return _family("logistic-errors", terms, {"scale": scale}, third_bound=bound, convex=True)


def gaussian(scale: float = 1.0) -> Family:
    """Return the family of responses with normal errors, of that standard deviation.

    Terms are quadratics: no row is ever touched by the subsampled correction.

    Raises
    ------
    ConfigurationError
        If it is not positive.
    """
    _check_positive(scale=scale)
    terms = _NormalErrors(scale)
    bounds = {"third_bound": 0.0, "fourth_bound": 0.0}
    return _family("gaussian", terms, {"scale": scale}, convex=True, third=terms.third, **bounds)


def poisson() -> Family:
    """Return the family of counts with a Poisson distribution of mean exp(e)."""
    return _exponential("poisson", _ExponentialTerms(_ones, _response, _log_factorial), "count")


def negative_binomial(size: float = 1.0) -> Family:
    """Return the family of counts with mean m = exp(e) and variance m + m^2 / size.

    The size is known; counts are Poisson's as it grows, and geometric where it is 1.

    Raises
    ------
    ConfigurationError
        If it is not positive.
    """
    _check_positive(size=size)
    terms = _NegativeBinomialTerms(size)
    return _family(
        "negative-binomial",
        terms,
        {"size": size},
        third_bound=partial(terms.bound, THIRD_BOUND),
        convex=True,
        responses="count",
        third=terms.third,
        fourth_bound=partial(terms.bound, FOURTH_BOUND),
        prepare=terms.prepare,
    )


def gamma(shape: float = 1.0) -> Family:
    """Return the family of positive responses with a gamma distribution of mean exp(e).

    The shape is known; the standard deviation is the mean / sqrt(shape).

    Raises
    ------
    ConfigurationError
        If it is not positive.
    """
    _check_positive(shape=shape)
    terms = _ExponentialTerms(
        partial(np.multiply, shape),
        partial(_constant, -shape),
        partial(_constant_of_gamma, shape),
        sign=-1.0,
    )
    return _exponential("gamma", terms, "positive", shape=shape)


def exponential() -> Family:
    """Return the family of times to an event with the hazard exp(e).

    A time that was censored is given as minus itself.
    """
    return _exponential("exponential", _ExponentialTerms(np.abs, _came, np.zeros_like), "time")


def weibull(shape: float = 1.0) -> Family:
    """Return the family of times to an event with the hazard shape t^(shape - 1) exp(e).

    Hazards are proportional: where times are modelled with a scale exp(x . b), e is -shape times
    that x . b. The shape is known. A time that was censored is given as minus itself.

    Raises
    ------
    ConfigurationError
        If it is not positive.
    """
    _check_positive(shape=shape)
    terms = _ExponentialTerms(partial(_power, shape), _came, partial(_constant_of_weibull, shape))
    return _exponential("weibull", terms, "time", shape=shape)


def _family(key: str, terms: Any, settings: dict[str, float], **more: Any) -> Family:
    return Family(
        name=", ".join([key, *(f"{name} {number:g}" for name, number in settings.items())]),
        value=terms.value,
        first=terms.first,
        second=terms.second,
        remainder=terms.remainder,
        constant=terms.constant,
        predicts=response_family(key, settings),
        **more,
    )


def _exponential(key: str, terms: _ExponentialTerms, responses: str, **settings: float) -> Family:
    return _family(
        key,
        terms,
        settings,
        third_bound=terms.bound,
        local=True,
        convex=True,
        responses=responses,
        third=terms.third,
        fourth_bound=terms.bound,
    )


def _check_positive(**numbers: float) -> None:
    for name, number in numbers.items():
        if not 0.0 < number < np.inf:
            raise ConfigurationError(f"{name} must be positive and finite, got {number}")


@attrs.frozen
class _StudentErrors:
    """(nu + 1) / 2 log(1 + u^2 / nu), with u = (y - e) / scale and nu the degrees of freedom."""

    degrees: float
    scale: float

    def value(self, e: FloatArray, y: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            square = np.square((y - e) / self.scale) / self.degrees
        return np.asarray(0.5 * (self.degrees + 1.0) * np.log1p(square))

    def constant(self, y: FloatArray) -> FloatArray:
        half = 0.5 * self.degrees
        beta = gammaln(half) - gammaln(half + 0.5) + 0.5 * np.log(self.degrees * np.pi)
        return np.full(np.shape(y), beta + np.log(self.scale))

    def first(self, e: FloatArray, y: FloatArray) -> FloatArray:
        u = (y - e) / self.scale
        return np.asarray(-(self.degrees + 1.0) / self.scale * u / (self.degrees + u * u))

    def second(self, e: FloatArray, y: FloatArray) -> FloatArray:
        square = np.square((y - e) / self.scale)
        # in this form nothing overflows before it is 0
        share = (self.degrees - square) / (self.degrees + square)
        return np.asarray((self.degrees + 1.0) / self.scale**2 * share / (self.degrees + square))

    def remainder(self, e: FloatArray, y: FloatArray, t: FloatArray) -> FloatArray:
        u, steps = (y - e) / self.scale, t / -self.scale
        total = self.degrees + u * u

        def difference(far: BoolArray) -> FloatArray:
            u_far, total_far = (np.broadcast_to(each, steps.shape)[far] for each in (u, total))
            return self._difference(u_far, total_far, steps[far])

        # log(nu + u^2) has its singularities at i sqrt(nu) and -i sqrt(nu)
        sizes = np.abs(steps) / np.sqrt(total)
        return second_order_remainders(
            steps, sizes, lambda moves: self._third(u + moves), difference
        )

    def _third(self, u: FloatArray) -> FloatArray:
        """Return the third derivative in u."""
        square = u * u
        share = 1.0 / (self.degrees + square)
        square -= 3.0 * self.degrees
        square *= share
        u *= share
        u *= square
        u *= share
        u *= 2.0 * (self.degrees + 1.0)
        return u

    def _difference(self, u: FloatArray, total: FloatArray, t: FloatArray) -> FloatArray:
        """Return remainders for steps that are not short, with ``total`` nu + u^2."""
        growth = t * (2.0 * u + t) / total
        after = (self.degrees + np.square(u + t)) / total
        logs = np.where(growth > -0.5, np.log1p(np.maximum(growth, -0.5)), np.log(after))
        share = t / total
        bends = (self.degrees - u * u) * share * share
        return np.asarray((self.degrees + 1.0) * (0.5 * logs - u * share - 0.5 * bends))


@attrs.frozen
class _LogisticErrors:
    """2 log(1 + exp(u)) - u, with u = (y - e) / scale."""

    scale: float

    def value(self, e: FloatArray, y: FloatArray) -> FloatArray:
        size = np.abs(y - e) / self.scale
        return np.asarray(size + 2.0 * np.log1p(np.exp(-size)))

    def constant(self, y: FloatArray) -> FloatArray:
        return np.full(np.shape(y), np.log(self.scale))

    def first(self, e: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(-np.tanh(0.5 * (y - e) / self.scale) / self.scale)

    def second(self, e: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(2.0 / self.scale**2 * density((y - e) / self.scale))

    def remainder(self, e: FloatArray, y: FloatArray, t: FloatArray) -> FloatArray:
        u = (y - e) / self.scale
        return 2.0 * remainder(u, y, t / -self.scale, *slope_and_bend(u, y))


@attrs.frozen
class _NormalErrors:
    """(y - e)^2 / (2 scale^2), a quadratic: no expansion leaves anything out."""

    scale: float

    def value(self, e: FloatArray, y: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.asarray(0.5 * np.square((y - e) / self.scale))

    def constant(self, y: FloatArray) -> FloatArray:
        return np.full(np.shape(y), np.log(self.scale) + 0.5 * np.log(2.0 * np.pi))

    def first(self, e: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray((e - y) / self.scale**2)

    def second(self, e: FloatArray, y: FloatArray) -> FloatArray:
        return self.third(e, y) + 1.0 / self.scale**2

    def third(self, e: FloatArray, y: FloatArray) -> FloatArray:
        return np.zeros(np.broadcast_shapes(np.shape(e), np.shape(y)))

    def remainder(self, e: FloatArray, y: FloatArray, t: FloatArray, order: int = 2) -> FloatArray:
        del e, y, order
        return np.zeros(np.shape(t))


@attrs.frozen
class _ExponentialTerms:
    """c(y) exp(s e) - b(y) e, with c the size, b the slope, and s, the sign, 1 or -1.

    Poisson: c = 1, b = y, s = 1. Gamma with shape a: c = a y, b = -a, s = -1. A time to an event
    with cumulated hazard |y|^k exp(e): c = |y|^k, b = 1 where the event came, else 0, s = 1. All
    derivatives from the second on are, up to their sign, c exp(s e). They have no bound at every
    predictor; from e - t to e + t the largest is c exp(s e + t).
    """

    size: OfResponses
    slope: OfResponses
    constant: OfResponses
    sign: float = 1.0

    def value(self, e: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(self.second(e, y) - self.slope(y) * e)

    def first(self, e: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(self.sign * self.second(e, y) - self.slope(y))

    def second(self, e: FloatArray, y: FloatArray) -> FloatArray:
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(self.size(y) * np.exp(self.sign * e))

    def third(self, e: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(self.sign * self.second(e, y))

    def bound(self, e: FloatArray, y: FloatArray, reach: FloatArray) -> FloatArray:
        """Return the largest absolute third derivative, and fourth, from e - reach to e + reach."""
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(self.size(y) * np.exp(self.sign * e + reach))

    def remainder(self, e: FloatArray, y: FloatArray, t: FloatArray, order: int = 2) -> FloatArray:
        steps = self.sign * t
        largest = np.abs(steps).max(initial=0.0)
        if largest <= _LONG:
            return np.asarray(self.second(e, y) * exponential_remainder(steps, order, largest))
        far = ~(np.abs(steps) <= _LONG)  # also NaN
        found = self.second(e, y) * exponential_remainder(np.where(far, 0.0, steps), order, _LONG)
        e, y = (np.broadcast_to(each, steps.shape)[far] for each in (e, y))
        found[far] = self._difference(e, y, steps[far], order)
        return np.asarray(found)

    def _difference(self, e: FloatArray, y: FloatArray, u: FloatArray, order: int) -> FloatArray:
        """Return remainders for long steps u = s t: what is lost is a digit or two."""
        left_out = u * (1.0 + u * (0.5 if order == 2 else 0.5 + u / 6.0))
        base = self.second(e, y)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            found = base * (np.expm1(u) - left_out)
            # as two exponentials: that at the centre may underflow where the other does not
            apart = self.size(y) * np.exp(self.sign * e + u) - base * (1.0 + left_out)
        return np.where(np.abs(u) <= _FAR, found, apart)


@attrs.frozen
class _NegativeBinomialTerms:
    """y log(1 + exp(-u)) + r log(1 + exp(u)), with r the size and u = e - log r.

    These are (y + r) logistic terms, and a function linear in e.
    """

    size: float

    def value(self, e: FloatArray, y: FloatArray) -> FloatArray:
        u = self._odds(e)
        return np.asarray(y * softplus(-u) + self.size * softplus(u))

    def constant(self, y: FloatArray) -> FloatArray:
        return np.asarray(gammaln(y + 1.0) + gammaln(self.size) - gammaln(y + self.size))

    def first(self, e: FloatArray, y: FloatArray) -> FloatArray:
        u = self._odds(e)
        return np.asarray(self.size * expit(u) - y * expit(-u))

    def second(self, e: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray((y + self.size) * density(self._odds(e)))

    def third(self, e: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray((y + self.size) * third(self._odds(e)))

    def bound(self, each: float, e: FloatArray, y: FloatArray, reach: FloatArray) -> FloatArray:
        """Return the bound of a logistic term as often as it occurs, at every predictor."""
        del e, reach
        return np.asarray((y + self.size) * each)

    def prepare(self, e: FloatArray, y: FloatArray) -> tuple[FloatArray, ...]:
        return slope_and_bend(self._odds(e), y)

    def remainder(
        self,
        e: FloatArray,
        y: FloatArray,
        t: FloatArray,
        slope: FloatArray,
        bend: FloatArray,
        order: int = 2,
    ) -> FloatArray:
        left = remainder(self._odds(e), y, t, slope, bend, order)
        return np.asarray((y + self.size) * left)

    def _odds(self, e: FloatArray) -> FloatArray:
        return np.asarray(e - np.log(self.size))


def _log_factorial(y: FloatArray) -> FloatArray:
    return np.asarray(gammaln(y + 1.0))


def _constant_of_gamma(shape: float, y: FloatArray) -> FloatArray:
    """Return log Gamma(a) - a log a - (a - 1) log y, with a the shape."""
    return np.asarray(gammaln(shape) - shape * np.log(shape) - (shape - 1.0) * np.log(y))


def _constant_of_weibull(shape: float, y: FloatArray) -> FloatArray:
    """Return -log(k t^(k - 1)) where the event came, with k the shape; else nothing is left out."""
    return np.asarray(-_came(y) * (np.log(shape) + (shape - 1.0) * np.log(np.abs(y))))


def _ones(y: FloatArray) -> FloatArray:
    return np.ones(np.shape(y))


def _response(y: FloatArray) -> FloatArray:
    return y


def _constant(number: float, y: FloatArray) -> FloatArray:
    return np.full(np.shape(y), number)


def _power(exponent: float, y: FloatArray) -> FloatArray:
    return np.asarray(np.abs(y) ** exponent)


def _came(y: FloatArray) -> FloatArray:
    return np.asarray(np.asarray(y) > 0.0, dtype=np.float64)
