"""The border of what a surrogate has learnt, and the draws beyond it."""

from __future__ import annotations

from typing import Protocol, cast

from surrokit.contracts.potential import Potential
from surrokit.types import BoolArray, FloatArray


class BorderedPotential(Potential, Protocol):
    """A surrogate that knows how far it is to be believed."""

    def is_beyond(self, positions: FloatArray) -> BoolArray:
        """Return which of ``positions (n, dim)`` lie beyond what was learnt from, shape (n,)."""


def part_beyond(surrogate: Potential | None, positions: FloatArray) -> float:
    """Return the part of positions beyond a surrogate's border; 0 where it has none.

    Parameters
    ----------
    surrogate
        Any, or None.
    positions : ndarray of shape (n, dim)
        In the sampling coordinates.
    """
    if not hasattr(surrogate, "is_beyond") or not len(positions):
        return 0.0
    return float(cast(BorderedPotential, surrogate).is_beyond(positions).mean())
