"""Tail probes and umbrella sampling: where the target goes on though the surrogate ends."""

from __future__ import annotations

import math

import attrs
import numpy as np
from scipy.spatial import cKDTree
from scipy.special import expit

from surrokit.capabilities import GRADIENT
from surrokit.kernel.jumps import Jumps, jumps_of, modes_of
from surrokit.potentials import Potential, straight_of, with_gradient
from surrokit.surrogate.whitening import Whitening
from surrokit.types import Capabilities, FloatArray


@attrs.frozen(kw_only=True, eq=False)
class Edges:
    """Positions (n, dim) a step out of the surrogate's mass, where V turns up most; V there (n,).

    The weights of draws cannot tell what a surrogate lacks where it has no draws at all. Where V
    has seen no more of the target it turns up, and steeper than a parabola through its values on
    the way out. Evaluated, such positions tell whether the target ends there, and teach that it
    goes on.
    """

    positions: FloatArray
    values: FloatArray
    typical: float  # V that most draws do not exceed; beyond, little is at stake

    @classmethod
    def of(
        cls,
        draws: FloatArray,
        values: FloatArray,
        surrogate: Potential,
        n: int,
        rng: np.random.Generator,
        inside: float = 0.97,
    ) -> Edges:
        """Return the n sharpest edges of a surrogate's mass, or fewer where there are fewer.

        They are looked for among 3000 of its ``draws (m, dim)``, V there being ``values (m,)``,
        half a standard deviation out of the mass, in coordinates in which that is straight: a step
        out of a thin curved one leads nowhere. None is close to another, and modes have as many
        each at most. By the way out V is to be
        at most what it is at a part of draws, ``inside``.
        """
        straight = straight_of(surrogate)
        typical = float(np.quantile(values, 0.97))
        most = float(np.quantile(values + straight.volume(draws), inside))
        modes, draws, surrogate = modes_of(surrogate), straight.apply(draws), straight.potential
        # a standard deviation of all modes would lead beyond any of them
        spread = draws if modes is None else modes.away(draws)
        whitening = Whitening.of(spread, np.ones(len(draws)))
        whitened = whitening.apply(draws[rng.permutation(len(draws))[:3000]])
        # half a unit from the mean of each position's 20 neighbours to it
        _, near = cKDTree(whitened).query(whitened, k=min(20, len(whitened)))
        apart = whitened - whitened[np.reshape(near, (len(whitened), -1))].mean(axis=1)
        norms = np.linalg.norm(apart, axis=1, keepdims=True)
        steps = 0.5 * apart / np.maximum(norms, np.finfo(float).tiny)
        rays = [whitening.undo(whitened + k * steps) for k in (1, 0, -1, -2)]
        value, *before = (surrogate.value(each) for each in rays)
        predicted = 3.0 * before[0] - 3.0 * before[1] + before[2]
        at_most = (predicted <= most) & (value < np.inf)
        excess = np.where(at_most, value - predicted, -np.inf)
        excess, out = np.nan_to_num(excess, nan=-np.inf), whitened + steps
        at = np.zeros(len(out), int) if modes is None else modes.nearest(whitening.undo(whitened))
        most_each = n if modes is None else -(-n // len(modes))
        rows: list[int] = []
        for row in np.argsort(-excess):
            if len(rows) == n or excess[row] == -np.inf:
                break
            is_apart = (np.linalg.norm(out[rows] - out[row], axis=1) >= 0.75).all()
            if is_apart and np.sum(at[rows] == at[row]) < most_each:
                rows.append(int(row))
        positions = straight.undo(rays[0][rows])
        values = value[rows] - straight.volume(positions)
        return cls(positions=positions, values=values, typical=typical)

    def __len__(self) -> int:
        return len(self.positions)

    def missed(self, exact: FloatArray, offset: float, too_high: float = 2.0) -> int:
        """Return at how many edges the target goes on where the surrogate ends.

        There V is so many nats above U, ``exact (n,)`` with an offset, where the target is as
        likely as at typical draws.
        """
        matched = exact + offset
        return int(((matched <= self.typical) & (self.values - matched > too_high)).sum())


RAREST = 1e-5
"""Tail probability of the surrogate beyond which draws are no likelier still."""


@attrs.frozen(kw_only=True, eq=False)
class Umbrella:
    """W = V - log c(V): draws lie evenly over the logarithm of V's tail probability.

    Where a surrogate is too high, it has no draws, and none would be evaluated there: weights would
    look good while a part of the target is missing. Draws of W reach where draws of V are as rare
    as :data:`RAREST`, and c is how much likelier they are there (umbrella sampling: Torrie and
    Valleau 1977, doi:10.1016/0021-9991(77)90121-8).

    With p(v) the part of the surrogate's draws where V is above v, c is 1 / (p + p_0) with the
    rarest p_0, over ``scale``, the mean of that under V. As p serves 1 / (1 + exp(slope (v -
    level))).
    """

    potential: Potential
    level: float
    slope: float
    scale: float = math.log1p(1.0 / RAREST)

    @classmethod
    def about(cls, potential: Potential, values: FloatArray) -> Umbrella:
        """Return the umbrella over a surrogate V, by its values (n,) at draws of its own.

        The fall of the log tail probability is that between 0.1 and 0.01, but between 0.02 and 1
        per nat, that of many a far tail: with more W could fall.
        """
        seen = (0.1, 0.01)
        upper, lower = np.quantile(values, [1.0 - part for part in seen])
        odds = [math.log(1.0 / part - 1.0) for part in seen]
        apart = max(float(lower - upper), odds[1] - odds[0])
        slope = max((odds[1] - odds[0]) / apart, 0.02)
        return cls(potential=potential, level=float(upper) - odds[0] / slope, slope=slope)

    def normalise(self, values: FloatArray) -> Umbrella:
        """Return the umbrella with its scale, by the values V at draws of W."""
        # under W the mean of 1 / c is one, and 1 / c is at most scale: that is told well
        return attrs.evolve(self, scale=self.scale / float(np.mean(1.0 / self.chances(values))))

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.potential.dim

    @property
    def capabilities(self) -> Capabilities:
        """A gradient, if V has one."""
        return self.potential.capabilities & {GRADIENT}

    @property
    def jumps(self) -> Jumps | None:
        """Those of V, if it has several modes."""
        return jumps_of(self.potential)

    def chances(self, values: FloatArray) -> FloatArray:
        """Return c, by values V of any shape: how much likelier draws are here than under V."""
        return np.asarray(1.0 / (self._tail(values) + RAREST) / self.scale)

    def value(self, positions: FloatArray) -> FloatArray:
        """Return W, shape (n,), at positions (n, dim)."""
        values = self.potential.value(positions)
        return np.asarray(values - np.log(self.chances(values)))

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return W, shape (n,), and its gradient, shape (n, dim), at positions (n, dim)."""
        values, gradients = with_gradient(self.potential).value_and_gradient(positions)
        tail = self._tail(values)
        rise = self.slope * tail * (1.0 - tail) / (tail + RAREST)
        slopes = (1.0 - rise)[:, None] * gradients
        return np.asarray(values - np.log(self.chances(values))), slopes

    def _tail(self, values: FloatArray) -> FloatArray:
        """Return about which part of the surrogate's draws lies above values of V."""
        return np.asarray(expit(self.slope * (self.level - values)))
