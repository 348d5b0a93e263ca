"""The terms of logistic regression, log(1 + exp(e)) - y e for y of 0 or 1.

All keep their digits at every predictor and step: none is a difference of numbers that are nearly
equal. What an expansion at e leaves out at e + t does not depend on y.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import attrs
import numpy as np
from scipy.special import expit, zeta

from surrokit.predictive.families import response_family
from surrokit.types import FloatArray
from surrokit_problems.families import Family, unit_rule

# Largest step; how many nodes; how many terms of a series. Relatively to R, e dR/de and t dR/dt the
# error is below 2e-13 with each.
_RULES = ((0.06, 3, 4), (0.25, 4, 5), (0.6, 5, 6), (1.0, 6, 8), (1.5, 8, 10))
_SHORT = _RULES[-1][0]
_USUAL = 0.6  # most steps are shorter: among many, longer ones are not to raise the price of all
_FEW = 500

THIRD_BOUND = 1.0 / (6.0 * np.sqrt(3.0))
"""Of third derivatives p (1 - p) (1 - 2 p): largest where that has the derivative 1 - 6 p + 6 p^2
of 0, at p = 1/2 - 1/sqrt(12), and there it is (1/6) (2 / sqrt(12))."""

FOURTH_BOUND = 0.125
"""Of fourth derivatives: with v = p (1 - p) they are v (1 - 6 v), from 1/24 at v = 1/12 to -1/8 at
v = 1/4."""


def _value(e: FloatArray, y: FloatArray) -> FloatArray:
    return softplus((1.0 - 2.0 * y) * e)


def _first(e: FloatArray, y: FloatArray) -> FloatArray:
    side = 1.0 - 2.0 * y  # p - y, with p = 1 / (1 + exp(-e))
    return np.asarray(side * expit(side * e))


def _second(e: FloatArray, y: FloatArray) -> FloatArray:
    return density(e) + 0.0 * y


def _third(e: FloatArray, y: FloatArray) -> FloatArray:
    return np.asarray(third(e) + 0.0 * y)


def softplus(u: FloatArray) -> FloatArray:
    """Return log(1 + exp(u))."""
    return np.asarray(np.log1p(np.exp(-np.abs(u))) + np.maximum(u, 0.0))


def density(u: FloatArray) -> FloatArray:
    """Return p (1 - p) with p = 1 / (1 + exp(-u)), positive as far out as numbers go."""
    q = np.exp(-np.abs(u))
    return np.asarray(q / np.square(1.0 + q))


def third(u: FloatArray) -> FloatArray:
    """Return p (1 - p) (1 - 2 p), and 1 - 2 p = -tanh(u / 2)."""
    return np.asarray(-density(u) * np.tanh(0.5 * u))


def slope_and_bend(
    e: FloatArray,
    y: FloatArray,  # noqa: ARG001
) -> tuple[FloatArray, FloatArray]:
    """Return T = tanh(e / 2) and 1 - T^2, with all digits of both; y drops out."""
    level = np.copysign(e, -1.0)
    odds, excess = np.exp(level), np.expm1(level)
    share = 1.0 / (1.0 + odds)
    return np.copysign(excess * share, e), 4.0 * odds * share * share


def remainder(
    e: FloatArray,
    y: FloatArray,  # noqa: ARG001
    t: FloatArray,
    slope: FloatArray,
    bend: FloatArray,
    order: int = 2,
) -> FloatArray:
    """Return what the expansion at e to second or third order leaves out at e + t.

    Arrays broadcast to the shape of the steps t; slope and bend are what :func:`slope_and_bend`
    makes of e. By one rule where steps are usual; the rest are computed apart.
    """
    limit = _SHORT if t.size <= _FEW else _USUAL
    largest = max(t.max(), -t.min()) if t.size else 0.0
    if largest <= limit:
        return _short_remainders(t, slope, bend, order, _rule(largest))
    rest = ~(np.abs(t) <= limit)
    found = _short_remainders(np.where(rest, 0.0, t), slope, bend, order, _rule(limit))
    chosen = np.nonzero(rest)
    e, slope, bend = (np.broadcast_to(each, t.shape)[chosen] for each in (e, slope, bend))
    found[chosen] = _unusual_remainders(e, t[chosen], slope, bend, order)
    return found


def _unusual_remainders(
    e: FloatArray, t: FloatArray, slope: FloatArray, bend: FloatArray, order: int
) -> FloatArray:
    short = np.abs(t) <= _SHORT
    if not short.any():
        return _long_remainders(e, t, order)
    found, long = np.empty(t.shape), ~short
    rule = _rule(_SHORT)
    found[short] = _short_remainders(t[short], slope[short], bend[short], order, rule)
    found[long] = _long_remainders(e[long], t[long], order)
    return found


@attrs.frozen(eq=False)
class _Rule:
    """Gauss and Jacobi's rule for the weight s^2 on the unit interval, and L(s b) for its nodes s.

    The weights (n,) have the minus sign that is in front of the integral. ``series (n, terms)``
    are coefficients of L(s b) = coth(s b) - 1 / (s b) in b, b^3, b^5 and so on.
    """

    nodes: FloatArray
    weights: FloatArray
    series: FloatArray


def _short_remainders(
    t: FloatArray, slope: FloatArray, bend: FloatArray, order: int, rule: _Rule
) -> FloatArray:
    """Integrate what the expansion of f' to first order leaves out, p(e + t) - p - p (1 - p) t.

    With T = tanh(e / 2), b = t / 2, L(x) = coth(x) - 1 / x and u = T + L(x) that gives

        R = -(1 - T^2) * the integral over x from 0 to b of x^2 u / (1 + x u)

    for the expansion of second order, and L(x) - T x u for u above the line for that of third.
    No digits are lost, unless R is small because the next derivative changes its sign.
    """
    shape, n = t.shape, len(rule.nodes)
    b = 0.5 * t.ravel()
    square = b * b
    powers = np.empty((rule.series.shape[1], b.size))
    powers[0] = b
    for before, power in pairwise(powers):
        np.multiply(before, square, out=power)
    above = (rule.series @ powers).reshape(n, *shape)
    below = (rule.nodes[:, None] * b).reshape(n, *shape)
    if order == 2:
        above += slope
        below *= above
    else:
        below *= above + slope
        above -= slope * below
    below += 1.0
    above /= below
    square *= b
    total = rule.weights @ above.reshape(n, -1)
    total *= square
    return np.asarray(total.reshape(shape) * bend)


def _rule(largest: float) -> _Rule:
    """Return the rule for steps up to a largest one."""
    return next(_make(n, terms) for size, n, terms in _RULES if largest <= size)


@cache
def _make(n: int, terms: int) -> _Rule:
    nodes, weights = unit_rule(n, 0, 2)
    k = np.arange(1, terms + 1)
    # L(x) is the sum over k of 2 (-1)^(k + 1) zeta(2 k) / pi^(2 k) x^(2 k - 1)
    series = -2.0 * (-1.0) ** k * zeta(2 * k) / np.pi ** (2 * k)
    return _Rule(nodes, -weights, series * nodes[:, None] ** (2 * k - 1))


def _long_remainders(e: FloatArray, t: FloatArray, order: int) -> FloatArray:
    """Take the difference, where R is no small part of f(e + t) - f(e).

    Use R(e, t) = R(-e, -t): for e <= 0 that growth is not lost beside f(e).
    """
    level, step = np.copysign(e, -1.0), np.copysign(1.0, -e) * t
    p = expit(level)
    expansion = p * step * (1.0 + (0.5 - 0.5 * p) * step)
    if order == 3:
        expansion += third(level) / 6.0 * step * step * step
    return np.asarray(softplus(level + step) - softplus(level) - expansion)


LOGISTIC = Family(
    name="logistic",
    value=_value,
    first=_first,
    second=_second,
    third_bound=THIRD_BOUND,
    convex=True,
    responses="binary",
    remainder=remainder,
    prepare=slope_and_bend,
    third=_third,
    fourth_bound=FOURTH_BOUND,
    constant=np.zeros_like,
    predicts=response_family("logistic"),
)
"""Responses 0 and 1 with probability 1 / (1 + exp(-e)) of 1."""
