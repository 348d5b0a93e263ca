"""Directions in the plane and in space."""

from __future__ import annotations

import math

import attrs
import numpy as np

from surrokit.coordinates.constraints.constraint import CLOSE, every, only_where
from surrokit.types import BoolArray, FloatArray

AWAY = 4.0
"""Power of the length that keeps vectors away from the origin.

Without it, where lengths are those of a standard normal vector as in Stan, the density of vectors
is highest at the origin. It has no derivatives there, so searches for modes end where no mode is.

A smaller power makes an angle of which nothing is known cheaper (10 gradients an effective draw
with 4, 7 with 2, 5 with 1), and one that is well known worse: of 1,200 paths for a direction known
to 1/17, 1 or 2 diverged with 4, 5 with 2, and 10 to 16 with 1.
"""


@attrs.frozen
class UnitVector:
    """Vectors of ``size`` numbers and length 1.

    q = z / |z|, where the density of z by its length is |z|^a exp(-|z|^2 / 2), with a of
    :data:`AWAY`. Volumes are those of the surface.
    """

    size: int
    name = "unit_vector"
    meaning = "a vector of length 1"

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of q."""
        return (self.size,)

    @property
    def free(self) -> int:
        """Numbers in z, one more than the surface has dimensions."""
        return self.size

    @property
    def varies(self) -> BoolArray:
        """All numbers vary."""
        return every(self.size)

    def to_bounded(self, z: FloatArray) -> FloatArray:
        """Return z / |z|; NaN at the origin."""
        with np.errstate(invalid="ignore"):
            return z / _length(z)

    def to_unbounded(self, q: FloatArray) -> FloatArray:
        """Return a vector of the likeliest length in the direction of q."""
        inside = np.abs(np.square(q).sum(axis=1) - 1.0) < CLOSE
        return only_where(inside, q * np.sqrt(AWAY))

    def log_jacobian(self, z: FloatArray) -> FloatArray:
        """Return a log |z| - |z|^2 / 2, less the log of what it adds up to along a ray."""
        return _log_length(np.square(z).sum(axis=1), self.size)

    def log_jacobian_gradient(self, z: FloatArray) -> FloatArray:
        """Return (a / |z|^2 - 1) z."""
        return _by_length(np.square(z).sum(axis=1, keepdims=True)) * z

    def vjp(self, z: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return (g - q q^T g) / |z|."""
        q = self.to_bounded(z)
        along = np.einsum("nk,nk->n", q, gradient)
        with np.errstate(invalid="ignore"):
            return np.asarray((gradient - q * along[:, None]) / _length(z))


@attrs.frozen
class Circular:
    """Angles in (-pi, pi], of which both ends are one.

    Each is the direction of a vector in the plane, as of a :class:`UnitVector`. So chains cross the
    ends as they cross any other angle.
    """

    shape: tuple[int, ...] = ()
    name = "circular"
    ends = (-math.pi, math.pi)
    """Of each number, which are one."""
    meaning = "angles between -pi and pi"

    @property
    def _size(self) -> int:
        return int(np.prod(self.shape, dtype=int))

    @property
    def free(self) -> int:
        """Numbers in z: two for each angle."""
        return 2 * self._size

    @property
    def varies(self) -> BoolArray:
        """All numbers vary."""
        return every(self._size)

    def to_bounded(self, z: FloatArray) -> FloatArray:
        """Return atan2(y, x); z holds all x and then all y."""
        x, y = self._parts(z)
        return np.asarray(np.arctan2(y, x))

    def to_unbounded(self, q: FloatArray) -> FloatArray:
        """Return vectors of the likeliest length."""
        inside = np.asarray((np.abs(q) <= np.pi).all(axis=1))
        return only_where(inside, np.sqrt(AWAY) * np.concatenate([np.cos(q), np.sin(q)], axis=1))

    def log_jacobian(self, z: FloatArray) -> FloatArray:
        """Return the sum over vectors of the logs of their lengths' densities along a ray."""
        x, y = self._parts(z)
        return np.asarray(_log_length(np.square(x) + np.square(y), 2).sum(axis=1))

    def log_jacobian_gradient(self, z: FloatArray) -> FloatArray:
        """Return (a / |z|^2 - 1) z of each vector z."""
        x, y = self._parts(z)
        by_length = _by_length(np.square(x) + np.square(y))
        return np.concatenate([by_length * x, by_length * y], axis=1)

    def vjp(self, z: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return g (-y, x) / (x^2 + y^2)."""
        x, y = self._parts(z)
        with np.errstate(divide="ignore", invalid="ignore"):
            turn = gradient / (np.square(x) + np.square(y))
        return np.concatenate([-y * turn, x * turn], axis=1)

    def _parts(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        return z[:, : self._size], z[:, self._size :]


def _length(z: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.square(z).sum(axis=1, keepdims=True)))


def _log_length(squares: FloatArray, dim: int) -> FloatArray:
    """Return the log density of vectors with squared lengths (...), which is 1 along each ray."""
    half = 0.5 * (dim + AWAY)
    along_a_ray = (half - 1.0) * np.log(2.0) + math.lgamma(half)
    with np.errstate(divide="ignore"):
        return np.asarray(0.5 * AWAY * np.log(squares) - 0.5 * squares - along_a_ray)


def _by_length(squares: FloatArray) -> FloatArray:
    """Return what vectors are multiplied by for the gradient of :func:`_log_length`."""
    with np.errstate(divide="ignore"):
        return AWAY / squares - 1.0
