"""Draws from many weighted rows, at a cost that does not depend on their number."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.errors import NumericalError
from surrokit.types import FloatArray, IntArray


@attrs.frozen(kw_only=True, eq=False)
class AliasTable:
    """Walker's alias method: a column for each row, shared with one other row.

    Parameters
    ----------
    own : ndarray of shape (n,)
        Share of each column that is its own row's.
    other : ndarray of int, shape (n,)
        Whose the rest of it is.

    References
    ----------
    Walker (1977), doi:10.1145/355744.355749; the table is made by the sweep of Huebschle-Schneider
    and Sanders (2022), doi:10.1145/3505286.
    """

    own: FloatArray
    other: IntArray

    @classmethod
    def of(cls, weights: FloatArray) -> AliasTable:
        """Return the table of weights that are not negative, shape (n,).

        Raises
        ------
        NumericalError
            If their sum is not positive and finite.
        """
        total = float(weights.sum())
        if not 0.0 < total < np.inf:
            raise NumericalError(
                f"weights of rows must have a positive, finite sum, got {total}; is a bound of a "
                "row infinite or NaN?"
            )
        own = weights * (len(weights) / total)
        other = np.arange(len(weights))
        light, heavy = np.flatnonzero(own <= 1.0), np.flatnonzero(own > 1.0)
        if not (light.size and heavy.size):
            return cls(own=np.ones_like(own), other=other)
        # Heavy rows fill light columns one after the other. A heavy row whose excess is used up
        # goes below 1, and the next heavy row fills its column in turn.
        lacking = np.cumsum(1.0 - own[light])
        excess = np.cumsum(own[heavy] - 1.0)
        before = np.concatenate([[0.0], lacking[:-1]])
        fills = np.minimum(np.searchsorted(excess, before, side="right"), len(heavy) - 1)
        other[light] = heavy[fills]
        emptied = np.searchsorted(lacking, excess, side="left")
        last = emptied >= len(light)  # by rounding; these keep their columns whole
        own[heavy] = np.where(
            last, 1.0, 1.0 + excess - lacking[np.minimum(emptied, len(light) - 1)]
        )
        other[heavy[:-1]] = heavy[1:]
        own[heavy[-1]] = 1.0
        return cls(own=np.clip(own, 0.0, 1.0), other=other)

    def draw(self, n: int, rng: np.random.Generator) -> IntArray:
        """Return n rows, drawn independently with their probabilities; n uniform numbers."""
        place = rng.random(n) * len(self.own)
        column = place.astype(np.int64)
        place -= column
        return np.where(place < self.own[column], column, self.other[column])
