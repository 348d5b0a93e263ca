"""Partitions of a Dask collection, what is done where their rows are, and passes over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from surrokit import rows_potential
from surrokit.arguments import numbers
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.potentials import SummedPotential
from surrokit.types import FloatArray, IntArray


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


@attrs.frozen(eq=False)
class Columns:
    """What a partition holds of each row.

    Parameters
    ----------
    design : ndarray of shape (n, dim)
        Covariates.
    others : dict of str to ndarray of shape (n,)
        ``response``, and what else there is: ``offset``, ``weights``, ``event``.
    """

    design: FloatArray
    others: Mapping[str, FloatArray]

    def __len__(self) -> int:
        return len(self.design)

    def select(self, rows: IntArray) -> Columns:
        """Return some rows."""
        return Columns(
            self.design[rows], {name: column[rows] for name, column in self.others.items()}
        )

    @classmethod
    def joined(cls, parts: Sequence[Columns]) -> Columns:
        """Return the rows of several, one after the other."""
        names = parts[0].others
        return cls(
            np.concatenate([part.design for part in parts]),
            {name: np.concatenate([part.others[name] for part in parts]) for name in names},
        )


@attrs.frozen(eq=False)
class Family:
    """Which regression it is, as :func:`surrokit.rows_potential` takes it, and its settings."""

    name: Any
    settings: Mapping[str, Any]

    def potential(self, columns: Columns, prior: Any = None) -> SummedPotential:
        """Return the sum over some rows, and a prior if one is given."""
        return rows_potential(
            self.name, columns.design, prior=prior, **columns.others, **self.settings
        )


@attrs.frozen(eq=False)
class Block:
    """A partition with the sum over its rows, no prior among them; it stays where the rows are."""

    columns: Columns
    potential: SummedPotential


def _columns_of(
    rows: Any, inside: Mapping[str, str], names: Sequence[str], *others: Any
) -> Columns:
    """Return what a partition holds, from arrays or pandas objects.

    Other columns are among the rows of a dataframe, by what they are to their names, or come by
    themselves.
    """
    columns = {key: rows[name] for key, name in inside.items()}
    design = rows.drop(columns=list(inside.values())) if inside else rows
    x = np.ascontiguousarray(numbers("the columns of the design", design))
    read = {
        key: numbers(f"the column of {key}", column)
        for key, column in {**columns, **dict(zip(names, others, strict=True))}.items()
    }
    odd = {key: column.shape for key, column in read.items() if column.shape != x.shape[:1]}
    if x.ndim != 2 or odd:
        raise ShapeError(
            "every partition of the design must have shape (n, dim), and of columns shape (n,), "
            f"got {x.shape} beside {odd or 'no other'}; partition them alike"
        )
    return Columns(x, read)


def _block_of(family: Family, columns: Columns) -> Block | None:
    return Block(columns, family.potential(columns)) if len(columns) else None


def _length(block: Block | None) -> int:
    return 0 if block is None else len(block.columns)


def _evaluate(block: Block, method: str, *arguments: FloatArray) -> Any:
    return getattr(block.potential, method)(*arguments)


def _fetch(block: Block, rows: IntArray) -> Columns:
    return block.columns.select(rows)


class Partitions:
    """Blocks of rows that stay where they are; those without any are left out.

    There is a delayed :class:`Block` for each partition, or None where it has no row. If
    ``persist``, blocks are held in the memory of workers, and not read again for each pass.
    """

    def __init__(self, blocks: Sequence[Any], persist: bool) -> None:
        dask = import_dask()
        self.persist = persist
        self.blocks = list(dask.persist(*blocks)) if persist else list(blocks)
        lengths = self.map(_length)
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
        call = import_dask().delayed(function, pure=False, traverse=False)
        return [call(block, *arguments) for block in self.blocks]

    def map(self, function: Any, *arguments: Any) -> list[Any]:
        """Return a function of each block, in the order of the partitions: one pass."""
        return list(import_dask().compute(*self.delayed(function, *arguments)))

    def evaluate(self, method: str, *arguments: FloatArray) -> list[Any]:
        """Return what a method of each block's sum gives, in their order: one pass."""
        return self.map(_evaluate, method, *arguments)

    def fetch(self, rows: IntArray) -> Columns:
        """Return what some rows hold, in the order of their numbers, shape (m,), sorted."""
        partition = np.searchsorted(self.starts, rows, side="right") - 1
        dask = import_dask()
        call = dask.delayed(_fetch, pure=False, traverse=False)
        asked = [
            call(self.blocks[k], rows[partition == k] - self.starts[k])
            for k in np.unique(partition)
        ]
        return Columns.joined(dask.compute(*asked))


def partitions_of(
    family: Family, design: Any, others: Mapping[str, Any], persist: bool | None
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
    dask = import_dask()
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
    gather = dask.delayed(_columns_of, pure=False, traverse=False)
    form = dask.delayed(_block_of, pure=False, traverse=False)
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
