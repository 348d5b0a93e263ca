"""Partitions of a Dask collection as sums over their rows, and passes over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import attrs
import numpy as np

from surrokit.arguments import load_library, numbers
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.potentials import SummedPotential
from surrokit.types import FloatArray, IntArray

Columns: TypeAlias = dict[str, FloatArray]
"""What rows hold, as :func:`surrokit.rows_potential` takes it: ``data`` (n, dim), ``response`` (n,)
and what else there is."""

Form: TypeAlias = partial[SummedPotential]
"""From columns to the sum over their rows."""


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
    """Blocks of rows that stay where they are; those without any are left out.

    There is a delayed :class:`Block` for each partition, or None where it has no row. If
    ``persist``, blocks are held in the memory of workers, and not read again for each pass.
    """

    def __init__(self, blocks: Sequence[Any], persist: bool) -> None:
        import dask

        self.persist = persist
        self.blocks = list(dask.persist(*blocks)) if persist else list(blocks)
        lengths = self.map(lambda block: len(block.columns["data"]) if block else 0)
        self.blocks = [block for block, n in zip(self.blocks, lengths, strict=True) if n]
        self.starts = np.cumsum([0, *filter(None, lengths)])
        if not self.blocks:
            raise ShapeError("data must have at least one row, got partitions without any")

    @property
    def n_rows(self) -> int:
        """Rows of all partitions."""
        return int(self.starts[-1])

    def delayed(self, function: Any, *arguments: Any) -> list[Any]:
        """Return a function of each block, to be computed there."""
        import dask

        call = dask.delayed(function, pure=False, traverse=False)
        return [call(block, *arguments) for block in self.blocks]

    def map(self, function: Any, *arguments: Any) -> list[Any]:
        """Return a function of each block, in the order of the partitions: one pass."""
        import dask

        return list(dask.compute(*self.delayed(function, *arguments)))

    def evaluate(self, method: str, positions: FloatArray) -> list[Any]:
        """Return what a method of each block's sum gives, in their order: one pass."""
        return self.map(lambda block: getattr(block.potential, method)(positions))

    def fetch(self, rows: IntArray) -> Columns:
        """Return what some rows hold, in the order of their numbers, shape (m,), sorted."""
        import dask

        call = dask.delayed(lambda block, of: select(block.columns, of), pure=False, traverse=False)
        of = np.searchsorted(self.starts, rows, side="right") - 1
        return join(
            dask.compute(
                *(call(self.blocks[k], rows[of == k] - self.starts[k]) for k in np.unique(of))
            )
        )


def read_partitions(
    form: Form, design: Any, others: Mapping[str, Any], persist: bool | None
) -> Partitions:
    """Return the partitions of a Dask array (n, dim) or dataframe.

    ``others`` are columns by what they are: Dask arrays or series, or names of columns of the
    dataframe. Workers keep their rows if ``persist``, or for None if there is a distributed client.

    Raises
    ------
    ConfigurationError
        If a column is none of these, or the dataframe has no such column.
    ShapeError
        If partitions do not fit each other.
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
