"""Partitions of a Dask collection as sums over their rows, passes over them, and rows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import attrs
import numpy as np

from surrokit.arguments import load_library, numbers
from surrokit.errors import ConfigurationError, NumericalError, ShapeError
from surrokit.potentials import SummedPotential
from surrokit.types import FloatArray, IntArray

Columns: TypeAlias = dict[str, FloatArray]
"""What rows hold, as :func:`surrokit.rows_potential` takes it: ``data`` (n, dim), ``response`` (n,)
and what else there is."""

Form: TypeAlias = partial[SummedPotential]
"""From columns to the sum over their rows."""

AHEAD = 4096
"""Rows that are drawn ahead of time: one pass over partitions serves as many."""

MOST_ROWS = 200_000
"""Fetched rows that are kept at most; when there are more, it begins anew."""


def select(columns: Columns, rows: IntArray) -> Columns:
    """Return some rows."""
    return {name: column[rows] for name, column in columns.items()}


def join(parts: Sequence[Columns]) -> Columns:
    """Return the rows of several, one after the other."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@attrs.frozen(eq=False)
class Block:
    """A partition with the sum over its rows, no prior among them; it stays where the rows are."""

    columns: Columns
    potential: SummedPotential


class Partitions:
    """Blocks of rows that stay where they are, and rows that were fetched from them.

    There is a delayed :class:`Block` for each partition, or None where it has no row. If
    ``persist``, blocks are held in the memory of workers, and not read again for each pass.
    ``columns`` are those of all rows that are here, another object whenever there are more.
    """

    columns: Columns

    def __init__(self, blocks: Sequence[Any], persist: bool) -> None:
        import dask

        self.persist = persist
        self.blocks = list(dask.persist(*blocks)) if persist else list(blocks)
        lengths = self.map(lambda block: len(block.columns["data"]) if block else 0)
        self.blocks = [block for block, n in zip(self.blocks, lengths, strict=True) if n]
        self.starts = np.cumsum([0, *filter(None, lengths)])
        if not self.blocks:
            raise ShapeError("data must have at least one row, got partitions without any")
        self.n_rows = int(self.starts[-1])
        self._numbers = np.zeros(0, dtype=np.int64)  # of the rows that are here, sorted

    def delayed(self, function: Any) -> list[Any]:
        """Return a function of each block, to be computed there."""
        import dask

        call = dask.delayed(function, pure=False, traverse=False)
        return [call(block) for block in self.blocks]

    def map(self, function: Any) -> list[Any]:
        """Return a function of each block, in the order of the partitions: one pass."""
        import dask

        return list(dask.compute(*self.delayed(function)))

    def fetch(self, rows: IntArray) -> Columns:
        """Return what some rows hold, in the order of their numbers, shape (m,), sorted."""
        import dask

        call = dask.delayed(lambda block, of: select(block.columns, of), pure=False, traverse=False)
        of = np.searchsorted(self.starts, rows, side="right") - 1
        asked = [call(self.blocks[k], rows[of == k] - self.starts[k]) for k in np.unique(of)]
        return join(dask.compute(*asked))

    def places(self, rows: IntArray) -> IntArray:
        """Return where rows are in :attr:`columns`, shape (m,); fetch those that are not here."""
        wanted = np.setdiff1d(rows, self._numbers)
        if len(wanted):
            if len(self._numbers) + len(wanted) > MOST_ROWS:
                wanted = np.unique(rows)  # it begins anew
            self.keep(wanted, self.fetch(wanted))
        return np.searchsorted(self._numbers, rows)

    def keep(self, numbers: IntArray, columns: Columns) -> None:
        """Keep rows of these numbers, shape (m,); those that are here are not kept twice."""
        if 0 < len(self._numbers) <= MOST_ROWS - len(numbers):
            columns = join([self.columns, columns])
            numbers = np.concatenate([self._numbers, numbers])
        self._numbers, first = np.unique(numbers, return_index=True)
        self.columns = select(columns, first)


