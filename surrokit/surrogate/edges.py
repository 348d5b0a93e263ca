"""Where a surrogate claims that the target ends though its own shape says that it goes on."""

from __future__ import annotations

import attrs
import numpy as np
from scipy.spatial import cKDTree

from surrokit.contracts.potential import Potential
from surrokit.surrogate.whitening import Whitening
from surrokit.types import FloatArray

CANDIDATES = 3000
"""Draws among which edges are looked for."""

NEIGHBOURS = 20
"""Draws about a candidate, whose mean tells which way is out."""

STEP = 0.5
"""How far out of the mass an edge is looked at, in standard deviations."""

TYPICAL = 0.9
"""Part of the draws, by V, that are typical; where fewer are, little is at stake."""

APART = 0.75
"""Distance of edges from each other, in standard deviations."""

BEYOND, TELLING = 6.0, 4
"""Nats above typical draws up to which an error of V counts, as hardly any mass lies higher; and
positions so low that it takes to tell how large errors are."""

TOO_HIGH = 2.0
"""Nats by which V may be above U where the target is as likely as at typical draws."""


@attrs.frozen(kw_only=True, eq=False)
class Edges:
    """Positions a step out of the surrogate's mass, where V turns up most.

    The weights of draws cannot tell what a surrogate lacks where it has no draws at all. Where V
    has seen no more of the target it turns up, and steeper than a parabola through its values on
    the way out. Paid for, such positions tell whether the target ends there, and teach that it goes
    on.

    Parameters
    ----------
    positions : ndarray of shape (n, dim)
        In the sampling coordinates.
    values : ndarray of shape (n,)
        V there.
    typical : float
        V that :data:`TYPICAL` of the draws do not exceed.
    """

    positions: FloatArray
    values: FloatArray
    typical: float

    @classmethod
    def of(
        cls,
        draws: FloatArray,
        values: FloatArray,
        surrogate: Potential,
        n: int,
        rng: np.random.Generator,
    ) -> Edges:
        """Return the n sharpest edges of a surrogate's mass, or fewer where there are fewer.

        Parameters
        ----------
        draws : ndarray of shape (m, dim)
            Of the surrogate.
        values : ndarray of shape (m,)
            V there.
        surrogate
            V.
        n
            How many.
        rng
            Generator.
        """
        typical = float(np.quantile(values, TYPICAL))
        whitening = Whitening.of(draws, np.ones(len(draws)))
        whitened = whitening.apply(draws[rng.permutation(len(draws))[:CANDIDATES]])
        steps = STEP * _outwards(whitened)
        rays = [whitening.undo(whitened + k * steps) for k in (1, 0, -1, -2)]
        value, *before = (surrogate.value(each) for each in rays)
        foretold = 3.0 * before[0] - 3.0 * before[1] + before[2]
        excess = np.where(foretold <= typical, value - foretold, -np.inf)
        rows = _spread(whitened + steps, np.nan_to_num(excess, nan=-np.inf), n)
        return cls(positions=rays[0][rows], values=value[rows], typical=typical)

    def __len__(self) -> int:
        return len(self.positions)

    def missed(self, exact: FloatArray, offset: float, too_high: float = TOO_HIGH) -> int:
        """Return at how many edges the target goes on where the surrogate ends.

        Parameters
        ----------
        exact : ndarray of shape (n,)
            U there.
        offset
            V - U at draws.
        too_high
            Nats by which V may be above U where the target is as likely as at typical draws.
        """
        matched = exact + offset
        return int(((matched <= self.typical) & (self.values - matched > too_high)).sum())

    def off(self, exact: FloatArray, offset: float) -> float:
        """Return by how much V and U differ at most where either is nearly typical, in nats.

        Infinite where that is so at too few positions to tell.

        Parameters
        ----------
        exact : ndarray of shape (n,)
            U there.
        offset
            V - U at draws.
        """
        matched = exact + offset
        near = np.minimum(self.values, matched) <= self.typical + BEYOND
        errors = np.abs(self.values - matched)[near]
        return float(errors.max()) if len(errors) >= TELLING else np.inf


def _outwards(whitened: FloatArray) -> FloatArray:
    """Return units that point from the mean of each position's neighbours to it."""
    count = min(NEIGHBOURS, len(whitened))
    _, near = cKDTree(whitened).query(whitened, k=count)
    apart = whitened - whitened[np.reshape(near, (len(whitened), -1))].mean(axis=1)
    norms = np.linalg.norm(apart, axis=1, keepdims=True)
    return np.asarray(apart / np.maximum(norms, np.finfo(float).tiny))


def _spread(positions: FloatArray, scores: FloatArray, n: int) -> list[int]:
    """Return the n positions of highest scores of which none is close to another, or fewer."""
    found: list[int] = []
    for row in np.argsort(-scores):
        if len(found) == n or scores[row] == -np.inf:
            break
        apart = np.linalg.norm(positions[found] - positions[row], axis=1)
        if (apart >= APART).all():
            found.append(int(row))
    return found
