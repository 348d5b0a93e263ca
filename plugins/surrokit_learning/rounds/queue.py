"""The queue of points at which the target is to be evaluated."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.potentials import Potential
from surrokit.surrogate.umbrella import Edges
from surrokit.types import BoolArray, FloatArray, IntArray
from surrokit_learning.region.surrogate_draws import SurrogateDraws

JUDGES = 5
"""Points that say something of a surrogate; the last round may have fewer."""


@attrs.frozen(kw_only=True, eq=False)
class Queue:
    """Points to be evaluated, and what they were drawn from.

    Parameters
    ----------
    positions, expected : ndarrays of shape (k, dim) and (k,)
        The points, and the potential that they are draws of.
    predicted : ndarray of shape (k,)
        The surrogate V there; NaN where they are no draws of a surrogate.
    is_outer : ndarray of shape (k,)
        Which are no draws of V, but lie about its mass.
    typical : float
        V that most of its draws do not exceed, where there are outer points.
    covariance : ndarray of shape (dim, dim), optional
        That of the draws; it is believed once the target agrees with them.
    temperature, trusted
        T, where they are draws of V / T; and whether they are draws of V itself.
    """

    positions: FloatArray
    expected: FloatArray
    predicted: FloatArray
    is_outer: BoolArray = attrs.field()
    typical: float = np.inf
    covariance: FloatArray | None = None
    temperature: float = 1.0
    trusted: bool = False

    @is_outer.default
    def _inner(self) -> BoolArray:
        return np.zeros(len(self.positions), dtype=bool)

    @classmethod
    def of(cls, draws: SurrogateDraws, surrogate: Potential, inner: IntArray) -> Queue:
        """Return draws of a surrogate, and the points about its mass where there are such.

        Parameters
        ----------
        draws
            The draws; of V, or of what is drawn from in its place.
        surrogate
            V.
        inner
            Rows of the draws.
        """
        positions, expected, outer = draws.positions[inner], draws.values[inner], draws.outer
        predicted = surrogate.value(positions)
        if outer is None:
            return cls(positions=positions, expected=expected, predicted=predicted)
        unlikely = np.full(len(outer), -np.inf)  # no chain is moved there
        return cls(
            positions=np.concatenate([outer.positions, positions]),
            expected=np.concatenate([unlikely, expected]),
            predicted=np.concatenate([outer.values, predicted]),
            is_outer=np.arange(len(outer) + len(positions)) < len(outer),
            typical=outer.typical,
        )

    @classmethod
    def empty(cls, dim: int) -> Queue:
        """Return one without points."""
        nothing = np.empty(0)
        return cls(positions=np.empty((0, dim)), expected=nothing, predicted=nothing)

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def judges(self) -> bool:
        """Whether the points are draws of a surrogate, and enough of them to say how good it is."""
        inner = len(self) - int(self.is_outer.sum())
        return inner >= JUDGES and not bool(np.isnan(self.predicted).any())

    @property
    def outskirts(self) -> Edges:
        """The outer points."""
        return Edges(
            positions=self.positions[self.is_outer],
            values=self.predicted[self.is_outer],
            typical=self.typical,
        )

    def split(self, n: int) -> tuple[Queue, Queue]:
        """Return the first n points, and the others."""
        return self.take(slice(n)), self.take(slice(n, None))

    def refill(self, positions: FloatArray, expected: FloatArray) -> Queue:
        """Return one with other points, which are no draws of a surrogate."""
        unknown, inner = np.full(len(positions), np.nan), np.zeros(len(positions), dtype=bool)
        return attrs.evolve(
            self, positions=positions, expected=expected, predicted=unknown, is_outer=inner
        )

    def take(self, rows: slice | BoolArray) -> Queue:
        """Return one with some of the points."""
        return attrs.evolve(
            self,
            positions=self.positions[rows],
            expected=self.expected[rows],
            predicted=self.predicted[rows],
            is_outer=self.is_outer[rows],
        )
