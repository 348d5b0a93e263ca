"""Partitions of a Dask collection, and passes over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from surrokit.errors import ConfigurationError, ShapeError
from surrokit.types import FloatArray, IntArray
from surrokit_dask import tasks
from surrokit_dask.block import Columns, Family, block_of, columns_of


def import_dask() -> Any:
    """Return Dask.

    Raises
    ------
    ConfigurationError
        If it is not installed.
    """
    try:
        import dask
    except ImportError as error:
        raise ConfigurationError(
            "targets on Dask collections need Dask, which is not installed; pip install "
            "'surrokit[dask]'"
        ) from error
    return dask


class Partitions:
    """Blocks of rows that stay where they are.

    Parameters
    ----------
    blocks
        A delayed :class:`~surrokit_dask.block.Block` for each partition.
    persist
        Whether blocks are held in the memory of workers, and not read again for each pass.
    """

    def __init__(self, blocks: Sequence[Any], persist: bool) -> None:
        dask = import_dask()
        self.persist = persist
        self.blocks = list(dask.persist(*blocks)) if persist else list(blocks)
        lengths = self.map(tasks.length)
        self.starts = np.concatenate([[0], np.cumsum(lengths)])
        if not self.n_rows:
            raise ShapeError("data must have at least one row, got partitions without any")

    @property
    def n_rows(self) -> int:
        """Rows of all partitions."""
        return int(self.starts[-1])

    def delayed(self, function: Any, *arguments: Any) -> list[Any]:
        """Return a function of each block, to be computed there."""
        call = import_dask().delayed(function, pure=False, traverse=False)
        return [call(block, *arguments) for block in self.blocks]

    def map(self, function: Any, *arguments: Any) -> list[Any]:
        """Return a function of each block, in the order of the partitions: one pass."""
        return list(import_dask().compute(*self.delayed(function, *arguments)))

    def sum(self, method: str, *arguments: FloatArray) -> FloatArray:
        """Return the sum over partitions of what a method gives, added up in their order."""
        return np.asarray(sum(self.map(tasks.evaluate, method, *arguments)), dtype=np.float64)

    def fetch(self, rows: IntArray) -> Columns:
        """Return what some rows hold, in the order of their numbers, shape (m,), sorted."""
        partition = np.searchsorted(self.starts, rows, side="right") - 1
        dask = import_dask()
        call = dask.delayed(tasks.fetch, pure=False, traverse=False)
        asked = [
            call(self.blocks[k], rows[partition == k] - self.starts[k])
            for k in np.unique(partition)
        ]
        return Columns.joined(dask.compute(*asked))


def partitions_of(
    family: Family, design: Any, others: Mapping[str, Any], persist: bool | None
) -> Partitions:
    """Return the partitions of a Dask array or dataframe.

    Parameters
    ----------
    family
        Which regression it is.
    design
        Dask array of shape (n, dim), or dataframe.
    others
        Columns by what they are: Dask arrays or series, or names of columns of the dataframe.
    persist
        Whether workers keep their rows; None if there is a distributed client.

    Raises
    ------
    ConfigurationError
        If a column is none of these, or the dataframe has no such column.
    ShapeError
        If partitions do not fit each other.
    """
    dask = import_dask()
    named = [name for name in others.values() if isinstance(name, str)]
    frame = design if hasattr(design, "to_delayed") and hasattr(design, "columns") else None
    if named:
        lacking = named if frame is None else sorted(set(named) - set(map(str, frame.columns)))
        if lacking:
            raise ConfigurationError(
                f"there is no column {', '.join(lacking)} in the data; name columns of a Dask "
                "dataframe, or give Dask arrays or series"
            )
    apart = {key: column for key, column in others.items() if not isinstance(column, str)}
    inside = {key: column for key, column in others.items() if isinstance(column, str)}
    parts = [_delayed("design", design), *(_delayed(key, each) for key, each in apart.items())]
    counts = {len(part) for part in parts}
    if len(counts) > 1:
        raise ShapeError(
            f"design, {', '.join(apart)} must have the same partitions, got "
            f"{[len(part) for part in parts]} of them; rechunk or repartition them alike"
        )
    gather = dask.delayed(columns_of, pure=False, traverse=False)
    form = dask.delayed(block_of, pure=False, traverse=False)
    names = list(apart)
    blocks = [
        form(family, gather(rows, inside, names, *rest)) for rows, *rest in zip(*parts, strict=True)
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
