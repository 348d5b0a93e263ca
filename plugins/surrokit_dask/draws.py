"""Rows that were fetched from partitions, and draws of rows by their bounds, ahead of time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from surrokit.errors import NumericalError
from surrokit.types import FloatArray, IntArray
from surrokit_dask.partitions import Block, Columns, Partitions, join, select

MOST_ROWS = 200_000
"""Rows that are kept at most; when there are more, it begins anew."""


class Store:
    """Rows that were fetched from partitions, by their numbers.

    ``fetch`` gets rows that are not here: of row numbers, all different and sorted, what they hold.
    ``columns`` are those of all rows that are here, another object whenever there are more.
    """

    columns: Columns

    def __init__(self, fetch: Callable[[IntArray], Columns]) -> None:
        self._fetch = fetch
        self._numbers = np.zeros(0, dtype=np.int64)  # sorted

    def add(self, numbers: IntArray, columns: Columns) -> None:
        """Keep rows of these numbers, shape (m,); those that are here are not kept twice."""
        if 0 < len(self._numbers) <= MOST_ROWS - len(numbers):
            columns = join([self.columns, columns])
            numbers = np.concatenate([self._numbers, numbers])
        self._numbers, first = np.unique(numbers, return_index=True)
        self.columns = select(columns, first)

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
        import dask

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
        chosen = _places(self._shares, rng.random(n))
        needed = np.bincount(chosen, minlength=len(self._shares))
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
        import dask

        here = np.array([len(rows) for rows, _ in self._waiting])
        counts = np.ceil(self._ahead * self._shares).astype(np.int64) + needed - here
        seeds = rng.integers(0, 2**63, len(counts))
        call = dask.delayed(_draw, pure=False, traverse=False)
        lacking = np.flatnonzero(counts > 0).tolist()
        asked = [
            call(self._partitions.blocks[k], self._bounds[k], int(counts[k]), int(seeds[k]))
            for k in lacking
        ]
        fetched = []
        for k, (drawn, drawn_psi, distinct, columns) in zip(
            lacking, dask.compute(*asked), strict=True
        ):
            start, (rows, psi) = self._partitions.starts[k], self._waiting[k]
            self._waiting[k] = np.append(rows, drawn + start), np.append(psi, drawn_psi)
            fetched.append((distinct + start, columns))
        numbers, parts = zip(*fetched, strict=True)
        self._store.add(np.concatenate(numbers), join(parts))


def _draw(
    block: Block, psi: FloatArray, n: int, seed: int
) -> tuple[IntArray, FloatArray, IntArray, Columns]:
    """Return n rows of a partition, drawn in proportion to psi, and what distinct ones hold."""
    rows = _places(psi, np.random.default_rng(seed).random(n))
    distinct = np.unique(rows)
    return rows, psi[rows], distinct, select(block.columns, distinct)


def _places(shares: FloatArray, uniforms: FloatArray) -> IntArray:
    """Return places in proportion to shares: never one without any, nor one beyond the last."""
    ends = np.cumsum(shares)
    found: IntArray = np.searchsorted(ends, uniforms * ends[-1], side="right")
    return np.asarray(np.minimum(found, np.flatnonzero(shares)[-1]))
