"""Directions in the plane and in space."""

from __future__ import annotations

import math

import attrs
import numpy as np

from surrokit.coordinates.constraints.constraint import CLOSE, every, only_where
from surrokit.types import BoolArray, FloatArray


@attrs.frozen
class UnitVector:
    """Vectors of ``size`` numbers and length 1.

    q = z / |z|, where |z| has the law of a standard normal vector's length, as in Stan's reference
    manual. Volumes are those of the surface.
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
        """Return a vector of usual length in the direction of q."""
        inside = np.abs(np.square(q).sum(axis=1) - 1.0) < CLOSE
        return only_where(inside, q * np.sqrt(self.size))

    def log_jacobian(self, z: FloatArray) -> FloatArray:
        """Return -|z|^2 / 2, less the log of what it adds up to along a ray."""
        half = 0.5 * self.size
        along_a_ray = (half - 1.0) * np.log(2.0) + math.lgamma(half)
        return np.asarray(-0.5 * np.square(z).sum(axis=1) - along_a_ray)

    def log_jacobian_gradient(self, z: FloatArray) -> FloatArray:
        """Return -z."""
        return -z

    def vjp(self, z: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return (g - q q^T g) / |z|."""
        q = self.to_bounded(z)
        along = np.einsum("nk,nk->n", q, gradient)
        with np.errstate(invalid="ignore"):
            return np.asarray((gradient - q * along[:, None]) / _length(z))


@attrs.frozen
class Circular:
    """Angles in (-pi, pi], of which both ends are one.

    Each is the direction of a vector in the plane, whose length has the law of a standard normal
    vector's length. So chains cross the ends as they cross any other angle.
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
        """Return vectors of usual length."""
        inside = np.asarray((np.abs(q) <= np.pi).all(axis=1))
        return only_where(inside, np.sqrt(2.0) * np.concatenate([np.cos(q), np.sin(q)], axis=1))

    def log_jacobian(self, z: FloatArray) -> FloatArray:
        """Return -|z|^2 / 2."""
        return np.asarray(-0.5 * np.square(z).sum(axis=1))

    def log_jacobian_gradient(self, z: FloatArray) -> FloatArray:
        """Return -z."""
        return -z

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
