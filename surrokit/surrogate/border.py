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


def part_unsure(surrogate: Potential | None) -> float:
    """Return the part of its mass of which a surrogate says that it is not sure; 0 if it says none.

    Such a surrogate rises where it is not sure of itself, and what it leaves out has to be told.
    """
    return float(getattr(surrogate, "part_unsure", 0.0))
