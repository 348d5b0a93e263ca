"""The terms of errors of regression: functions of u = (y - e) / scale."""

from __future__ import annotations

import attrs
import numpy as np
from scipy.special import gammaln

from surrokit.types import BoolArray, FloatArray
from surrokit_problems.rows.families import logistic_terms
from surrokit_problems.rows.families.taylor import remainders


@attrs.frozen
class StudentErrors:
    """Terms of errors with Student's t: (nu + 1) / 2 log(1 + u^2 / nu).

    Parameters
    ----------
    degrees
        nu.
    scale
        Of the errors.
    """

    degrees: float
    scale: float

    def value(self, e: FloatArray, y: FloatArray) -> FloatArray:
        """Return the terms."""
        with np.errstate(over="ignore"):
            square = np.square((y - e) / self.scale) / self.degrees
        return np.asarray(0.5 * (self.degrees + 1.0) * np.log1p(square))

    def constant(self, y: FloatArray) -> FloatArray:
        """Return what minus the log density has beside the terms."""
        half = 0.5 * self.degrees
        beta = gammaln(half) - gammaln(half + 0.5) + 0.5 * np.log(self.degrees * np.pi)
        return np.full(np.shape(y), beta + np.log(self.scale))

    def first(self, e: FloatArray, y: FloatArray) -> FloatArray:
        """Return first derivatives in e."""
        u = (y - e) / self.scale
        return np.asarray(-(self.degrees + 1.0) / self.scale * u / (self.degrees + u * u))

    def second(self, e: FloatArray, y: FloatArray) -> FloatArray:
        """Return second derivatives in e."""
        square = np.square((y - e) / self.scale)
        # in this form nothing overflows before it is 0
        share = (self.degrees - square) / (self.degrees + square)
        return np.asarray((self.degrees + 1.0) / self.scale**2 * share / (self.degrees + square))

    def remainder(self, e: FloatArray, y: FloatArray, t: FloatArray) -> FloatArray:
        """Return what the expansion at e to second order leaves out at e + t."""
        u, steps = (y - e) / self.scale, t / -self.scale
        total = self.degrees + u * u

        def difference(far: BoolArray) -> FloatArray:
            u_far, total_far = (np.broadcast_to(each, steps.shape)[far] for each in (u, total))
            return self._difference(u_far, total_far, steps[far])

        # log(nu + u^2) has its singularities at i sqrt(nu) and -i sqrt(nu)
        sizes = np.abs(steps) / np.sqrt(total)
        return remainders(steps, sizes, lambda moves: self._third(u + moves), difference)

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
class LogisticErrors:
    """Terms of errors with the logistic distribution: 2 log(1 + exp(u)) - u.

    Parameters
    ----------
    scale
        Of the errors.
    """

    scale: float

    def value(self, e: FloatArray, y: FloatArray) -> FloatArray:
        """Return the terms."""
        size = np.abs(y - e) / self.scale
        return np.asarray(size + 2.0 * np.log1p(np.exp(-size)))

    def constant(self, y: FloatArray) -> FloatArray:
        """Return what minus the log density has beside the terms."""
        return np.full(np.shape(y), np.log(self.scale))

    def first(self, e: FloatArray, y: FloatArray) -> FloatArray:
        """Return first derivatives in e."""
        return np.asarray(-np.tanh(0.5 * (y - e) / self.scale) / self.scale)

    def second(self, e: FloatArray, y: FloatArray) -> FloatArray:
        """Return second derivatives in e."""
        return np.asarray(2.0 / self.scale**2 * logistic_terms.density((y - e) / self.scale))

    def remainder(self, e: FloatArray, y: FloatArray, t: FloatArray) -> FloatArray:
        """Return what the expansion at e to second order leaves out at e + t."""
        u, steps = (y - e) / self.scale, t / -self.scale
        prepared = logistic_terms.slope_and_bend(u, y)
        return 2.0 * logistic_terms.remainder(u, y, steps, *prepared)
