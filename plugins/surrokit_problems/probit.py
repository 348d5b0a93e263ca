"""The terms of probit regression, -log Phi(x) with x = e for y = 1 and x = -e for y = 0.

With m = phi / Phi the derivatives in x are -m, m (m + x) and -m ((m + x) (2 m + x) - 1). Far out on
the side of x < 0 these are differences of numbers that are nearly equal, as m is nearly -x. There
they are made of Laplace's continued fraction instead: with X = -x,

    m = X + a,  a = 1 / (X + b),  b = 2 / (X + c),  c = 3 / (X + 4 / (X + ...)),

1 - m a = a (b - a) and 2 a - b = a b (c - b), and nothing cancels.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import erfcx, log_ndtr

from surrokit.predictive.families import response_family
from surrokit.types import BoolArray, FloatArray
from surrokit_problems.families import Family, second_order_remainders

_TAIL = -2.5  # below, derivatives are made of the continued fraction
_LEVELS = 100  # of it: all digits at the least X
_DEGREE = 19  # more gains nothing beside rounding
_FOLD = 8.0  # added to the square of X: coefficients fall fastest there


def _value(e: FloatArray, y: FloatArray) -> FloatArray:
    return np.asarray(-log_ndtr(_side(y) * e))


def _first(e: FloatArray, y: FloatArray) -> FloatArray:
    side = _side(y)
    return np.asarray(-side * _mills(side * e))


def _second(e: FloatArray, y: FloatArray) -> FloatArray:
    x = np.asarray(_side(y) * e)
    near = np.maximum(x, _TAIL)
    m = _mills(near)
    bend = np.asarray(m * (m + near))
    tail = x < _TAIL
    if tail.any():
        far = -x[tail]
        a = _fractions(far)[0]
        bend[tail] = (far + a) * a
    return bend


def _remainder(e: FloatArray, y: FloatArray, t: FloatArray) -> FloatArray:
    side = _side(y)
    x, steps = side * e, side * t

    def third(moves: FloatArray) -> FloatArray:
        moves += x
        return _third(moves)

    def difference(far: BoolArray) -> FloatArray:
        return _difference(np.broadcast_to(x, steps.shape)[far], steps[far])

    return second_order_remainders(steps, np.abs(steps) / _radius(x), third, difference)


def _side(y: FloatArray) -> FloatArray:
    return 2.0 * y - 1.0


def _mills(x: FloatArray) -> FloatArray:
    """Return m; erfcx keeps its digits far out on both sides."""
    with np.errstate(over="ignore"):
        return np.asarray(np.sqrt(2.0 / np.pi) / erfcx(-x / np.sqrt(2.0)))


def _third(x: FloatArray) -> FloatArray:
    """Return the third derivative in x."""
    near = np.maximum(x, _TAIL)
    m = _mills(near)
    near += m
    found = near * (near + m)
    found -= 1.0
    found *= -m
    tail = x < _TAIL
    if tail.any():
        far = -x[tail]
        a, b, c = _fractions(far)
        found[tail] = -(far + a) * a * a * b * (c - b)
    return np.asarray(found)


def _radius(x: FloatArray) -> FloatArray:
    """Return less than the distance to the zeros of Phi, at 1.9 + 2.8 i and beyond.

    On the side of x > 0 terms fall as exp(-x t): there it is what keeps x t small.
    """
    return np.asarray(6.0 / (2.0 + np.maximum(x, 0.0)) - np.minimum(x, 0.0))


def _difference(x: FloatArray, t: FloatArray) -> FloatArray:
    """Return remainders for steps that are not short."""
    found, left = np.empty(x.shape), x < 0.0
    found[left] = _left_difference(x[left], t[left])
    x, t = x[~left], t[~left]
    m = _mills(x)
    found[~left] = log_ndtr(x) - log_ndtr(x + t) + m * t * (1.0 - 0.5 * (m + x) * t)
    return found


def _left_difference(x: FloatArray, t: FloatArray) -> FloatArray:
    """Return the remainder less that of x^2 / 2, which has none and is most of the term."""
    near = np.maximum(x, _TAIL)
    m = _mills(near)
    gap = m + near
    straight = 1.0 - m * gap  # 1 - f''
    tail = x < _TAIL
    a, b, _ = _fractions(-x[tail])
    gap[tail], straight[tail] = a, a * (b - a)
    return np.asarray(_less_square(x + t) - _less_square(x) + t * (gap + 0.5 * straight * t))


def _less_square(x: FloatArray) -> FloatArray:
    """Return -log Phi(x) - x^2 / 2."""
    left = -np.log(0.5 * erfcx(-np.minimum(x, 0.0) / np.sqrt(2.0)))
    return np.asarray(np.where(x < 0.0, left, -log_ndtr(x) - 0.5 * x * x))


def _fractions(far: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return a, b and c at X of at least 2.5, shape (n,)."""
    coefficients = _coefficients()
    powers = np.empty((len(coefficients), *far.shape))
    powers[0], powers[1:] = 1.0, _fold(far)
    np.multiply.accumulate(powers, axis=0, out=powers)
    c = (coefficients @ powers) / _size(far)
    b = 2.0 / (far + c)
    return 1.0 / (far + b), b, c


@cache
def _coefficients() -> FloatArray:
    """Return those of a polynomial in the folded X for c times its size.

    It interpolates the continued fraction, whose many levels would cost too much each time.
    """

    def scale(folded: FloatArray) -> FloatArray:
        far = np.sqrt(2.0 * (_FOLD + _TAIL**2) / (1.0 - folded) - _FOLD)
        c = np.sqrt(0.25 * far * far + _LEVELS) - 0.5 * far
        for level in range(_LEVELS - 1, 2, -1):
            c = level / (far + c)
        return np.asarray(c * _size(far))

    interpolate: Any = chebyshev.chebinterpolate  # typed for functions of one number
    return np.asarray(chebyshev.cheb2poly(interpolate(scale, _DEGREE)), dtype=np.float64)


def _fold(far: FloatArray) -> FloatArray:
    """Return X in a scale that goes from -1 at the least X to 1 at infinity."""
    return np.asarray(1.0 - 2.0 * (_FOLD + _TAIL**2) / (far * far + _FOLD))


def _size(far: FloatArray) -> FloatArray:
    """Return about 3 / c, so that c times it is nearly 1."""
    return np.asarray(far + np.sqrt(far * far + 12.0))


PROBIT = Family(
    name="probit",
    value=_value,
    first=_first,
    second=_second,
    # with m = phi / Phi: f'' = m (m + t) and -f''' = m ((m + t) (2 m + t) - 1), which is the third
    # central moment of a standard normal cut off below -t. It is positive, vanishes far out on both
    # sides (where nothing is cut off, and where what is left has no width), and is largest where
    # t = 1.0024 and it is 0.2957188...; found by Brent's method, and rounded up
    third_bound=0.29572,
    convex=True,
    responses="binary",
    remainder=_remainder,
    constant=np.zeros_like,
    predicts=response_family("probit"),
)
"""Responses 0 and 1 with probability Phi(e) of 1."""
