"""The mean of a process with a wall beyond what it is believed of."""

from __future__ import annotations

from typing import Self

import attrs
import numpy as np
from scipy.stats import chi2

from surrokit.types import BoolArray, FloatArray
from surrokit_gp.posterior.expansion import Expansion
from surrokit_gp.quadratic.heights import flat_from
from surrokit_gp.quadratic.process import QuadraticProcess

_TAIL, _ROOM, _WIDER = 1e-4, 1.0, 2.0
_STIFFNESS = 5.0
UNSURE = 1.0
"""Standard deviation, in nats, above which a process is not believed."""

_BLIND = 2.0
"""The same for draws of what doubts, which are few there."""


@attrs.frozen(kw_only=True, eq=False)
class Walled:
    """V(z) + stiffness max(0, |z| - radius)^2, whose integral of exp is finite.

    Parameters
    ----------
    process
        The process.
    mean
        V, as a function of whitened z.
    radius
        How far from the middle it is believed.
    stiffness
        Above what the quadratic of V may fall by.
    """

    process: QuadraticProcess
    mean: Expansion
    radius: float
    stiffness: float

    @classmethod
    def of(cls, process: QuadraticProcess, *, reach: float = 1.0, wide: bool = False) -> Self:
        """Return a process's mean, believed where draws of a normal target lie.

        A wide one is believed twice as far, and about all points of high density: tails may be
        heavier.

        Parameters
        ----------
        process
            The process.
        reach
            How many times as far as draws of a normal target.
        wide
            Whether that is doubled at least.
        """
        mean, radius = process.mean, reach * usual_radius(process.dim)
        if wide:
            heights = mean.value(process.z)
            high = process.z[heights <= heights.min() + flat_from(process.dim)]
            farthest = float(np.sqrt(np.square(high).sum(axis=1).max()))
            radius = max(_WIDER * radius, farthest + _ROOM)
        falls = max(0.0, -float(np.linalg.eigvalsh(process.trend.matrix)[0]))
        return cls(
            process=process,
            mean=mean,
            radius=radius,
            stiffness=_STIFFNESS + falls,
        )

    def value(self, z: FloatArray) -> FloatArray:
        """Return the sum, shape (n,), at ``z (n, dim)``."""
        values = self.mean.value(z) + self.stiffness * np.square(self._over(z)[0])
        return np.asarray(values)

    def value_and_gradient(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the sum, shape (n,), and its gradient, shape (n, dim)."""
        values, gradients = self.mean.value_and_gradient(z)
        over, distances = self._over(z)
        values += self.stiffness * np.square(over)
        pulls = 2.0 * self.stiffness * over / np.maximum(distances, self.radius)
        gradients += pulls[:, None] * z
        return values, gradients

    def is_beyond(self, z: FloatArray) -> BoolArray:
        """Return which of ``z (n, dim)`` lie at the wall, or where V is not sure, shape (n,)."""
        return np.asarray(self.is_at_wall(z) | (self.process.variance(z) > UNSURE**2))

    def is_at_wall(self, z: FloatArray) -> BoolArray:
        """Return which of ``z (n, dim)`` lie at the wall or beyond it, shape (n,)."""
        return np.asarray(self._over(z)[1] > self.radius - _ROOM)

    def _over(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        distances = np.sqrt(np.vecdot(z, z))
        return np.maximum(distances - self.radius, 0.0), distances


def usual_radius(dim: int) -> float:
    """Return the distance within which next to all draws of a standard normal target lie."""
    return float(np.sqrt(chi2.isf(_TAIL, dim))) + _ROOM
