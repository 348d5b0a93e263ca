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
        """Return the border about rows; rows of little weight do not widen it."""
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
        return Beyond(self, positions, whitened, rows) if len(rows) else None


class Beyond:
    """Positions, some of them beyond a border.

    With x = (r - radius) / (GIVE radius), r = |z|, the network is asked at the distance
    radius (1 + GIVE tanh x), and its potential V becomes V + tanh^2 x lift(V) + tail(x).
    """

    def __init__(
        self, border: Border, positions: FloatArray, whitened: FloatArray, rows: IntArray
    ) -> None:
        self.border, self.rows = border, rows
        self._distances = np.linalg.norm(whitened[rows], axis=1)
        self._units = whitened[rows] / self._distances[:, None]
        self._rate = 1.0 / (GIVE * border.radius)
        self._excess = self._rate * (self._distances - border.radius)
        self._bent = np.tanh(self._excess)
        self._reached = border.radius + self._bent / self._rate
        self._power = len(border.whitening.mean) + TAIL
        self.pulled = positions.copy()
        """Where the network is asked instead, shape (n, dim)."""
        self.pulled[rows] = border.whitening.undo(self._reached[:, None] * self._units)

    def raise_values(self, values: FloatArray) -> FloatArray:
        """Return values (n,), from the network's at the positions pulled in."""
        values = values.copy()
        lift, _ = self._lift(values)
        tail = 0.5 * self._power * np.log1p(np.square(self._excess))
        values[self.rows] += np.square(self._bent) * lift + tail
        return values

    def turn_gradients(self, values: FloatArray, gradients: FloatArray) -> FloatArray:
        """Return gradients (n, dim), from the network's there and its values (n,)."""
        gradients, whitening, units = gradients.copy(), self.border.whitening, self._units
        share = np.square(self._bent)
        flatter = 1.0 - share  # derivative of where the network is asked
        lift, lowered = self._lift(values)
        own = gradients[self.rows] @ whitening.factor
        along = np.einsum("kd,kd->k", own, units)[:, None] * units
        own = flatter[:, None] * along + (self._reached / self._distances)[:, None] * (own - along)
        steeper = self._power * self._excess / (1.0 + np.square(self._excess))
        outwards = self._rate * (2.0 * self._bent * flatter * lift + steeper)
        turned = (1.0 - share * lowered)[:, None] * own + outwards[:, None] * units
        gradients[self.rows] = whitening.pull(turned)
        return gradients

    def _lift(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what is missing to the border's height, smoothly, and minus its derivative."""
        missing = self.border.height - values[self.rows]
        missing = np.maximum(missing, -1e6)  # more nats would overflow
        root = np.sqrt(np.square(missing) + 1.0)
        return 0.5 * (missing + root), 0.5 * (1.0 + missing / root)
