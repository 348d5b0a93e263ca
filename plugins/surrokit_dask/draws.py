"""Draws of rows by their bounds, fetched in batches ahead of time, and rows that were fetched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from surrokit.errors import NumericalError
from surrokit.types import FloatArray, IntArray
from surrokit_dask.partitions import Block, Columns, Partitions, import_dask

MOST_ROWS = 200_000
"""Rows that are kept at most; when there are more, it begins anew."""


class Store:
    """Rows that were fetched from partitions, by their numbers.

    ``fetch`` gets rows that are not here: of row numbers, all different and sorted, what they hold.
    ``version`` is another number whenever rows are added.
    """

    def __init__(self, fetch: Callable[[IntArray], Columns]) -> None:
        self._fetch = fetch
        self._numbers = np.zeros(0, dtype=np.int64)  # sorted
        self._columns: Columns | None = None
        self.version = 0

    @property
    def columns(self) -> Columns:
        """All rows that are here."""
        assert self._columns is not None
        return self._columns

    def add(self, numbers: IntArray, columns: Columns) -> None:
        """Keep rows of these numbers, shape (m,); those that are here are not kept twice."""
        if self._columns is not None and len(self._numbers) + len(numbers) <= MOST_ROWS:
            columns = Columns.joined([self._columns, columns])
            numbers = np.concatenate([self._numbers, numbers])
        self._numbers, first = np.unique(numbers, return_index=True)
        self._columns = columns.select(first)
        self.version += 1

    def places(self, rows: IntArray) -> IntArray:
        """Return where rows are in :attr:`columns`, shape (m,); fetch those that are not here."""
        wanted = np.setdiff1d(rows, self._numbers)
        if len(wanted):
            if len(self._numbers) + len(wanted) > MOST_ROWS:
                wanted = np.unique(rows)  # it begins anew
            self.add(wanted, self._fetch(wanted))
        return np.searchsorted(self._numbers, rows)


class PartitionDraws:
    """Draw a partition in proportion to its bounds, and a row of it in proportion to its own.

    The second is done where the rows are, some thousand rows ahead, and what these rows hold
    comes along into the store. A row that is drawn is the next one of its partition, and so depends
    on nothing that was decided before. ``bounds`` are delayed psi of each partition.
    """

    def __init__(
        self, partitions: Partitions, bounds: Sequence[Any], store: Store, ahead: int
    ) -> None:
        dask = import_dask()
        self._partitions, self._store, self._ahead = partitions, store, ahead
        self._bounds = list(dask.persist(*bounds)) if partitions.persist else list(bounds)
        call = dask.delayed(np.sum, pure=False)
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
        here = np.array([len(rows) for rows, _ in self._waiting])
        counts = np.ceil(self._ahead * self._shares).astype(np.int64) + needed - here
        seeds = rng.integers(0, 2**63, len(counts))
        dask = import_dask()
        call = dask.delayed(_draw, pure=False, traverse=False)
        lacking = np.flatnonzero(counts > 0).tolist()
        asked = [
            call(self._partitions.blocks[k], self._bounds[k], int(counts[k]), int(seeds[k]))
            for k in lacking
        ]
        fetched: list[tuple[IntArray, Columns]] = []
        for k, (drawn, drawn_psi, distinct, columns) in zip(
            lacking, dask.compute(*asked), strict=True
        ):
            start, (rows, psi) = self._partitions.starts[k], self._waiting[k]
            self._waiting[k] = np.append(rows, drawn + start), np.append(psi, drawn_psi)
            fetched.append((distinct + start, columns))
        numbers, parts = zip(*fetched, strict=True)
        self._store.add(np.concatenate(numbers), Columns.joined(parts))


def _draw(
    block: Block, psi: FloatArray, n: int, seed: int
) -> tuple[IntArray, FloatArray, IntArray, Columns]:
    """Return n rows of a partition, drawn in proportion to psi, and what distinct ones hold."""
    ends = np.cumsum(psi)
    places = np.random.default_rng(seed).random(n) * ends[-1]
    # never a row without a bound, nor one beyond the last
    rows = np.minimum(np.searchsorted(ends, places, side="right"), np.flatnonzero(psi)[-1])
    distinct = np.unique(rows)
    return rows, psi[rows], distinct, block.columns.select(distinct)
