"""The queue of points at which the target is to be evaluated."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.types import BoolArray, FloatArray

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
    covariance : ndarray of shape (dim, dim), optional
        That of the draws; it is believed once the target agrees with them.
    temperature, trusted
        T, where they are draws of V / T; and whether they are draws of V itself.
    """

    positions: FloatArray
    expected: FloatArray
    predicted: FloatArray
    covariance: FloatArray | None = None
    temperature: float = 1.0
    trusted: bool = False

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
        return len(self) >= JUDGES and not bool(np.isnan(self.predicted).any())

    def split(self, n: int) -> tuple[Queue, Queue]:
        """Return the first n points, and the others."""
        return self.take(slice(n)), self.take(slice(n, None))

    def refill(self, positions: FloatArray, expected: FloatArray) -> Queue:
        """Return one with other points, which are no draws of a surrogate."""
        unknown = np.full(len(positions), np.nan)
        return attrs.evolve(self, positions=positions, expected=expected, predicted=unknown)

    def take(self, rows: slice | BoolArray) -> Queue:
        """Return one with some of the points."""
        return attrs.evolve(
            self,
            positions=self.positions[rows],
            expected=self.expected[rows],
            predicted=self.predicted[rows],
        )
