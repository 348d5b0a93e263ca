"""Answers about functions, and those about moments and quantiles that follow from them."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable

import attrs
import numpy as np

from surrokit.types import FloatArray
from surrokit.weighted.distribution import Distribution
from surrokit.weighted.estimate import Estimate

Function = Callable[[FloatArray], FloatArray]
"""From positions (n, dim) in the user's coordinates to values (n, k)."""


class Answering(ABC):
    """Says what means of functions under the target are."""

    @abstractmethod
    def expectation(self, function: Function) -> Estimate:
        """Return the means of functions under the target.

        Parameters
        ----------
        function
            From positions (n, dim) to values (n, k).
        """

    @abstractmethod
    def quantile(self, probability: float) -> Estimate:
        """Return a quantile of each number of a position.

        Parameters
        ----------
        probability
            Between zero and one.
        """

    @property
    @abstractmethod
    def with_masses(self) -> tuple[FloatArray, FloatArray]:
        """Draws (n, dim) with masses (n,) of sum one, perhaps negative: all that is known."""

    @functools.cached_property
    def distribution(self) -> Distribution:
        """Distribution functions of all numbers of a position, without errors."""
        return Distribution.of(*self.with_masses)

    def mean(self) -> Estimate:
        """Return the mean of each number of a position."""
        return self._mean

    @functools.cached_property
    def _mean(self) -> Estimate:
        return self.expectation(lambda positions: positions)

    def sd(self) -> Estimate:
        """Return the standard deviation of each number of a position."""
        mean = self.mean()
        square = self.expectation(lambda positions: np.square(positions - mean.value))
        # about the estimated mean squares are smaller by its variance
        sd = np.sqrt(np.maximum(square.value + np.square(mean.error), 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            return attrs.evolve(square, value=sd, error=square.error / (2.0 * sd))


def quantile_of(
    of: Distribution,
    probability: float | FloatArray,
    part_below: Callable[[Function], Estimate],
    beside: Distribution | None = None,
) -> Estimate:
    """Return a quantile of each of several numbers.

    Its error is that of the distribution function there, seen from the other axis (Woodruff 1952,
    doi:10.1080/01621459.1952.10483443). It is infinite at an end of all draws.

    Parameters
    ----------
    of
        Their distribution functions.
    probability : float or ndarray of shape (k,)
        Between zero and one; of each number.
    part_below
        Returns the means of functions, whether each number is below some bound.
    beside
        Others that are near, of more draws; errors are at least what they would be by these.
    """
    at = of.invert(np.broadcast_to(probability, len(of.points)))
    below = part_below(bounded_by(at))
    half = _half_width(of, probability, below.error)
    if beside is not None:
        half = np.maximum(half, _half_width(beside, beside.place(at), below.error))
    least, largest = of.points[:, 0], of.points[:, -1]
    ended = (least < largest) & ((at == least) | (at == largest))
    unknown = ended | np.isinf(below.error)
    return attrs.evolve(below, value=at, error=np.where(unknown, np.inf, half))


def _half_width(of: Distribution, probability: float | FloatArray, error: FloatArray) -> FloatArray:
    low, high = (of.invert(probability + sign * error) for sign in (-1.0, 1.0))
    return np.asarray(0.5 * (high - low))


def bounded_by(bounds: FloatArray) -> Function:
    """Return the function that says whether each number is at most its bound, shape (k,)."""
    return lambda positions: (positions <= bounds).astype(float)
