"""Design matrices, dense or sparse by rows, from arrays or files, and products of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt
from scipy import sparse

from surrokit.arguments import unmasked
from surrokit.errors import ConfigurationError, ShapeError, TargetError
from surrokit.limits import one_thread
from surrokit.types import FloatArray, IntArray

Design: TypeAlias = Any
"""A dense array in C order, or a ``scipy.sparse.csr_array``; shape (n_rows, dim)."""


def array_from(source: str | Path | npt.ArrayLike, name: str) -> FloatArray:
    """Return an array, or that of a .npy file; a TargetError, if there are none, says ``name``."""
    try:
        array = np.load(source) if isinstance(source, str | Path) else source
        return np.asarray(unmasked(array), dtype=np.float64)
    except (OSError, EOFError, ValueError, TypeError) as error:
        shown = f"{source} " if isinstance(source, str | Path) else ""
        raise TargetError(
            f"{name} must be an array of numbers or the path of a .npy file that holds one; "
            f"{shown}could not be read: {error}"
        ) from error


def column_from(name: str, given: Any, n_rows: int) -> FloatArray | None:
    """Return finite numbers, one for each row, shape (n_rows,); None where none are given."""
    if given is None:
        return None
    column = array_from(given, name)
    if column.shape != (n_rows,):
        raise ShapeError(
            f"{name} must have shape ({n_rows},), one number for each row, got {column.shape}"
        )
    _check_finite(name, column)
    return column


def weights_from(given: Any, n_rows: int) -> FloatArray | None:
    """Return weights of rows that are not negative, shape (n_rows,); None for ones."""
    weights = column_from("weights", given, n_rows)
    if weights is not None and (weights < 0.0).any():
        raise ConfigurationError(
            f"weights must not be negative, got {weights.min():g}; drop such rows"
        )
    return weights


def check_design(design: Any, response: Any) -> tuple[Design, FloatArray]:
    """Return design and response, arrays or files, in double precision; copied only if need be.

    Raises
    ------
    ConfigurationError, ShapeError, TargetError
        If an entry is not finite, the design is not a matrix with a row for each response, or
        something cannot be read as numbers.
    """
    if isinstance(design, str | Path) and Path(design).suffix == ".npz":
        try:
            design = sparse.load_npz(design)
        except (OSError, EOFError, ValueError, KeyError, BadZipFile) as error:
            raise TargetError(
                f"design must be a sparse matrix as scipy.sparse.save_npz writes it; {design} "
                f"could not be read: {error}"
            ) from error
    elif not sparse.issparse(design):
        design = array_from(design, "design")
    y = array_from(response, "response")
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
    _check_finite("design", x.data if sparse.issparse(x) else x)
    _check_finite("response", y)
    return x, y


def _check_finite(name: str, numbers: FloatArray) -> None:
    if not np.isfinite(numbers).all():
        raise ConfigurationError(
            f"{name} must be finite, got infinities or NaN; drop or fill in those rows"
        )


def blocks(
    design: Design, n_results: int, reused: bool = True, cached: int = 200_000
) -> Iterator[tuple[slice, Design]]:
    """Yield slices of the rows, and the rows.

    ``n_results``, numbers made of each row, bound the temporaries. A block that is ``reused``
    should stay in the processor's cache, and has about ``cached`` numbers.
    """
    n_rows, dim = design.shape
    size = 1_000_000 // max(1, n_results)
    if reused and not sparse.issparse(design):
        size = min(size, cached // dim)
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
    """Return x_i . s_o for m pairs of a row i and an owner o, shape (k, m).

    ``steps``, shape (k, n, dim), are k sets of one step s_o for each owner.
    """
    if not sparse.issparse(design):
        chosen = design.take(rows, axis=0)
        n_sets, n_owners, dim = steps.shape
        if n_owners * len(rows) <= 20_000:  # one product, most of it thrown away
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


def third_moments(design: Design, weights: FloatArray) -> FloatArray:
    """Return sum_i t_i x_i (x) x_i (x) x_i, (dim, dim, dim), with t the ``weights (n_rows,)``.

    By symmetry about a third of the entries are computed: those with i <= j and i <= k.
    """
    dim = design.shape[1]
    known = np.zeros((dim, dim, dim))
    for rows, block in blocks(design, 1):
        x = block.toarray() if sparse.issparse(block) else block
        for i in range(dim):
            later = x[:, i:]
            known[i, i:, i:] += (later * (weights[rows] * x[:, i])[:, None]).T @ later
    least, middle, most = np.sort(np.indices(known.shape), axis=0)
    return np.asarray(known[least, middle, most])
