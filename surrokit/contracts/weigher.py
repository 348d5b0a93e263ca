"""Corrections of answers, rather than of draws."""

from __future__ import annotations

from typing import Protocol, TypeGuard

import attrs
import numpy as np

from surrokit.contracts.potential import Potential
from surrokit.contracts.sampler import Correction, Sampler
from surrokit.types import FloatArray


@attrs.frozen(kw_only=True, eq=False)
class SurrogateSample:
    """Draws of chains on a surrogate V alone.

    Parameters
    ----------
    positions : ndarray of shape (chains, draws, dim)
        In the sampling coordinates.
    values : ndarray of shape (chains, draws)
        V there.
    """

    positions: FloatArray
    values: FloatArray


class Weigher(Correction, Protocol):
    """A correction by which weights correct answers, as long as they are good.

    A run with a weigher draws from its surrogate, which costs nothing, and pays for the exact
    potential at a few of the draws. Where weights are bad it goes on with chains, on whose
    proposals the bound correction decides as any other.
    """

    @property
    def weighs(self) -> bool:
        """True."""

    @property
    def aim(self) -> float:
        """Error of every mean, sd and quantile, in posterior sds, at which a run may end."""

    def draw(
        self,
        surrogate: Potential,
        sampler: Sampler,
        about: FloatArray,
        covariance: FloatArray | None,
        rng: np.random.Generator,
    ) -> SurrogateSample:
        """Return draws of long chains on V, begun farther apart than draws.

        Parameters
        ----------
        surrogate
            V, a proper density.
        sampler
            Moves the chains; not bound yet.
        about : ndarray of shape (n, dim)
            Positions of high probability, in each mode that is known.
        covariance : ndarray of shape (dim, dim), optional
            About that of the target.
        rng
            Generator.
        """

    def next_size(self, learnt: int, before: int, left: float) -> int:
        """Return how many draws to pay for in the next round; 0 where too few calls are left.

        Parameters
        ----------
        learnt
            Exact evaluations that the surrogate has learnt from.
        before
            Draws paid for in the round before; 0 for the first.
        left
            Calls left, perhaps infinite.
        """


def weighs(correction: Correction) -> TypeGuard[Weigher]:
    """Return whether a correction corrects answers."""
    return bool(getattr(correction, "weighs", False))
