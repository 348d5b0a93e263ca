"""The border of the region in which a network is used, and its potential beyond."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.surrogate.whitening import Whitening
from surrokit.types import FloatArray, IntArray
from surrokit_networks.training_rows import TrainingRows

LEAST_TRUST = 0.05
"""Weight that a row must have to widen the region in which a network is used."""

USUAL = 2.0
"""Beside the root of the dimension, a distance within which draws lie, however few rows there
are."""

OUTER = 0.7
"""Part of the radius beyond which rows show how high the potential is at the border."""

GIVE = 0.3
"""Part of the radius by which arguments of the network go beyond it at most."""

TAIL = 3.0
"""Degrees of freedom of the tail."""

_HIGHEST = 1e6  # nats above the border that are distinguished


@attrs.frozen(kw_only=True, eq=False)
class Border:
    """The ellipsoid |z| <= radius, z whitened, about the rows that a network has learnt from.

    Beyond it a network is not fitted: it may fall for ever, or into pits where no row is. There the
    potential is that of a point not far beyond the border in the same direction, or the height of
    the border where that is less, and it rises by a tail of Student's t. So exp(-V) is a proper
    density, paths come back, and where the target goes on, proposals go there.

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
        # the height of a border is above that of draws
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
        rows = np.flatnonzero(squares > self.radius**2)
        if not len(rows):
            return None
        distances = np.sqrt(squares[rows])
        return Beyond(
            border=self, rows=rows, distances=distances, units=whitened[rows] / distances[:, None]
        )


@attrs.frozen(kw_only=True, eq=False)
class Beyond:
    """Positions beyond a border.

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

    def pull_in(self, positions: FloatArray) -> FloatArray:
        """Return the positions (n, dim) at which the network is asked instead."""
        pulled = positions.copy()
        reached, _ = self._reached()
        pulled[self.rows] = self.border.whitening.undo(reached[:, None] * self.units)
        return pulled

    def raise_values(self, values: FloatArray) -> FloatArray:
        """Return values (n,), from the network's at the positions pulled in."""
        values = values.copy()
        lift, _ = self._lift(values[self.rows])
        values[self.rows] += self._share()[0] * lift + self._tail()[0]
        return values

    def turn_gradients(self, values: FloatArray, gradients: FloatArray) -> FloatArray:
        """Return gradients (n, dim), from the network's values and gradients there."""
        gradients = gradients.copy()
        (reached, slope), (share, growth) = self._reached(), self._share()
        lift, lowered = self._lift(values[self.rows])
        whitening = self.border.whitening
        own = gradients[self.rows] @ whitening.factor
        along = np.einsum("kd,kd->k", own, self.units)[:, None] * self.units
        own = slope[:, None] * along + (reached / self.distances)[:, None] * (own - along)
        outwards = growth * lift + self._tail()[1]
        turned = (1.0 - share * lowered)[:, None] * own + outwards[:, None] * self.units
        gradients[self.rows] = whitening.pull(turned)
        return gradients

    # Each of these returns a function of r and its derivative, or of the network's value.

    def _excess(self) -> tuple[FloatArray, float]:
        """Return how far beyond in units of GIVE, shape (k,), and the derivative."""
        give = GIVE * self.border.radius
        return (self.distances - self.border.radius) / give, 1.0 / give

    def _reached(self) -> tuple[FloatArray, FloatArray]:
        """Return how far out the network is asked."""
        excess, rate = self._excess()
        bounded = np.tanh(excess)
        return self.border.radius + bounded / rate, 1.0 - np.square(bounded)

    def _share(self) -> tuple[FloatArray, FloatArray]:
        """Return how much of what is missing to the border's height is added."""
        excess, rate = self._excess()
        bounded = np.tanh(excess)
        return np.square(bounded), 2.0 * rate * bounded * (1.0 - np.square(bounded))

    def _tail(self) -> tuple[FloatArray, FloatArray]:
        """Return by how much a tail rises."""
        excess, rate = self._excess()
        power, squares = self.units.shape[1] + TAIL, np.square(excess)
        return 0.5 * power * np.log1p(squares), power * rate * excess / (1.0 + squares)

    def _lift(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what is missing to the border's height, smoothly, and minus its derivative."""
        missing = np.maximum(self.border.height - values, -_HIGHEST)
        root = np.sqrt(np.square(missing) + 1.0)
        return 0.5 * (missing + root), 0.5 * (1.0 + missing / root)