class PartitionDraws:
    """Draw a partition in proportion to its bounds, and a row of it in proportion to its own.

    The second is done where the rows are, some thousand rows ahead, and what these rows hold
    comes along. A row that is drawn is the next one of its partition, and so depends
    on nothing that was decided before. ``bounds`` are delayed psi of each partition.
    """

    def __init__(self, partitions: Partitions, bounds: Sequence[Any]) -> None:
        import dask

        self._partitions = partitions
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
        counts = np.ceil(AHEAD * self._shares).astype(np.int64) + needed - here
        seeds = rng.integers(0, 2**63, len(counts))
        call = dask.delayed(_draw, pure=False, traverse=False)
        lacking = np.flatnonzero(counts > 0).tolist()
        blocks = self._partitions.blocks
        drawn = dask.compute(
            *(call(blocks[k], self._bounds[k], int(counts[k]), int(seeds[k])) for k in lacking)
        )
        fetched = []
        for k, (rows, psi, distinct, columns) in zip(lacking, drawn, strict=True):
            start, before = self._partitions.starts[k], self._waiting[k]
            self._waiting[k] = np.append(before[0], rows + start), np.append(before[1], psi)
            fetched.append((distinct + start, columns))
        numbers, parts = zip(*fetched, strict=True)
        self._partitions.keep(np.concatenate(numbers), join(parts))


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


def read_partitions(
    form: Form, design: Any, others: Mapping[str, Any], persist: bool | None
) -> Partitions:
    """Return the partitions of a Dask array (n, dim) or dataframe.

    ``others`` are columns by what they are: Dask arrays or series, or names of columns of the
    dataframe. Workers keep their rows if ``persist``, or for None if there is a distributed client.
    """
    dask = load_library("dask", "dask")
    inside = {key: column for key, column in others.items() if isinstance(column, str)}
    apart = {key: column for key, column in others.items() if key not in inside}
    is_frame = hasattr(design, "to_delayed") and hasattr(design, "columns")
    lacking = set(inside.values()) - set(map(str, design.columns) if is_frame else ())
    if lacking:
        raise ConfigurationError(
            f"there is no column {', '.join(sorted(lacking))} in the data; name columns of a Dask "
            "dataframe, or give Dask arrays or series"
        )
    parts = [_delayed("design", design), *(_delayed(key, each) for key, each in apart.items())]
    if len({len(part) for part in parts}) > 1:
        raise ShapeError(
            f"design, {', '.join(apart)} must have the same partitions, got "
            f"{[len(part) for part in parts]} of them; rechunk or repartition them alike"
        )
    read = dask.delayed(_block, pure=False, traverse=False)
    blocks = [
        read(form, inside, list(apart), rows, *rest) for rows, *rest in zip(*parts, strict=True)
    ]
    return Partitions(blocks, _has_client() if persist is None else persist)


def _delayed(name: str, collection: Any) -> list[Any]:
    """Return the blocks of rows of a collection."""
    if not hasattr(collection, "to_delayed"):
        raise ConfigurationError(
            f"{name} must be a Dask array, dataframe or series, as the design is, got "
            f"{type(collection).__name__}; dask.array.from_array makes one"
        )
    if not hasattr(collection, "chunks"):
        # optimised, two columns of one file may come in other partitions
        return list(collection.to_delayed(optimize_graph=False))
    whole = collection.rechunk({1: -1}) if collection.ndim == 2 else collection
    return list(np.ravel(np.asarray(whole.to_delayed(), dtype=object)))


def _has_client() -> bool:
    try:
        from distributed import default_client

        default_client()
    except (ImportError, ValueError):
        return False
    return True


def _block(
    form: Form, inside: Mapping[str, str], names: Sequence[str], rows: Any, *others: Any
) -> Block | None:
    """Return a partition, of arrays or pandas objects; None if it has no row.

    Columns are among the rows of a dataframe, by what they are to their names, or come by
    themselves, by ``names``.
    """
    columns = {key: rows[name] for key, name in inside.items()}
    columns.update(zip(names, others, strict=True))
    design = rows.drop(columns=list(inside.values())) if inside else rows
    x = np.ascontiguousarray(numbers("the columns of the design", design))
    read = {key: numbers(f"the column of {key}", column) for key, column in columns.items()}
    odd = {key: column.shape for key, column in read.items() if column.shape != x.shape[:1]}
    if x.ndim != 2 or odd:
        raise ShapeError(
            "every partition of the design must have shape (n, dim), and of columns shape (n,), "
            f"got {x.shape} beside {odd or 'no other'}; partition them alike"
        )
    whole = {"data": x, **read}
    return Block(whole, form(**whole)) if len(x) else None
