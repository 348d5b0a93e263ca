"""A density that has the surrogate's tails as often as its bulk."""

from __future__ import annotations

import math

import attrs
import numpy as np
from scipy.special import expit

from surrokit.capabilities import GRADIENT
from surrokit.contracts.potential import Potential, with_gradient
from surrokit.types import Capabilities, FloatArray

RAREST = 1e-5
"""Tail probability of the surrogate beyond which draws are no likelier still."""

SEEN = (0.1, 0.01)
"""Tail probabilities of the surrogate between which it is seen how its tail falls."""

STEEPEST = 1.0
"""Fall of the log tail probability per nat: that of many a far tail. With more W could fall."""

FLATTEST = 0.02
"""The least fall that is believed of a few draws."""


@attrs.frozen(kw_only=True, eq=False)
class Umbrella:
    """W = V - log c(V): draws lie evenly over the logarithm of V's tail probability.

    Where a surrogate is too high, it has no draws, and none would be paid for there: weights would
    look good while a part of the target is missing. Draws of W reach where draws of V are as rare
    as :data:`RAREST`, and c tells how much likelier they are there (umbrella sampling: Torrie and
    Valleau 1977, doi:10.1016/0021-9991(77)90121-8).

    With p(v) the part of the surrogate's draws where V is above v, c is 1 / (p + p_0) with the
    rarest p_0, over ``scale``. As p serves 1 / (1 + exp(slope (v - level))).

    Parameters
    ----------
    potential
        V.
    level, slope
        Of the logistic curve, in nats and 1 / nat.
    scale : float
        Mean of 1 / (p + p_0) under V.
    """

    potential: Potential
    level: float
    slope: float
    scale: float = math.log1p(1.0 / RAREST)

    @classmethod
    def about(cls, potential: Potential, values: FloatArray) -> Umbrella:
        """Return the umbrella over a surrogate V, by its values at draws of its own."""
        upper, lower = np.quantile(values, [1.0 - part for part in SEEN])
        odds = [math.log(1.0 / part - 1.0) for part in SEEN]
        apart = max(float(lower - upper), (odds[1] - odds[0]) / STEEPEST)
        slope = max((odds[1] - odds[0]) / apart, FLATTEST)
        return cls(potential=potential, level=float(upper) - odds[0] / slope, slope=slope)

    def normalise(self, values: FloatArray) -> Umbrella:
        """Return the umbrella with its scale, by the values V at draws of W."""
        # under W the mean of 1 / c is one, and 1 / c is at most scale: that is told well
        return attrs.evolve(self, scale=self.scale / float(np.mean(1.0 / self.chances(values))))

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.potential.dim

    @property
    def capabilities(self) -> Capabilities:
        """A gradient, if V has one."""
        return self.potential.capabilities & {GRADIENT}

    def chances(self, values: FloatArray) -> FloatArray:
        """Return c, by values V of any shape: how much likelier draws are here than under V."""
        return np.asarray(1.0 / (self._tail(values) + RAREST) / self.scale)

    def value(self, positions: FloatArray) -> FloatArray:
        """Return W, shape (n,), at positions (n, dim)."""
        values = self.potential.value(positions)
        return np.asarray(values - np.log(self.chances(values)))

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return W, shape (n,), and its gradient, shape (n, dim), at positions (n, dim)."""
        values, gradients = with_gradient(self.potential).value_and_gradient(positions)
        tail = self._tail(values)
        rise = self.slope * tail * (1.0 - tail) / (tail + RAREST)
        return (
            np.asarray(values - np.log(self.chances(values))),
            (1.0 - rise)[:, None] * gradients,
        )

    def _tail(self, values: FloatArray) -> FloatArray:
        """Return about which part of the surrogate's draws lies above values of V."""
        return np.asarray(expit(self.slope * (self.level - values)))
