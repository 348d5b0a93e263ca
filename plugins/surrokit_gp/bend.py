"""Coordinates in which a curved mass is straight: some numbers less the square of another."""

from __future__ import annotations

from functools import cached_property
from typing import Self

import attrs
import numpy as np

from surrokit.coordinates.constraints import CoordinateMap
from surrokit.coordinates.transforms import Transform, from_line_of
from surrokit.surrogate.whitening import Whitening, cholesky_factor
from surrokit.types import BoolArray, FloatArray, Pair

CURVED, SPARSE = 0.3, 0.3
"""Part of the variance of one direction that the square of another explains, from which on draws
are straightened; and the least part of a direction that a coordinate has, as noise has small ones.
"""

_PASSES = 10  # of the search for both directions


@attrs.frozen(kw_only=True, eq=False)
class Bend:
    """The map r = q - shift ((direction . (q - centre))^2 - 1), of arrays of shape (dim,).

    The direction is orthogonal to the shift, so that the map keeps volumes, and has an inverse of
    the same form. With numbers ``between`` bounds, q are these, and positions are on the line.
    """

    centre: FloatArray
    direction: FloatArray
    shift: FloatArray
    between: CoordinateMap | None = None

    @classmethod
    def none(cls, dim: int) -> Self:
        """Return the map that changes nothing."""
        return cls(centre=np.zeros(dim), direction=np.zeros(dim), shift=np.zeros(dim))

    @classmethod
    def of(cls, draws: FloatArray) -> Self:
        """Return the map that straightens draws (n, dim), or the one that changes nothing.

        Of the whitened draws' third moments E[z_j z_k z_l] the directions u of the shift and v,
        orthogonal to it, make that of u . z and (v . z)^2 large, by turns.
        """
        dim = draws.shape[1]
        if dim == 1 or not (draws.std(axis=0) > 0.0).all():
            return cls.none(dim)
        centre = draws.mean(axis=0)
        factor = cholesky_factor(np.cov(draws, rowvar=False).reshape(dim, dim))
        z = np.linalg.solve(factor, (draws - centre).T).T
        moments = np.einsum("nj,nk,nl->jkl", z, z, z, optimize=True) / len(z)
        found, most = cls.none(dim), CURVED
        for along in np.eye(dim):
            for _ in range(_PASSES):
                values, vectors = np.linalg.eigh(_across(np.tensordot(along, moments, 1), along))
                v = vectors[:, int(np.argmax(np.abs(values)))]
                pull = moments @ v @ v
                pull -= (pull @ v) * v
                size = float(np.linalg.norm(pull))
                if size < 1e-6:
                    break
                along = pull / size
            v = _sparse(v)
            squares = np.square(z @ v)
            squares -= squares.mean()
            b = squares @ z / (squares @ squares)
            b = _sparse(b - (b @ v) * v)
            b -= (b @ v) * v
            explained = float(b @ b * np.square(squares).mean())
            if explained > most:
                direction = np.asarray(np.linalg.solve(factor.T, v), dtype=np.float64)
                found, most = cls(centre=centre, direction=direction, shift=factor @ b), explained
        return found

    @cached_property
    def changes_nothing(self) -> bool:
        """Whether r is q."""
        return not self.shift.any()

    def apply(self, positions: FloatArray) -> FloatArray:
        """Return r, shape (n, dim), at positions of shape (n, dim)."""
        if self.changes_nothing:
            return positions
        q = positions if self.between is None else self.between.to_bounded(positions)
        return q - self._squares(q) * self.shift

    def undo(self, straight: FloatArray) -> FloatArray:
        """Return the positions, shape (n, dim), whose r are ``straight (n, dim)``.

        They stop just inside of bounds.
        """
        q, bounds = self._unbent(straight), self._bounds
        if self.between is None or bounds is None:
            return q
        return self.between.to_unbounded(bounds.clip(q))

    def is_outside(self, straight: FloatArray) -> BoolArray:
        """Return which of r = ``straight (n, dim)`` are no positions, shape (n,)."""
        q, bounds = self._unbent(straight), self._bounds
        if bounds is None:
            return np.zeros(len(straight), dtype=bool)
        return np.asarray(((q <= bounds.lower) | (q >= bounds.upper)).any(axis=1))

    def volume(self, positions: FloatArray) -> Pair:
        """Return log |dr/dq|, shape (n,), at positions (n, dim), and its gradient there."""
        if self.between is None:
            return np.zeros(len(positions)), np.zeros(positions.shape)
        return self.between.volume(positions)

    def carry(self, positions: FloatArray, values: FloatArray) -> Pair:
        """Return r, shape (n, dim), and U there, by its ``values (n,)`` at positions (n, dim)."""
        return self.apply(positions), values + self.volume(positions)[0]

    def pull(self, positions: FloatArray, slopes: FloatArray) -> FloatArray:
        """Return derivatives by positions (n, dim), from derivatives by r (n, dim)."""
        if self.changes_nothing:
            return slopes
        q = positions if self.between is None else self.between.to_bounded(positions)
        along = (q - self.centre) @ self.direction * (slopes @ self.shift)
        slopes = slopes - 2.0 * along[:, None] * self.direction
        return slopes if self.between is None else self.between.vjp(positions, slopes)

    def in_sds(self, whitening: Whitening) -> float:
        """Return by how many standard deviations of normal r one moves along the direction bends.

        Those of r are as a ``whitening`` says.
        """
        along = float(np.square(whitening.factor.T @ self.direction).sum())
        return along * float(np.linalg.norm(np.linalg.solve(whitening.factor, self.shift)))

    def covariance(self, whitening: Whitening) -> FloatArray:
        """Return the covariance (dim, dim) of positions whose r are normal, as a whitening says."""
        if self.between is not None:
            normal = np.random.default_rng(0).standard_normal((1000, len(self.centre)))
            return np.cov(self.undo(whitening.undo(normal)), rowvar=False)
        spread = whitening.factor @ whitening.factor.T
        away = float((whitening.mean - self.centre) @ self.direction)
        along = spread @ self.direction
        square = float(along @ self.direction)
        both = 2.0 * away * np.outer(along, self.shift)
        own = 2.0 * square**2 + 4.0 * square * away**2
        return np.asarray(spread + both + both.T + own * np.outer(self.shift, self.shift))

    @property
    def _bounds(self) -> Transform | None:
        found = None if self.between is None else from_line_of(self.between)
        assert found is None or isinstance(found, Transform)
        return found

    def _unbent(self, straight: FloatArray) -> FloatArray:
        return straight + self._squares(straight) * self.shift

    def _squares(self, positions: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            squares = np.square((positions - self.centre) @ self.direction) - 1.0
        return np.asarray(squares[:, None])


def _sparse(vector: FloatArray) -> FloatArray:
    """Return a vector of the same length without its small entries."""
    length = float(np.linalg.norm(vector))
    kept = np.where(np.abs(vector) < SPARSE * length, 0.0, vector)
    return np.asarray(kept * (length / max(float(np.linalg.norm(kept)), 1e-300)))


def _across(matrix: FloatArray, along: FloatArray) -> FloatArray:
    """Return a symmetric matrix in directions orthogonal to one of length 1."""
    projection = np.eye(len(along)) - np.outer(along, along)
    return np.asarray(projection @ matrix @ projection)
