"""Penalties that stand for the edge of a support, such as a log density of -1e100 beyond it.

A density of exp(-1e100) is zero in every decision. Searches, differences and fits that take such a
number for a height, however, see a cliff, or a plateau on which chains may begin.
"""

from __future__ import annotations

import numpy as np

from surrokit.types import BoolArray, FloatArray

EDGE = 1e30
"""Potential, in nats, from which on a density is zero: no model of data gets there."""

PENALTY = 1e6
"""Potential, in nats, from which on equal values at different positions are a penalty: no model of
data gives the same number, to the last digit, at three of them."""

_STEEP = 100.0  # times the height itself, a rise over the step of a difference that is a cliff
_SHARED = 3  # positions
_DIGITS = 10


def without_penalties(values: FloatArray) -> FloatArray:
    """Return potentials (n,), infinite from :data:`EDGE` on."""
    return np.where(values >= EDGE, np.inf, values)


def without_cliffs(values: FloatArray) -> FloatArray:
    """Return potentials (n, k), infinite where a cliff parts them from the first of their row.

    Parameters
    ----------
    values : ndarray of shape (n, k)
        At positions, and at close neighbours of each.
    """
    values = without_penalties(values)
    with np.errstate(invalid="ignore"):
        here = values[:, :1]
        rises = values[:, 1:] - here > np.maximum(PENALTY, _STEEP * np.abs(here))
    values[:, 1:] = np.where(rises, np.inf, values[:, 1:])
    return values


class Penalties:
    """The penalties that a target has given so far."""

    def __init__(self) -> None:
        self._seen: dict[float, set[bytes]] = {}

    def find(self, positions: FloatArray, densities: FloatArray) -> BoolArray:
        """Return which of some potentials (n,) are penalties, for all that is known by now.

        Parameters
        ----------
        positions : ndarray of shape (n, dim)
            Where.
        densities : ndarray of shape (n,)
            Minus the logarithm of the user's density there, without any Jacobian.
        """
        found = np.zeros(len(densities), dtype=bool)
        high = np.flatnonzero((densities >= PENALTY) & (densities < np.inf))
        keys = {int(i): float(f"{densities[i]:.{_DIGITS}e}") for i in high}
        for i, key in keys.items():
            places = self._seen.setdefault(key, set())
            if len(places) < _SHARED:
                places.add(positions[i].tobytes())
        for i, key in keys.items():
            found[i] = len(self._seen[key]) == _SHARED
        return found
