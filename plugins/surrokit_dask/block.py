"""Rows of a partition, and the sum over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from surrokit import rows_potential
from surrokit.contracts.rows import SummedPotential
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


def columns_of(design: Any, names: Sequence[str], *others: Any) -> Columns:
    """Return the rows of a partition, from arrays or pandas objects."""
    x = np.ascontiguousarray(np.asarray(design, dtype=np.float64))
    read = [np.asarray(column, dtype=np.float64).reshape(len(x)) for column in others]
    return Columns(x, dict(zip(names, read, strict=True)))


def block_of(family: Family, columns: Columns) -> Block | None:
    """Return the sum over a partition's rows; None if it has no row."""
    if not len(columns):
        return None
    return Block(columns=columns, potential=family.potential(columns))
