"""How low a network is believed to be, by how far out."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.types import FloatArray, IntArray

PART = 0.9
"""Part of the height of rows at some distance that a network keeps there at least."""

SLACK = 1.0
"""Nats by which it may be lower still: the lowest point at a distance need not be a row."""

BLEND = 1.0
"""Nats above and below the floor within which one passes smoothly into the other."""


@attrs.frozen(kw_only=True, eq=False)
class Floor:
    """The lowest potential at each distance from the middle, as rows foretell it.

    Where a few rows lie far out, the ellipsoid that holds them all is empty for the most part, and
    in its corners a network may fall into pits. Draws of V then go there, and there alone. But rows
    come from where the potential is low. So V is nowhere believed to be much lower than rows are at
    that distance: than the convex hull, from below, of their values over their distances. Nor need
    it be higher than a normal density would have it, as rows in between may be missing.

    Parameters
    ----------
    distances : ndarray of shape (k,)
        In whitened coordinates: corners of the hull, growing from zero.
    values : ndarray of shape (k,)
        The hull there, in nats; the first is the least of all.
    """

    distances: FloatArray
    values: FloatArray
    heights: FloatArray = attrs.field(init=False, repr=False)

    @heights.default
    def _below_hull(self) -> FloatArray:
        return np.asarray(PART * self.values + (1.0 - PART) * self.values[0] - SLACK)

    @classmethod
    def under(cls, distances: FloatArray, values: FloatArray) -> Floor:
        """Return the floor under rows with values at these distances, shapes (n,), n >= 1."""
        order = np.lexsort((-values, distances))  # the lowest of one distance comes last
        corners = [(0.0, float(values.min()))]
        for corner in zip(distances[order].tolist(), values[order].tolist(), strict=True):
            while len(corners) > 1 and _slope(corners[-2], corner) <= _slope(*corners[-2:]):
                corners.pop()
            if corner[0] > 0.0:
                corners.append(corner)
        at, hull = np.array(corners).T
        return cls(distances=at, values=hull)

    def at(self, distances: FloatArray) -> FloatArray:
        """Return its height, shape (n,); beyond the last row it rises no more than to its value."""
        return np.minimum(self._hull(distances), self._normal(distances))

    def slopes(self, distances: FloatArray) -> FloatArray:
        """Return its derivatives by distance, shape (n,)."""
        steps = np.diff(self.heights) / np.diff(self.distances)
        pieces = np.searchsorted(self.distances, distances, side="right") - 1
        lower = self._hull(distances) < self._normal(distances)
        return np.where(lower, np.append(steps, 0.0)[pieces], PART * distances)

    def _hull(self, distances: FloatArray) -> FloatArray:
        return np.asarray(np.interp(distances, self.distances, self.heights))

    def _normal(self, distances: FloatArray) -> FloatArray:
        return np.asarray(self.heights[0] + 0.5 * PART * np.square(distances))

    def lift(self, distances: FloatArray, values: FloatArray) -> Lift | None:
        """Return by how much values (n,) are raised; None where none is."""
        missing = self.at(distances)
        missing -= values
        rows = np.flatnonzero(missing > -BLEND)
        if not len(rows):
            return None
        missing = missing[rows] / BLEND
        part = np.minimum(0.5 * (missing + 1.0), 1.0)
        by = BLEND * np.where(part < 1.0, np.square(part), missing)
        return Lift(rows=rows, by=by, part=part, slopes=part * self.slopes(distances[rows]))


@attrs.frozen(kw_only=True, eq=False)
class Lift:
    """Values near a floor, and how it raises them.

    Parameters
    ----------
    rows : ndarray of int, shape (k,)
        Which values these are.
    by : ndarray of shape (k,)
        By how much they are raised.
    part : ndarray of shape (k,)
        Part of their gradients that is lost.
    slopes : ndarray of shape (k,)
        What they gain of slope by distance instead.
    """

    rows: IntArray
    by: FloatArray
    part: FloatArray
    slopes: FloatArray


def _slope(one: tuple[float, float], other: tuple[float, float]) -> float:
    return (other[1] - one[1]) / (other[0] - one[0])
