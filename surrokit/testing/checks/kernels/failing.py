"""Targets that fail at some positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from surrokit.potentials import Potential
from surrokit.testing.targets.counting import CountingPotential
from surrokit.testing.targets.summed import CubicExpansion
from surrokit.types import FloatArray, IntArray


class NaNNear(CountingPotential):
    """A target whose value is NaN at one position."""

    def __init__(self, inner: Potential, position: FloatArray) -> None:
        super().__init__(inner)
        self.position = position.copy()

    def evaluate(self, method: str, function: Any, positions: FloatArray) -> Any:
        """Return the result, with NaN at the position."""
        result = function(positions)
        if method == "value":
            return np.where((positions == self.position).all(axis=1), np.nan, result)
        return result


class FailingRows(CountingPotential):
    """A summed target that fails in its expansion: ``inf`` outside a circle, NaN at a position."""

    def __init__(self, inner: Potential, position: FloatArray, radius: float) -> None:
        super().__init__(inner)
        self.position, self.radius = position.copy(), radius

    def expand(self, centre: FloatArray) -> Any:
        """Return an expansion that fails."""
        return _FailingExpansion(self.inner.expand(centre), self.position, self.radius)  # type: ignore[attr-defined]


class _FailingExpansion:
    def __init__(self, inner: CubicExpansion, position: FloatArray, radius: float) -> None:
        self.inner, self.position, self.radius = inner, position, radius
        self.centre = inner.centre

    def value(self, positions: FloatArray) -> FloatArray:
        inside = np.square(positions).sum(axis=1) < self.radius**2
        return np.where(inside, self.inner.value(positions), np.inf)

    def changes(
        self, before: FloatArray, after: FloatArray, rows: IntArray, owners: IntArray
    ) -> FloatArray:
        failed = (after == self.position).all(axis=1)[owners]
        return np.where(failed, np.nan, self.inner.changes(before, after, rows, owners))

    def increases(self, before: FloatArray, after: FloatArray) -> FloatArray:
        failed = (after == self.position).all(axis=1)
        return np.where(failed, np.nan, self.inner.increases(before, after))
