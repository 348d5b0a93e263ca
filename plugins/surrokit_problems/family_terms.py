"""The terms of families that have names: f(e), its derivatives, and bounds of these.

None is a difference of numbers that are nearly equal, so all keep their digits at every predictor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import attrs
import numpy as np
from scipy.special import erfcx, expit, gammaln, log_ndtr

from surrokit.types import FloatArray

# --- logistic terms ---

THIRD_BOUND = 1.0 / (6.0 * np.sqrt(3.0))
"""Of third derivatives p (1 - p) (1 - 2 p): largest where that has the derivative 1 - 6 p + 6 p^2
of 0, at p = 1/2 - 1/sqrt(12), and there it is (1/6) (2 / sqrt(12))."""

FOURTH_BOUND = 0.125
"""Of fourth derivatives: with v = p (1 - p) they are v (1 - 6 v), from 1/24 at v = 1/12 to -1/8 at
v = 1/4."""


def _softplus(u: FloatArray) -> FloatArray:
    return np.asarray(np.log1p(np.exp(-np.abs(u))) + np.maximum(u, 0.0))


def _density(u: FloatArray) -> FloatArray:
    """Return p (1 - p) with p = 1 / (1 + exp(-u)), positive as far out as numbers go."""
    q = np.exp(-np.abs(u))
    return np.asarray(q / np.square(1.0 + q))


def _skew(u: FloatArray) -> FloatArray:
    """Return p (1 - p) (1 - 2 p), and 1 - 2 p = -tanh(u / 2)."""
    return np.asarray(-_density(u) * np.tanh(0.5 * u))


def _logistic_remainder(e: FloatArray, t: FloatArray, order: int = 2) -> FloatArray:
    """Return R(e, t) = R(-e, -t) of log(1 + exp(e)): for e <= 0 growth is not lost beside it."""
    level, step = np.copysign(e, -1.0), np.copysign(1.0, -e) * t
    p = expit(level)
    expansion = p * step * (1.0 + (0.5 - 0.5 * p) * step)
    if order == 3:
        expansion += _skew(level) / 6.0 * step * step * step
    return np.asarray(_softplus(level + step) - _softplus(level) - expansion)


@attrs.frozen
class _Logistic:
    """log(1 + exp(e)) - y e for y of 0 or 1."""

    def value(self, e: FloatArray, y: FloatArray) -> FloatArray:
        return _softplus((1.0 - 2.0 * y) * e)

    def first(self, e: FloatArray, y: FloatArray) -> FloatArray:
        side = 1.0 - 2.0 * y  # p - y, with p = 1 / (1 + exp(-e))
        return np.asarray(side * expit(side * e))

    def second(self, e: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(_density(e) + 0.0 * y)

    def third(self, e: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(_skew(e) + 0.0 * y)

    def remainder(self, e: FloatArray, y: FloatArray, t: FloatArray, order: int = 2) -> FloatArray:
        del y
        return _logistic_remainder(e, t, order)

    def constant(self, y: FloatArray) -> FloatArray:
        return np.zeros_like(y)

    @property
    def more(self) -> dict[str, Any]:
        return {
            "convex": True,
            "responses": "binary",
            "third_bound": THIRD_BOUND,
            "remainder": self.remainder,
            "third": self.third,
            "fourth_bound": FOURTH_BOUND,
        }


@attrs.frozen
class _NegativeBinomial:
    """y log(1 + exp(-u)) + r log(1 + exp(u)), with r the size and u = e - log r.

    These are (y + r) logistic terms, and a function linear in e.
    """

    size: float

    def value(self, e: FloatArray, y: FloatArray) -> FloatArray:
        u = self._odds(e)
        return np.asarray(y * _softplus(-u) + self.size * _softplus(u))

    def constant(self, y: FloatArray) -> FloatArray:
        return np.asarray(gammaln(y + 1.0) + gammaln(self.size) - gammaln(y + self.size))

    def first(self, e: FloatArray, y: FloatArray) -> FloatArray:
        u = self._odds(e)
        return np.asarray(self.size * expit(u) - y * expit(-u))

    def second(self, e: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray((y + self.size) * _density(self._odds(e)))

    def third(self, e: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray((y + self.size) * _skew(self._odds(e)))

    def third_bound(self, e: FloatArray, y: FloatArray, reach: FloatArray) -> FloatArray:
        del e, reach
        return np.asarray((y + self.size) * THIRD_BOUND)

    def fourth_bound(self, e: FloatArray, y: FloatArray, reach: FloatArray) -> FloatArray:
        del e, reach
        return np.asarray((y + self.size) * FOURTH_BOUND)

    def remainder(self, e: FloatArray, y: FloatArray, t: FloatArray, order: int = 2) -> FloatArray:
        return np.asarray((y + self.size) * _logistic_remainder(self._odds(e), t, order))

    def _odds(self, e: FloatArray) -> FloatArray:
        return np.asarray(e - np.log(self.size))

    @property
    def more(self) -> dict[str, Any]:
        return {
            "convex": True,
            "responses": "count",
            "third_bound": self.third_bound,
            "remainder": self.remainder,
            "third": self.third,
            "fourth_bound": self.fourth_bound,
        }


# --- probit terms ---

_TAIL = -100.0  # below, second derivatives are those of an asymptotic series


@attrs.frozen
class _Probit:
    """-log Phi(x) with x = e for y = 1 and x = -e for y = 0.

    With m = phi / Phi the derivatives in x are -m, m (m + x) and -m ((m + x) (2 m + x) - 1).
    """

    def value(self, e: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(-log_ndtr((2.0 * y - 1.0) * e))

    def first(self, e: FloatArray, y: FloatArray) -> FloatArray:
        side = 2.0 * y - 1.0
        return np.asarray(-side * _mills(side * e))

    def second(self, e: FloatArray, y: FloatArray) -> FloatArray:
        x = np.asarray((2.0 * y - 1.0) * e)
        m = _mills(np.maximum(x, _TAIL))
        inverse = np.square(1.0 / np.minimum(x, _TAIL))
        series = 1.0 - inverse * (1.0 - inverse * (6.0 - 50.0 * inverse))
        return np.where(x < _TAIL, series, m * (m + np.maximum(x, _TAIL)))

    def constant(self, y: FloatArray) -> FloatArray:
        return np.zeros_like(y)

    @property
    def more(self) -> dict[str, Any]:
        # -f''' is the third central moment of a standard normal cut off below -x. It is positive,
        # vanishes far out on both sides (where nothing is cut off, and where what is left has no
        # width), and is largest where x = 1.0024 and it is 0.2957188...; by Brent's method
        return {"convex": True, "responses": "binary", "third_bound": 0.29572}


def _mills(x: FloatArray) -> FloatArray:
    """Return phi / Phi; erfcx keeps its digits far out on both sides."""
    with np.errstate(over="ignore"):
        return np.asarray(np.sqrt(2.0 / np.pi) / erfcx(-x / np.sqrt(2.0)))


# --- terms of errors, u = (y - e) / scale ---


@attrs.frozen
class _Gaussian:
    """u^2 / 2, a quadratic: no expansion leaves anything out."""

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

    @property
    def more(self) -> dict[str, Any]:
        bounds = {"third_bound": 0.0, "fourth_bound": 0.0}
        return {"convex": True, "third": self.third, "remainder": self.remainder, **bounds}


@attrs.frozen
class _Student:
    """(nu + 1) / 2 log(1 + u^2 / nu), with nu the degrees of freedom.

    It is not convex: f'' < 0 where an error is more than sqrt(nu) scales, so that a posterior may
    have several modes.
    """

    scale: float
    degrees: float

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

    @property
    def more(self) -> dict[str, Any]:
        # with u = sqrt(nu) tan(a): f''' = 2 (nu + 1) nu^(-3/2) sin(3 a) cos(a)^3 / scale^3, up to
        # its sign; the derivative of sin(3 a) cos(a)^3 is 3 cos(a)^2 cos(4 a), so the maximum is
        # where a = pi / 8: sin(3 pi / 8) cos(pi / 8)^3 = cos(pi / 8)^4 = (3 + 2 sqrt(2)) / 8
        bound = 2.0 * (self.degrees + 1.0) * self.degrees**-1.5 * (3.0 + 2.0 * np.sqrt(2.0)) / 8.0
        return {"third_bound": bound / self.scale**3}


@attrs.frozen
class _LogisticErrors:
    """2 log(1 + exp(u)) - u; the standard deviation of errors is 1.81 scales."""

    scale: float

    def value(self, e: FloatArray, y: FloatArray) -> FloatArray:
        size = np.abs(y - e) / self.scale
        return np.asarray(size + 2.0 * np.log1p(np.exp(-size)))

    def constant(self, y: FloatArray) -> FloatArray:
        return np.full(np.shape(y), np.log(self.scale))

    def first(self, e: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(-np.tanh(0.5 * (y - e) / self.scale) / self.scale)

    def second(self, e: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(2.0 / self.scale**2 * _density((y - e) / self.scale))

    @property
    def more(self) -> dict[str, Any]:
        return {"convex": True, "third_bound": 2.0 * THIRD_BOUND / self.scale**3}


# --- terms with exponentials ---

_FAR = 30.0  # steps after which all that counts is where one comes from, or goes


@attrs.frozen
class _Exponential:
    """c(y) exp(s e) - b(y) e. All derivatives from the second on are, up to sign, c exp(s e).

    Counts have c = 1, b = y and s = 1, gamma responses of shape k c = k y, b = -k and s = -1. A
    time to an event with cumulated hazard |y|^k exp(e) has c = |y|^k, s = 1, and b = 1 where the
    event came, else 0.
    """

    responses: str
    shape: float = 1.0

    @property
    def sign(self) -> float:
        return -1.0 if self.responses == "positive" else 1.0

    def size(self, y: FloatArray) -> FloatArray:
        if self.responses == "count":
            return np.ones(np.shape(y))
        return np.asarray(self.shape * y if self.responses == "positive" else abs(y) ** self.shape)

    def slope(self, y: FloatArray) -> FloatArray:
        if self.responses == "count":
            return y
        if self.responses == "positive":
            return np.full(np.shape(y), -self.shape)
        return np.asarray(np.asarray(y) > 0.0, dtype=np.float64)

    def constant(self, y: FloatArray) -> FloatArray:
        k = self.shape
        if self.responses == "count":
            return np.asarray(gammaln(y + 1.0))
        if self.responses == "positive":
            return np.asarray(gammaln(k) - k * np.log(k) - (k - 1.0) * np.log(y))
        return np.asarray(-self.slope(y) * (np.log(k) + (k - 1.0) * np.log(np.abs(y))))

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
        u, base = self.sign * t, self.second(e, y)
        left_out = u * (1.0 + u * (0.5 if order == 2 else 0.5 + u / 6.0))
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            found = base * (np.expm1(u) - left_out)
            # as two exponentials: that at the centre may underflow where the other does not
            apart = self.size(y) * np.exp(self.sign * e + u) - base * (1.0 + left_out)
        return np.where(np.abs(u) <= _FAR, found, apart)

    @property
    def more(self) -> dict[str, Any]:
        return {
            "local": True,
            "convex": True,
            "responses": self.responses,
            "third_bound": self.bound,
            "remainder": self.remainder,
            "third": self.third,
            "fourth_bound": self.bound,
        }


TERMS: Mapping[str, Callable[..., Any]] = {
    "gaussian": _Gaussian,
    "student": _Student,
    "logistic-errors": _LogisticErrors,
    "logistic": _Logistic,
    "probit": _Probit,
    "poisson": partial(_Exponential, "count"),
    "negative-binomial": _NegativeBinomial,
    "gamma": partial(_Exponential, "positive"),
    "exponential": partial(_Exponential, "time"),
    "weibull": partial(_Exponential, "time"),
}
"""Of families with names, by their known numbers."""
