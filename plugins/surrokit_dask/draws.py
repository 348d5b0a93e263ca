"""Draws of rows by their bounds, fetched in batches ahead of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from surrokit.errors import NumericalError
from surrokit.types import FloatArray, IntArray
from surrokit_dask import tasks
from surrokit_dask.block import Columns
from surrokit_dask.partitions import Partitions, import_dask
from surrokit_dask.store import Store


class PartitionDraws:
    """Draw a partition in proportion to its bounds, and a row of it in proportion to its own.

    The second is done where the rows are, some thousand rows ahead, and what these rows hold
    comes along. A row that is drawn is the next one of its partition, and so depends on nothing
    that was decided before.

    Parameters
    ----------
    partitions
        The rows.
    bounds
        Delayed psi of each partition.
    store
        Keeps rows that come.
    ahead
        Rows that are drawn ahead of time.
    """

    def __init__(
        self, partitions: Partitions, bounds: Sequence[Any], store: Store, ahead: int
    ) -> None:
        dask = import_dask()
        self._partitions, self._store, self._ahead = partitions, store, ahead
        self._bounds = list(dask.persist(*bounds)) if partitions.persist else list(bounds)
        call = dask.delayed(tasks.total, pure=False)
        totals = np.array(dask.compute(*map(call, self._bounds)), dtype=np.float64)
        self.total = float(totals.sum())
        if not np.isfinite(self.total):
            raise NumericalError(
                f"bounds of rows must have a finite sum, got {self.total}; is one infinite or NaN?"
            )
        self._shares = totals / self.total if self.total else totals
        self._waiting: list[tuple[IntArray, FloatArray]] = [
            (np.zeros(0, dtype=np.int64), np.zeros(0)) for _ in totals
        ]

    def draw(self, n: int, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
        """Return n rows, each drawn with probability psi_i / total, and their psi."""
        ends = np.cumsum(self._shares)
        last = np.flatnonzero(self._shares)[-1]
        chosen = np.minimum(np.searchsorted(ends, rng.random(n) * ends[-1], side="right"), last)
        needed = np.bincount(chosen, minlength=len(ends))
        if any(len(rows) < k for (rows, _), k in zip(self._waiting, needed, strict=True)):
            self._refill(needed, rng)
        found, psi = np.empty(n, dtype=np.int64), np.empty(n)
        for k in np.unique(chosen):
            ours, (rows, bounds), count = chosen == k, self._waiting[k], needed[k]
            found[ours], psi[ours] = rows[:count], bounds[:count]
            self._waiting[k] = rows[count:], bounds[count:]
        return found, psi

    def _refill(self, needed: IntArray, rng: np.random.Generator) -> None:
        """Draw ahead in every partition: one pass for many decisions."""
        wanted = np.ceil(self._ahead * self._shares).astype(np.int64) + needed
        counts = [
            int(max(0, most - len(rows)))
            for most, (rows, _) in zip(wanted, self._waiting, strict=True)
        ]
        seeds = rng.integers(0, 2**63, len(counts))
        dask = import_dask()
        call = dask.delayed(tasks.draw, pure=False, traverse=False)
        asked = [
            (k, call(block, psi, count, int(seeds[k])))
            for k, (block, psi, count) in enumerate(
                zip(self._partitions.blocks, self._bounds, counts, strict=True)
            )
            if count
        ]
        numbers: list[IntArray] = []
        columns: list[Columns] = []
        for (k, _), drawn in zip(asked, dask.compute(*(each for _, each in asked)), strict=True):
            start = self._partitions.starts[k]
            rows, psi = self._waiting[k]
            self._waiting[k] = (
                np.concatenate([rows, drawn.rows + start]),
                np.concatenate([psi, drawn.psi]),
            )
            numbers.append(drawn.distinct + start)
            columns.append(drawn.columns)
        self._store.add(np.concatenate(numbers), Columns.joined(columns))
