"""The border of the part of space in which a network is believed."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.surrogate.whitening import Whitening
from surrokit.types import FloatArray, IntArray
from surrokit_networks.regression.training_rows import TrainingRows

LEAST_TRUST = 0.05
"""What a row must count to tell how far a network is believed."""

USUAL = 2.0
"""Beside the root of the dimension, a distance within which draws lie, however few rows there
are."""

OUTER = 0.7
"""Part of the radius beyond which rows tell how high the potential is at the border."""

BEGINS, ENDS = 1.0, 1.3
"""Parts of the radius between which the potential goes over from the network to the tail."""

TAIL = 3.0
"""Degrees of freedom of the tail."""


@attrs.frozen(kw_only=True, eq=False)
class Border:
    """The ellipsoid |z| <= radius, z whitened, about the rows that a network has learnt from.

    Beyond it a network says nothing: it may fall for ever, or into pits where no row is. There the
    potential is a tail of Student's t, height + (dim + TAIL) log(r / radius) with r = |z|, and on
    the way to it a mixture of both. So exp(-V) is a proper density, and paths come back.

    Parameters
    ----------
    whitening
        From raw to whitened positions.
    radius : float
        In whitened coordinates.
    height : float
        The potential at the border, in nats.
    """

    whitening: Whitening
    radius: float
    height: float

    @classmethod
    def about(cls, whitening: Whitening, rows: TrainingRows) -> Border:
        """Return the border about rows."""
        dim = rows.positions.shape[1]
        least = float(rows.values.min())
        usual = float(np.sqrt(dim)) + USUAL
        trusted = rows.trust >= LEAST_TRUST
        distances = np.linalg.norm(whitening.apply(rows.positions[trusted]), axis=1)
        radius = max(usual, float(distances.max(initial=0.0)))
        outer = rows.values[trusted][distances > OUTER * radius]
        # what is no higher than draws are tells nothing of a border
        above = max(float(np.median(outer - least)) if len(outer) else 0.0, 0.5 * usual**2)
        return cls(whitening=whitening, radius=radius, height=least + above)

    def widen(self, rows: TrainingRows) -> Border:
        """Return the border that holds more rows as well, if there are any beyond it."""
        if not len(rows):
            return self
        wider = Border.about(self.whitening, rows)
        return wider if wider.radius > self.radius else self

    def cross(self, positions: FloatArray) -> Beyond | None:
        """Return how far ``positions (n, dim)`` are beyond it; None where none is."""
        whitened = self.whitening.apply(positions)
        squares = np.einsum("nd,nd->n", whitened, whitened)
        rows = np.flatnonzero(squares > (BEGINS * self.radius) ** 2)
        if not len(rows):
            return None
        distances = np.sqrt(squares[rows])
        return Beyond(
            border=self, rows=rows, distances=distances, units=whitened[rows] / distances[:, None]
        )


@attrs.frozen(kw_only=True, eq=False)
class Beyond:
    """Positions near or beyond a border.

    Parameters
    ----------
    border
        The border.
    rows : ndarray of shape (k,)
        Which positions these are.
    distances : ndarray of shape (k,)
        r.
    units : ndarray of shape (k, dim)
        z / r.
    """

    border: Border
    rows: IntArray
    distances: FloatArray
    units: FloatArray

    def mix_values(self, values: FloatArray) -> FloatArray:
        """Return values (n,), from the network's."""
        values = values.copy()
        share, _ = self._share()
        inside = np.where(share < 1.0, values[self.rows], 0.0)
        values[self.rows] = (1.0 - share) * inside + share * self._tail()
        return values

    def mix_gradients(self, values: FloatArray, gradients: FloatArray) -> FloatArray:
        """Return gradients (n, dim), from the network's values (n,) and gradients."""
        gradients = gradients.copy()
        share, slope = self._share()
        within = share < 1.0
        inside = np.where(within, values[self.rows], 0.0)
        along = slope * (self._tail() - inside) + share * self._power / self.distances
        turned = self.border.whitening.pull(along[:, None] * self.units)
        own = np.where(within[:, None], gradients[self.rows], 0.0)
        gradients[self.rows] = (1.0 - share)[:, None] * own + turned
        return gradients

    @property
    def _power(self) -> float:
        return float(self.units.shape[1] + TAIL)

    def _tail(self) -> FloatArray:
        """Return the tail's potential, shape (k,)."""
        return self.border.height + self._power * np.log(self.distances / self.border.radius)

    def _share(self) -> tuple[FloatArray, FloatArray]:
        """Return the tail's share, and its derivative by r, each of shape (k,)."""
        width = (ENDS - BEGINS) * self.border.radius
        part = np.minimum((self.distances - BEGINS * self.border.radius) / width, 1.0)
        return part**2 * (3.0 - 2.0 * part), 6.0 * part * (1.0 - part) / width
