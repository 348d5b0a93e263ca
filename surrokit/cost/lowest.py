"""The lowest evaluations of a target, whoever asked for them."""

from __future__ import annotations

import numpy as np

from surrokit.contracts.learner import Evaluations
from surrokit.types import FloatArray

MOST = 200
"""Evaluations that are kept at least, where there are as many."""


class Lowest:
    """Keeps the evaluations of least potential, in bounded memory.

    Parameters
    ----------
    dim
        Numbers in a position.
    """

    def __init__(self, dim: int) -> None:
        self._dim = dim
        self._blocks: list[tuple[FloatArray, FloatArray, FloatArray | None]] = []
        self._n = 0

    def add(
        self, positions: FloatArray, values: FloatArray, gradients: FloatArray | None = None
    ) -> None:
        """Take in a batch: positions (n, dim), U (n,), and perhaps its gradients (n, dim)."""
        kept = None if gradients is None else np.array(gradients)
        self._blocks.append((np.array(positions), np.array(values), kept))
        self._n += len(values)
        if self._n >= 2 * MOST:
            rows = self.evaluations()
            self._blocks = [(rows.positions, rows.values, rows.gradients)]
            self._n = len(rows)

    def evaluations(self) -> Evaluations:
        """Return those where U is finite, in order of U."""
        blocks = [
            Evaluations(positions=positions, values=values, gradients=gradients)
            for positions, values, gradients in self._blocks
        ]
        rows = Evaluations.join(blocks, self._dim)
        finite = np.flatnonzero(np.isfinite(rows.values))
        return rows.take(finite[np.argsort(rows.values[finite], kind="stable")][:MOST])
