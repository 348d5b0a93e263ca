"""Coordinates in which each parameter by itself is about normal."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.types import FloatArray


@attrs.frozen(kw_only=True, eq=False)
class Warp:
    """A smooth map of each parameter by itself: x = centre + scale sinh((asinh z + lean) / tail).

    It is the sinh-arcsinh transformation of Jones and Pewsey (2009, doi:10.1093/biomet/asp053),
    and takes the line onto the line. With ``lean`` 0 and ``tail`` 1 it is a shift and a scale.

    Parameters
    ----------
    centre, scale : ndarray of shape (dim,)
        Where z = 0 lies without a lean, and units there.
    lean : ndarray of shape (dim,)
        Positive for a long tail towards large x.
    tail : ndarray of shape (dim,)
        Below 1 for tails of x that are longer than those of z.
    covariance : ndarray of shape (dim, dim)
        Of the target in z.
    """

    centre: FloatArray
    scale: FloatArray
    lean: FloatArray
    tail: FloatArray
    covariance: FloatArray

    def straighten(self, positions: FloatArray) -> FloatArray:
        """Return z, shape (n, dim), of positions x (n, dim)."""
        units = (positions - self.centre) / self.scale
        return np.asarray(np.sinh(self.tail * np.arcsinh(units) - self.lean))

    def bend(self, straight: FloatArray) -> FloatArray:
        """Return x, shape (n, dim), of z (n, dim)."""
        return np.asarray(self.centre + self.scale * np.sinh(self._inside(straight)))

    def slopes(self, straight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return dx/dz and the derivative of its logarithm by z, both of shape (n, dim)."""
        inside, root = self._inside(straight), np.sqrt(1.0 + np.square(straight))
        slope = self.scale / self.tail * np.cosh(inside) / root
        by_straight = np.tanh(inside) / (self.tail * root) - straight / np.square(root)
        return slope, by_straight

    def log_volume(self, straight: FloatArray) -> FloatArray:
        """Return log |dx/dz|, shape (n,), at z (n, dim)."""
        return np.asarray(np.log(self.slopes(straight)[0]).sum(axis=1))

    def pull(self, gradients: FloatArray, straight: FloatArray) -> FloatArray:
        """Return gradients by z of U - log |dx/dz| at z (n, dim), from those of U by x."""
        slope, by_straight = self.slopes(straight)
        return np.asarray(gradients * slope - by_straight)

    def push(self, gradients: FloatArray, straight: FloatArray) -> FloatArray:
        """Return gradients of U by x at z (n, dim), from those of U - log |dx/dz| by z."""
        slope, by_straight = self.slopes(straight)
        return np.asarray((gradients + by_straight) / slope)

    def _inside(self, straight: FloatArray) -> FloatArray:
        return np.asarray((np.arcsinh(straight) + self.lean) / self.tail)
