"""The terms of counts with a negative binomial distribution of mean exp(e).

With r the size (the variance is m + m^2 / r for a mean of m) and u = e - log r, a term is
y log(1 + exp(-u)) + r log(1 + exp(u)): (y + r) logistic terms, and a function linear in e.
"""

from __future__ import annotations

import attrs
import numpy as np
from scipy.special import expit, gammaln

from surrokit.types import FloatArray
from surrokit_problems.rows.families import logistic_terms


@attrs.frozen
class NegativeBinomialTerms:
    """Terms of counts of mean exp(e).

    Parameters
    ----------
    size
        r.
    """

    size: float

    def value(self, e: FloatArray, y: FloatArray) -> FloatArray:
        """Return the terms."""
        u = self._odds(e)
        return np.asarray(y * logistic_terms.softplus(-u) + self.size * logistic_terms.softplus(u))

    def constant(self, y: FloatArray) -> FloatArray:
        """Return what minus the log density has beside the terms."""
        return np.asarray(gammaln(y + 1.0) + gammaln(self.size) - gammaln(y + self.size))

    def first(self, e: FloatArray, y: FloatArray) -> FloatArray:
        """Return first derivatives in e."""
        u = self._odds(e)
        return np.asarray(self.size * expit(u) - y * expit(-u))

    def second(self, e: FloatArray, y: FloatArray) -> FloatArray:
        """Return second derivatives in e."""
        return np.asarray((y + self.size) * logistic_terms.density(self._odds(e)))

    def third(self, e: FloatArray, y: FloatArray) -> FloatArray:
        """Return third derivatives in e."""
        return np.asarray((y + self.size) * logistic_terms.third(self._odds(e), np.zeros(())))

    def third_bound(self, e: FloatArray, y: FloatArray, reach: FloatArray) -> FloatArray:  # noqa: ARG002
        """Return the largest absolute third derivative at every predictor."""
        return np.asarray((y + self.size) * logistic_terms.THIRD_BOUND)

    def fourth_bound(self, e: FloatArray, y: FloatArray, reach: FloatArray) -> FloatArray:  # noqa: ARG002
        """Return the largest absolute fourth derivative at every predictor."""
        return np.asarray((y + self.size) * logistic_terms.FOURTH_BOUND)

    def prepare(self, e: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what logistic remainders need besides."""
        return logistic_terms.slope_and_bend(self._odds(e), y)

    def remainder(
        self,
        e: FloatArray,
        y: FloatArray,
        t: FloatArray,
        slope: FloatArray,
        bend: FloatArray,
        order: int = 2,
    ) -> FloatArray:
        """Return what the expansion at e to second or third order leaves out at e + t."""
        left = logistic_terms.remainder(self._odds(e), y, t, slope, bend, order)
        return np.asarray((y + self.size) * left)

    def third_order_remainder(
        self, e: FloatArray, y: FloatArray, t: FloatArray, slope: FloatArray, bend: FloatArray
    ) -> FloatArray:
        """Return what the expansion at e to third order leaves out at e + t."""
        return self.remainder(e, y, t, slope, bend, order=3)

    def _odds(self, e: FloatArray) -> FloatArray:
        return np.asarray(e - np.log(self.size))
