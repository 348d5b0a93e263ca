"""Draws from many weighted rows of which few are wanted: no more than running sums are made."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.errors import NumericalError
from surrokit.types import FloatArray, IntArray


@attrs.frozen(kw_only=True, eq=False)
class CumulativeTable:
    """The inverse of a distribution function of rows, by bisection.

    Parameters
    ----------
    sums : ndarray of shape (n,)
        Weights of the rows up to each, that one included.
    """

    sums: FloatArray

    @classmethod
    def of(cls, weights: FloatArray) -> CumulativeTable:
        """Return the table of weights that are not negative, shape (n,).

        Raises
        ------
        NumericalError
            If their sum is not positive and finite.
        """
        sums = np.cumsum(weights)
        if not 0.0 < sums[-1] < np.inf:
            raise NumericalError(
                f"weights of rows must have a positive, finite sum, got {sums[-1]}; is a bound of "
                "a row infinite or NaN?"
            )
        return cls(sums=sums)

    def draw(self, n: int, rng: np.random.Generator) -> IntArray:
        """Return n rows, drawn independently with their probabilities; n uniform numbers."""
        # a number below 1 may be rounded up to the whole sum, which belongs to no row
        wanted = np.minimum(rng.random(n) * self.sums[-1], np.nextafter(self.sums[-1], 0.0))
        return np.asarray(np.searchsorted(self.sums, wanted, side="right"))
