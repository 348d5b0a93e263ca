"""The border of what a surrogate has learnt, and the draws beyond it."""

from __future__ import annotations

from typing import Protocol, cast

import numpy as np

from surrokit.contracts.potential import Potential
from surrokit.types import BoolArray, FloatArray

LOOKED_AT = 12_000
"""Positions that are looked at, at most, spread evenly over all: a part of them is known to half a
percent, and each takes the variance of a process."""


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
    if len(positions) > LOOKED_AT:
        positions = positions[np.linspace(0, len(positions) - 1, LOOKED_AT).astype(np.int64)]
    return float(cast(BorderedPotential, surrogate).is_beyond(positions).mean())
