"""Distribution functions of several numbers, each from draws with masses."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.types import FloatArray

_PLACES = 1001  # of an interval, among which the shortest is looked for


@attrs.frozen(kw_only=True, eq=False)
class Distribution:
    """Distribution functions of k numbers, made monotone: masses may be negative.

    Parameters
    ----------
    points : ndarray of shape (k, n)
        In order.
    below : ndarray of shape (k, n)
        The values half-way through the step at each of them, in order.
    """

    points: FloatArray
    below: FloatArray

    @classmethod
    def of(cls, points: FloatArray, masses: FloatArray) -> Distribution:
        """Return the distribution functions of draws (n, k) with masses (n,) of sum one."""
        order = np.argsort(points.T, axis=1)
        steps = masses[order]
        half = np.cumsum(steps, axis=1) - 0.5 * steps
        # as much too high as too low
        rising = np.maximum.accumulate(half, axis=1)
        falling = np.minimum.accumulate(half[:, ::-1], axis=1)[:, ::-1]
        return cls(
            points=np.take_along_axis(points.T, order, axis=1), below=0.5 * (rising + falling)
        )

    def invert(self, probabilities: FloatArray) -> FloatArray:
        """Return where each function has a value of its own, shape (k,); ends are not left."""
        rows = zip(probabilities, self.below, self.points, strict=True)
        return np.array(
            [np.interp(probability, below, points) for probability, below, points in rows]
        )

    def shortest(self, probability: float) -> FloatArray:
        """Return the shortest interval of each number with so much between its ends, (k, 2)."""
        lower = np.linspace(0.0, 1.0 - probability, _PLACES)
        found = []
        for below, points in zip(self.below, self.points, strict=True):
            ends = np.interp([lower, lower + probability], below, points)
            found.append(ends[:, np.argmin(ends[1] - ends[0])])
        return np.array(found)

    def place(self, points: FloatArray) -> FloatArray:
        """Return the value of each function at a point of its own, shape (k,)."""
        rows = zip(points, self.points, self.below, strict=True)
        return np.array([np.interp(point, found, below) for point, found, below in rows])
