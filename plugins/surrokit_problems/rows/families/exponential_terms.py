"""Terms with an exponential of the predictor: c(y) exp(s e) - b(y) e, with s of 1 or -1.

Poisson: c = 1, b = y, s = 1. Gamma with shape a: c = a y, b = -a, s = -1. A time to an event with
cumulated hazard |y|^k exp(e): c = |y|^k, b = 1 where the event came, else 0, s = 1.

All derivatives from the second on are, up to their sign, c exp(s e). They have no bound at every
predictor; from e - t to e + t the largest is c exp(s e + t).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import attrs
import numpy as np

from surrokit.types import FloatArray

OfResponses: TypeAlias = Callable[[FloatArray], FloatArray]
"""A function of responses, entry by entry."""

_LONG = 1.0  # steps up to which a remainder is summed as a series
_FAR = 30.0  # steps after which all that counts is where one comes from, or goes
_DIGITS = 1e-17


@attrs.frozen
class ExponentialTerms:
    """c(y) exp(s e) - b(y) e.

    Parameters
    ----------
    size, slope
        c and b, functions of responses.
    sign
        s: 1 or -1.
    """

    size: OfResponses
    slope: OfResponses
    sign: float = 1.0

    def value(self, e: FloatArray, y: FloatArray) -> FloatArray:
        """Return the terms."""
        return np.asarray(self.second(e, y) - self.slope(y) * e)

    def first(self, e: FloatArray, y: FloatArray) -> FloatArray:
        """Return first derivatives in e."""
        return np.asarray(self.sign * self.second(e, y) - self.slope(y))

    def second(self, e: FloatArray, y: FloatArray) -> FloatArray:
        """Return second derivatives in e, all the others up to their sign."""
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(self.size(y) * np.exp(self.sign * e))

    def third(self, e: FloatArray, y: FloatArray) -> FloatArray:
        """Return third derivatives in e."""
        return np.asarray(self.sign * self.second(e, y))

    def bound(self, e: FloatArray, y: FloatArray, reach: FloatArray) -> FloatArray:
        """Return the largest absolute third derivative, and fourth, from e - reach to e + reach."""
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(self.size(y) * np.exp(self.sign * e + reach))

    def remainder(self, e: FloatArray, y: FloatArray, t: FloatArray) -> FloatArray:
        """Return what the expansion at e to second order leaves out at e + t."""
        return self._remainder(e, y, t, 2)

    def third_order_remainder(self, e: FloatArray, y: FloatArray, t: FloatArray) -> FloatArray:
        """Return what the expansion at e to third order leaves out at e + t."""
        return self._remainder(e, y, t, 3)

    def _remainder(self, e: FloatArray, y: FloatArray, t: FloatArray, order: int) -> FloatArray:
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


def exponential_remainder(u: FloatArray, order: int, largest: float) -> FloatArray:
    """Return exp(u) less its terms up to u^order, to nearly all digits.

    Parameters
    ----------
    u : ndarray
        Arguments.
    order
        2 or 3.
    largest
        The largest abs(u), which is best below about 1.
    """
    last = order + 2
    while largest ** (last - order - 1) * math.factorial(order + 1) > _DIGITS * math.factorial(
        last
    ):
        last += 1
    total = np.full(u.shape, 1.0 / math.factorial(last))
    for k in range(last - 1, order, -1):
        total *= u
        total += 1.0 / math.factorial(k)
    for _ in range(order + 1):
        total *= u
    return total
