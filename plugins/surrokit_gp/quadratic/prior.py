"""What is believed of a potential before any of its values is known, in whitened coordinates."""

from __future__ import annotations

import math
from typing import Self

import attrs
import numpy as np

from surrokit.types import FloatArray

_USUAL = {"quadratic_sd": 3.0, "signal_sd": 2.0, "length_scales": 2.5}
_SPREAD = {"quadratic_sd": 2.0, "signal_sd": 1.0, "length_scales": 0.7}
_BOUNDS = {"quadratic_sd": (-4.0, 5.0), "signal_sd": (-4.0, 3.4), "length_scales": (-0.7, 3.5)}


@attrs.frozen(kw_only=True, eq=False)
class QuadraticPrior:
    """U(z) = |z|^2 / 2 + a random quadratic + a random smooth function.

    In coordinates in which the target is nearly standard normal the first term is all. The second
    has the covariance s^2 (1 + z . z' / dim)^2: each coefficient of a quadratic is normal, so that
    fewer values than coefficients do no harm. The third has a squared-exponential one.

    Parameters
    ----------
    quadratic_sd
        s, in nats.
    signal_sd
        Standard deviation of the smooth function, in nats.
    length_scales : ndarray of shape (dim,)
        Its length scales.
    """

    quadratic_sd: float
    signal_sd: float
    length_scales: FloatArray

    @classmethod
    def usual(cls, dim: int) -> Self:
        """Return what is believed before any value is seen."""
        return cls(
            quadratic_sd=_USUAL["quadratic_sd"],
            signal_sd=_USUAL["signal_sd"],
            length_scales=np.full(dim, _USUAL["length_scales"]),
        )

    @property
    def point(self) -> FloatArray:
        """Logarithms of all of them, shape (2 + dim,)."""
        sds = [math.log(self.quadratic_sd), math.log(self.signal_sd)]
        return np.concatenate([sds, np.log(self.length_scales)])

    @classmethod
    def at(cls, point: FloatArray) -> Self:
        """Return the beliefs whose logarithms are a point (2 + dim,)."""
        sds = np.exp(point[:2])
        return cls(
            quadratic_sd=float(sds[0]), signal_sd=float(sds[1]), length_scales=np.exp(point[2:])
        )

    def quadratic(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return the covariance (n, m) of the quadratic at ``a (n, dim)`` and ``b (m, dim)``."""
        return np.asarray(self.quadratic_sd**2 * np.square(1.0 + a @ b.T / a.shape[1]))

    def smooth(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return the covariance (n, m) of the smooth function."""
        a, b = a / self.length_scales, b / self.length_scales
        squares = np.square(a).sum(axis=1)[:, None] + np.square(b).sum(axis=1) - 2.0 * a @ b.T
        return np.asarray(self.signal_sd**2 * np.exp(-0.5 * np.maximum(squares, 0.0)))

    def covariance(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return the covariance (n, m) of U at ``a (n, dim)`` and ``b (m, dim)``."""
        return self.quadratic(a, b) + self.smooth(a, b)

    def variance(self, z: FloatArray) -> FloatArray:
        """Return the variance of U, shape (n,), at ``z (n, dim)``."""
        squares = 1.0 + np.square(z).sum(axis=1) / z.shape[1]
        return np.asarray(self.quadratic_sd**2 * np.square(squares) + self.signal_sd**2)


def bounds(dim: int) -> list[tuple[float, float]]:
    """Return least and largest logarithms of all numbers of a prior."""
    return [_BOUNDS["quadratic_sd"], _BOUNDS["signal_sd"]] + [_BOUNDS["length_scales"]] * dim


def penalty(point: FloatArray) -> tuple[float, FloatArray]:
    """Return minus the log density of the logarithms, each normal about the usual, and its slope.

    Few values say little of so many scales.
    """
    dim = len(point) - 2
    usual = QuadraticPrior.usual(dim).point
    spread = np.array(
        [_SPREAD["quadratic_sd"], _SPREAD["signal_sd"], *[_SPREAD["length_scales"]] * dim]
    )
    away = (point - usual) / spread
    return float(0.5 * away @ away), away / spread
