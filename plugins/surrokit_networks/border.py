"""The border of the region in which a network is used, and its potential beyond."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.surrogate.whitening import Whitening
from surrokit.types import FloatArray, IntArray
from surrokit_networks.training_rows import TrainingRows

GIVE = 0.3
"""Part of the radius by which arguments of the network go beyond it at most."""

TAIL = 3.0
"""Degrees of freedom of the tail."""


@attrs.frozen(kw_only=True, eq=False)
class Border:
    """The ellipsoid |z| <= radius, z whitened, about the rows that a network has learnt from.

    Beyond it a network is not fitted: it may fall for ever, or into pits where no row is. There the
    potential is that of a point not far beyond the border in the same direction, or the height of
    the border where that is less, and it rises by a tail of Student's t. So exp(-V) is a proper
    density, paths come back, and where the target goes on, proposals go there.

    Parameters
    ----------
    height
        The potential at the border, in nats.
    """

    whitening: Whitening
    radius: float
    height: float

    @classmethod
    def about(cls, whitening: Whitening, rows: TrainingRows) -> Border:
        """Return the border about rows, of which those of little weight do not widen it."""
        dim = rows.positions.shape[1]
        least = float(rows.values.min())
        usual = float(np.sqrt(dim)) + 2.0  # draws lie within this distance, however few rows
        trusted = rows.trust >= 0.05
        distances = np.linalg.norm(whitening.apply(rows.positions[trusted]), axis=1)
        radius = max(usual, float(distances.max(initial=0.0)))
        outer = rows.values[trusted][distances > 0.7 * radius]
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
        units = whitened[rows] / distances[:, None]
        return Beyond(border=self, rows=rows, distances=distances, units=units)


@attrs.frozen(kw_only=True, eq=False)
class Beyond:
    """Positions beyond a border: which these are (k,), r = |z| (k,), and z / r (k, dim)."""

    border: Border
    rows: IntArray
    distances: FloatArray
    units: FloatArray

    @property
    def _excess(self) -> FloatArray:
        """How far beyond, in units of GIVE of the radius."""
        radius = self.border.radius
        return np.asarray((self.distances - radius) / (GIVE * radius))

    @property
    def _rate(self) -> float:
        """Derivative of the excess."""
        return 1.0 / (GIVE * self.border.radius)

    @property
    def _reached(self) -> FloatArray:
        """How far out the network is asked."""
        return np.asarray(self.border.radius + np.tanh(self._excess) / self._rate)

    @property
    def _power(self) -> float:
        """Of the tail that potentials rise by, power / 2 log(1 + excess^2)."""
        return len(self.border.whitening.mean) + TAIL

    def pull_in(self, positions: FloatArray) -> FloatArray:
        """Return the positions (n, dim) at which the network is asked instead."""
        pulled = positions.copy()
        pulled[self.rows] = self.border.whitening.undo(self._reached[:, None] * self.units)
        return pulled

    def raise_values(self, values: FloatArray) -> FloatArray:
        """Return values (n,), from the network's at the positions pulled in."""
        values, excess = values.copy(), self._excess
        lift, _ = self._lift(values[self.rows])
        tail = 0.5 * self._power * np.log1p(np.square(excess))
        values[self.rows] += np.square(np.tanh(excess)) * lift + tail
        return values

    def turn_gradients(self, values: FloatArray, gradients: FloatArray) -> FloatArray:
        """Return gradients (n, dim), from the network's there and its values of the rows (k,)."""
        gradients, excess, whitening = gradients.copy(), self._excess, self.border.whitening
        bent, rate = np.tanh(excess), self._rate
        share = np.square(bent)
        flatter = 1.0 - share  # derivative of where the network is asked
        lift, lowered = self._lift(values)
        own = gradients[self.rows] @ whitening.factor
        along = np.einsum("kd,kd->k", own, self.units)[:, None] * self.units
        own = flatter[:, None] * along + (self._reached / self.distances)[:, None] * (own - along)
        steeper = self._power * rate * excess / (1.0 + np.square(excess))
        outwards = 2.0 * rate * bent * flatter * lift + steeper
        turned = (1.0 - share * lowered)[:, None] * own + outwards[:, None] * self.units
        gradients[self.rows] = whitening.pull(turned)
        return gradients

    def _lift(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what is missing to the border's height, smoothly, and minus its derivative."""
        missing = np.maximum(self.border.height - values, -1e6)  # more nats would overflow
        root = np.sqrt(np.square(missing) + 1.0)
        return 0.5 * (missing + root), 0.5 * (1.0 + missing / root)
