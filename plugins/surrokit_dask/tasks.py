"""What is done where the rows are: sums, draws, and the rows that were drawn.

Each function takes a partition, None where it has no rows, and returns little.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from surrokit.potentials import Ball, of_order
from surrokit.types import FloatArray, IntArray
from surrokit_dask.block import Block, Columns


def length(block: Block | None) -> int:
    """Return how many rows there are."""
    return 0 if block is None else len(block.columns)


def evaluate(block: Block | None, method: str, *arguments: FloatArray) -> Any:
    """Return what a method of the sum gives; 0 for no rows."""
    return 0.0 if block is None else getattr(block.potential, method)(*arguments)


@attrs.frozen(kw_only=True, eq=False)
class Sums:
    """Sums of terms and their derivatives at one point.

    Parameters
    ----------
    value
        Of the terms, in nats.
    gradient : ndarray of shape (dim,)
        First derivatives.
    hessian : ndarray of shape (dim, dim)
        Second derivatives.
    third : ndarray of shape (dim, dim, dim), optional
        Third derivatives.
    """

    value: float
    gradient: FloatArray
    hessian: FloatArray
    third: FloatArray | None


def expand(block: Block | None, centre: FloatArray, order: int) -> Sums | None:
    """Return the sums of an expansion: one pass over the rows."""
    if block is None:
        return None
    expansion = block.potential.expand(centre, **of_order(order))
    return Sums(
        value=float(expansion.value(centre[None])[0]),
        gradient=expansion.gradient,
        hessian=expansion.hessian,
        third=expansion.third,
    )


def increases(
    block: Block | None, centre: FloatArray, order: int, before: FloatArray, after: FloatArray
) -> Any:
    """Return sum_i max(0, D_i(q') - D_i(q)) over the rows, shape (n,)."""
    if block is None:
        return 0.0
    return block.potential.expand(centre, **of_order(order)).increases(before, after)


def bounds(block: Block | None, factor: FloatArray, order: int, ball: Ball | None) -> FloatArray:
    """Return psi, shape (rows,)."""
    if block is None:
        return np.zeros(0)
    return np.asarray(block.potential.row_bounds(factor, **of_order(order, ball)))


def total(psi: FloatArray) -> float:
    """Return the sum of bounds."""
    return float(psi.sum())


@attrs.frozen(kw_only=True, eq=False)
class Drawn:
    """Rows that were drawn in a partition, in the order of the draws.

    Parameters
    ----------
    rows : ndarray of int, shape (n,)
        Their numbers in the partition.
    psi : ndarray of shape (n,)
        Their bounds.
    distinct : ndarray of int, shape (m,)
        The numbers without repeats, sorted.
    columns
        What these rows hold.
    """

    rows: IntArray
    psi: FloatArray
    distinct: IntArray
    columns: Columns


def draw(block: Block | None, psi: FloatArray, n: int, seed: int) -> Drawn | None:
    """Return n rows of a partition, drawn in proportion to psi, and what they hold."""
    if block is None or n == 0:
        return None
    ends = np.cumsum(psi)
    places = np.random.default_rng(seed).random(n) * ends[-1]
    # never a row without a bound, nor one beyond the last
    rows = np.minimum(np.searchsorted(ends, places, side="right"), np.flatnonzero(psi)[-1])
    distinct = np.unique(rows)
    return Drawn(
        rows=rows, psi=psi[rows], distinct=distinct, columns=block.columns.select(distinct)
    )


def fetch(block: Block | None, rows: IntArray) -> Columns | None:
    """Return what some rows of a partition hold."""
    return None if block is None or not len(rows) else block.columns.select(rows)
