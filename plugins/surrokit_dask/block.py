"""Rows of a partition, and the sum over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from surrokit import rows_potential
from surrokit.arguments import numbers
from surrokit.errors import ShapeError
from surrokit.potentials import SummedPotential
from surrokit.types import FloatArray, IntArray


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

    @property
    def bytes_per_row(self) -> int:
        """Bytes that a row takes when it travels, but for its number and bound."""
        return 8 * (int(self.design.shape[1]) + len(self.others))

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


@attrs.frozen(kw_only=True, eq=False)
class Family:
    """Which regression it is.

    Parameters
    ----------
    name
        As :func:`surrokit.rows_potential` takes it.
    settings
        Of the family.
    """

    name: Any
    settings: Mapping[str, Any]

    def potential(self, columns: Columns, prior: Any = None) -> SummedPotential:
        """Return the sum over some rows, and a prior if one is given."""
        return rows_potential(
            self.name, columns.design, prior=prior, **columns.others, **self.settings
        )


@attrs.frozen(kw_only=True, eq=False)
class Block:
    """A partition with the sum over its rows; it stays where the rows are.

    Parameters
    ----------
    columns
        The rows.
    potential
        The sum over them, without a prior.
    """

    columns: Columns
    potential: SummedPotential


def columns_of(rows: Any, inside: Mapping[str, str], names: Sequence[str], *others: Any) -> Columns:
    """Return what a partition holds, from arrays or pandas objects.

    Parameters
    ----------
    rows
        The design; or a dataframe that holds it beside other columns.
    inside
        What these other columns are, and their names.
    names, *others
        Columns that come by themselves.

    Raises
    ------
    ShapeError
        If columns have more or fewer rows than the design.
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


def block_of(family: Family, columns: Columns) -> Block | None:
    """Return the sum over a partition's rows; None if it has no row."""
    if not len(columns):
        return None
    return Block(columns=columns, potential=family.potential(columns))
