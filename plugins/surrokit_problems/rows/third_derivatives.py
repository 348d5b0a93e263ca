"""Sums of third derivatives of terms that are functions of one linear predictor."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from surrokit.types import FloatArray
from surrokit_problems.data.design import Design, blocks

_PRODUCTS_AT_ONCE = 400  # of two columns: with a block of rows about what a cache holds


def third_derivatives(design: Design, weights: FloatArray) -> FloatArray:
    """Return sum_i t_i x_i (x) x_i (x) x_i, shape (dim, dim, dim).

    By symmetry about a third of the entries are computed, by matrix products over blocks of rows.

    Parameters
    ----------
    design : array or sparse array of shape (n_rows, dim)
        x_i.
    weights : ndarray of shape (n_rows,)
        t_i, the terms' third derivatives by their predictors.
    """
    dim = design.shape[1]
    width = max(1, _PRODUCTS_AT_ONCE // dim)
    groups = [range(begin, min(begin + width, dim)) for begin in range(0, dim, width)]
    # entries (i, j, k) with i of a group, j >= i, and k up to the last of the group
    sums = [np.zeros((sum(dim - i for i in group), group.stop)) for group in groups]
    pairs = np.empty((0, 0))
    for rows, block in blocks(design, 1):
        columns = np.ascontiguousarray((block.toarray() if sparse.issparse(block) else block).T)
        weighted = columns * weights[rows]
        if pairs.shape[1] != columns.shape[1]:  # memory is used again, as new pages are slow
            pairs = np.empty((max(len(each) for each in sums), columns.shape[1]))
        for group, total in zip(groups, sums, strict=True):
            total += _multiply(columns, group, pairs) @ weighted[: group.stop].T
    return _unfold(dim, groups, sums)


def _multiply(columns: FloatArray, group: range, into: FloatArray) -> FloatArray:
    """Return x_i x_j for i of a group and j >= i, each as a row of one number a data row."""
    place = 0
    for i in group:
        count = len(columns) - i
        np.multiply(columns[i:], columns[i], out=into[place : place + count])
        place += count
    return into[:place]


def _unfold(dim: int, groups: list[range], sums: list[FloatArray]) -> FloatArray:
    """Return all entries of a symmetric tensor of which those with k <= i <= j are known."""
    known = np.zeros((dim, dim, dim))
    for group, total in zip(groups, sums, strict=True):
        i = np.repeat(list(group), [dim - each for each in group])
        j = np.concatenate([np.arange(each, dim) for each in group])
        known[i, j, : group.stop] = total
    ordered = np.sort(np.indices(known.shape), axis=0)
    least, middle, most = (np.asarray(each, dtype=np.int64) for each in ordered)
    found: FloatArray = known[middle, most, least]
    return found
