"""Design matrices, dense or sparse by rows, and the few products that models take of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from surrokit.errors import ConfigurationError, ShapeError
from surrokit.limits import one_thread
from surrokit.types import FloatArray, IntArray
from surrokit_problems.data.data_file import array_from, design_from

Design: TypeAlias = Any
"""A dense array in C order, or a ``scipy.sparse.csr_array``; shape (n_rows, dim)."""

_RESULTS_IN_A_BLOCK = 1_000_000
_NUMBERS_IN_A_BLOCK = 200_000  # of the design: what stays in the processor's cache


def check_design(design: Any, response: Any) -> tuple[Design, FloatArray]:
    """Return design and response, arrays or files, in double precision; copied only if need be.

    Raises
    ------
    ConfigurationError
        If an entry is not finite.
    ShapeError
        If the design is not a matrix with a row for each response.
    TargetError
        If a file cannot be read, or something is not numbers.
    """
    design, y = design_from(design), array_from(response, "response")
    if sparse.issparse(design):
        x: Design = sparse.csr_array(design, dtype=np.float64)
        if not x.has_canonical_format:
            x = x.copy()
            x.sum_duplicates()
    else:
        x = np.ascontiguousarray(design, dtype=np.float64)
    if x.ndim != 2 or y.shape != x.shape[:1]:
        raise ShapeError(
            "design must have shape (n_rows, dim) and response shape (n_rows,), got "
            f"{x.shape} and {y.shape}; give one row and one response for each case"
        )
    entries = x.data if sparse.issparse(x) else x
    for name, numbers in (("design", entries), ("response", y)):
        if not np.isfinite(numbers).all():
            raise ConfigurationError(
                f"{name} must be finite, got infinities or NaN; drop or fill in those rows"
            )
    return x, y


def blocks(design: Design, n_results: int, reused: bool = True) -> Iterator[tuple[slice, Design]]:
    """Yield slices of the rows, and the rows.

    Parameters
    ----------
    design
        All rows.
    n_results
        Numbers made of each row, which bound the temporaries.
    reused
        Whether a block is used twice, and so should stay in the processor's cache.
    """
    n_rows, dim = design.shape
    size = _RESULTS_IN_A_BLOCK // max(1, n_results)
    if reused and not sparse.issparse(design):
        size = min(size, _NUMBERS_IN_A_BLOCK // dim)
    size = max(1024, size)
    with one_thread():  # blocks are too small for more, which would wait for each other
        for start in range(0, n_rows, size):
            rows = slice(start, min(start + size, n_rows))
            yield rows, design if size >= n_rows else design[rows]


def gram(rows: Design, weights: FloatArray) -> FloatArray:
    """Return X^T diag(w) X, shape (dim, dim), for weights of any sign, shape (rows,)."""
    if sparse.issparse(rows):
        return np.asarray((rows.T @ rows.multiply(weights[:, None])).toarray())
    if (weights >= 0.0).all():
        scaled = rows * np.sqrt(weights)[:, None]
        return np.asarray(scaled.T @ scaled)  # NumPy sees one matrix twice and does half the work
    return np.asarray((rows * weights[:, None]).T @ rows)


def back(rows: Design, weights: FloatArray) -> FloatArray:
    """Return W^T X, shape (n, dim), for weights of shape (rows, n)."""
    if sparse.issparse(rows):
        return np.asarray((rows.T @ weights).T)
    return np.asarray(weights.T @ rows)


def products(rows: Design, vectors: FloatArray) -> FloatArray:
    """Return V X^T, shape (n, rows), for vectors V of shape (n, dim)."""
    if sparse.issparse(rows):
        return np.ascontiguousarray((rows @ vectors.T).T)
    return np.asarray(vectors @ rows.T)


def squares(rows: Design) -> Design:
    """Return the square of every entry."""
    return rows.multiply(rows).tocsr() if sparse.issparse(rows) else np.square(rows)


def forms(rows: Design, matrix: FloatArray) -> FloatArray:
    """Return x_i . A x_i for every row, shape (rows,), with A the ``matrix (dim, dim)``."""
    products = rows @ matrix
    if sparse.issparse(rows):
        return np.asarray(rows.multiply(products).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", products, rows))


def squared_norms(design: Design, factor: FloatArray) -> FloatArray:
    """Return |L^T x_i|^2 for every row, shape (n_rows,), with L the ``factor (dim, dim)``."""
    found = np.empty(design.shape[0])
    for rows, block in blocks(design, factor.shape[1]):
        found[rows] = np.square(block @ factor).sum(axis=1)
    return found


def along(design: Design, rows: IntArray, owners: IntArray, steps: FloatArray) -> FloatArray:
    """Return x_i . s_o for pairs of a row i and an owner o, for k sets of steps, shape (k, m).

    Parameters
    ----------
    design
        All rows.
    rows, owners : ndarray of int, shape (m,)
        i and o.
    steps : ndarray of shape (k, n, dim)
        k sets of one step s_o for each owner.
    """
    if not sparse.issparse(design):
        chosen = design.take(rows, axis=0)
        n_sets, n_owners, dim = steps.shape
        if n_owners * len(rows) <= _FEW_PRODUCTS:  # one product, of which most is thrown away
            products = steps.reshape(-1, dim) @ chosen.T
            numbers = np.arange(len(rows))
            return np.asarray(products.reshape(n_sets, n_owners, -1)[:, owners, numbers])
        return np.asarray(np.einsum("md,kmd->km", chosen, steps[:, owners]))
    # entry by entry: scipy's own way to pick rows costs more than all else here
    starts = design.indptr[rows]
    lengths = design.indptr[rows + 1] - starts
    ends = np.cumsum(lengths)
    pair = np.repeat(np.arange(len(rows)), lengths)
    entries = np.arange(len(pair)) + (starts - ends + lengths)[pair]
    columns, numbers = design.indices[entries], design.data[entries]
    owner = owners[pair]
    return np.stack(
        [np.bincount(pair, numbers * each[owner, columns], minlength=len(rows)) for each in steps]
    )


_FEW_PRODUCTS = 20_000
