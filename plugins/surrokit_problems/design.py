"""Design matrices, dense or sparse by rows, from arrays or files, and products of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import attrs
import numpy as np
import numpy.typing as npt
from scipy import sparse

from surrokit.arguments import unmasked
from surrokit.errors import ConfigurationError, ShapeError, TargetError
from surrokit.limits import one_thread
from surrokit.types import FloatArray, IntArray


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


def check_design(design: Any, response: Any) -> tuple[Any, FloatArray]:
    """Return rows and response, arrays or files; copied only if need be.

    Rows in single precision stay so, if they are dense.

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
    elif not sparse.issparse(design) and getattr(design, "dtype", None) != np.float32:
        design = array_from(design, "design")
    y = array_from(response, "response")
    if sparse.issparse(design):
        x: Any = sparse.csr_array(design, dtype=np.float64)
        if not x.has_canonical_format:
            x = x.copy()
            x.sum_duplicates()
    else:
        x = np.ascontiguousarray(unmasked(design))
    if x.ndim != 2 or y.shape != x.shape[:1]:
        raise ShapeError(
            "design must have shape (n_rows, dim) and response shape (n_rows,), got "
            f"{x.shape} and {y.shape}; give one row and one response for each case"
        )
    _check_finite("design", x.data if sparse.issparse(x) else x)
    _check_finite("response", y)
    return x, y


def _check_finite(name: str, numbers: FloatArray) -> None:
    with np.errstate(over="ignore", invalid="ignore"):  # a sum is the quicker test
        fine = np.isfinite(numbers.sum()) or np.isfinite(numbers).all()
    if not fine:
        raise ConfigurationError(
            f"{name} must be finite, got infinities or NaN; drop or fill in those rows"
        )


@attrs.frozen(eq=False)
class Design:
    """Rows x_i of a regression, whose predictors are x_i . b.

    Parameters
    ----------
    rows
        A dense array in C order, perhaps in single precision, or a ``scipy.sparse.csr_array``.
    columns : ndarray of shape (n_columns + 1, dim), optional
        A, with (rows, 1) A the rows x_i, which are never made: so standardised columns and
        intercepts need no copy of data.
    """

    rows: Any
    columns: FloatArray | None = None

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    @property
    def dim(self) -> int:
        """Number of columns of x."""
        return int(self.rows.shape[1] if self.columns is None else self.columns.shape[1])

    @property
    def is_sparse(self) -> bool:
        """Whether rows are sparse."""
        return bool(sparse.issparse(self.rows))

    def select(self, rows: Any) -> Design:
        """Return some rows."""
        return attrs.evolve(self, rows=self.rows[rows])

    def blocks(
        self, n_results: int, reused: bool = True, cached: int = 200_000
    ) -> Iterator[tuple[slice, Design]]:
        """Yield slices of the rows, and these rows in double precision.

        ``n_results``, numbers made of each row, bound the temporaries. A block that is ``reused``
        should stay in the processor's cache, and has about ``cached`` numbers.
        """
        size = 1_000_000 // max(1, n_results)
        if (reused or self.rows.dtype != np.float64) and not self.is_sparse:
            size = min(size, cached // self.rows.shape[1])
        size = max(1024, size)
        with one_thread():  # blocks are too small for more, which would wait for each other
            for start in range(0, len(self), size):
                rows = slice(start, min(start + size, len(self)))
                block = self.rows if size >= len(self) else self.rows[rows]
                yield rows, Design(block.astype(np.float64, copy=False), self.columns)

    def dot(self, vectors: FloatArray) -> FloatArray:
        """Return X V, shape (rows, n), for vectors V of shape (dim, n)."""
        if self.columns is None:
            return np.asarray(self.rows @ vectors)
        own = self.columns @ vectors
        return np.asarray(self.rows @ own[:-1] + own[-1])

    def back(self, weights: FloatArray) -> FloatArray:
        """Return W^T X, shape (n, dim), for weights of shape (rows, n)."""
        found = (self.rows.T @ weights).T if self.is_sparse else weights.T @ self.rows
        if self.columns is None:
            return np.asarray(found)
        return np.asarray(np.column_stack([found, weights.sum(axis=0)]) @ self.columns)

    def gram(self, weights: FloatArray) -> FloatArray:
        """Return X^T diag(w) X, shape (dim, dim), for weights of any sign, shape (rows,)."""
        if self.is_sparse:
            found = (self.rows.T @ self.rows.multiply(weights[:, None])).toarray()
        elif (weights >= 0.0).all():
            scaled = self.rows * np.sqrt(weights)[:, None]
            found = scaled.T @ scaled  # NumPy sees one matrix twice and does half the work
        else:
            found = (self.rows * weights[:, None]).T @ self.rows
        if self.columns is None:
            return np.asarray(found)
        sums = self.rows.T @ weights
        bordered = np.block([[found, sums[:, None]], [sums, weights.sum()]])
        return np.asarray(self.columns.T @ bordered @ self.columns)

    def whole(self) -> Any:
        """Return X, shape (rows, dim), which is made if need be."""
        return self.rows if self.columns is None else self.dot(np.eye(self.dim))

    def squares(self) -> Any:
        """Return the square of every entry."""
        x = self.whole()
        return x.multiply(x).tocsr() if sparse.issparse(x) else np.square(x)

    def forms(self, matrix: FloatArray) -> FloatArray:
        """Return x_i . A x_i for every row, shape (rows,), with A the ``matrix (dim, dim)``."""
        x = self.whole()
        products = x @ matrix
        if sparse.issparse(x):
            return np.asarray(x.multiply(products).sum(axis=1)).ravel()
        return np.asarray(np.einsum("ij,ij->i", products, x))

    def lengths(self, factor: FloatArray) -> FloatArray:
        """Return |L^T x_i| for every row, shape (n_rows,), with L the ``factor (dim, dim)``."""
        found = np.empty(len(self))
        for rows, block in self.blocks(factor.shape[1]):
            moved = block.dot(factor)
            found[rows] = np.sqrt(np.einsum("rd,rd->r", moved, moved))
        return found

    def along(self, rows: IntArray, owners: IntArray, steps: FloatArray) -> FloatArray:
        """Return x_i . s_o for m pairs of a row i and an owner o, shape (k, m).

        ``steps``, shape (k, n, dim), are k sets of one step s_o for each owner.
        """
        ends: Any = 0.0
        if self.columns is not None:
            steps = steps @ self.columns.T
            steps, ends = np.ascontiguousarray(steps[..., :-1]), steps[..., -1][:, owners]
        if not self.is_sparse:
            sums = np.empty((len(steps), len(rows)))
            for start in range(0, len(rows), 1000):  # pairs whose numbers stay in the cache
                part = slice(start, start + 1000)
                chosen = self.rows.take(rows[part], axis=0)
                for each, own in zip(sums, steps, strict=True):
                    each[part] = np.einsum("md,md->m", chosen, own.take(owners[part], axis=0))
            return np.asarray(sums + ends)
        # entry by entry: scipy's own way to pick rows costs more than all else here
        starts = self.rows.indptr[rows]
        lengths = self.rows.indptr[rows + 1] - starts
        last = np.cumsum(lengths)
        pair = np.repeat(np.arange(len(rows)), lengths)
        entries = np.arange(len(pair)) + (starts - last + lengths)[pair]
        columns, numbers = self.rows.indices[entries], self.rows.data[entries]
        owner = owners[pair]
        found = [np.bincount(pair, numbers * s[owner, columns], len(rows)) for s in steps]
        return np.asarray(np.stack(found) + ends)

    def third_moments(self, weights: FloatArray, factor: FloatArray) -> FloatArray:
        """Return sum_i t_i x_i (x) x_i (x) x_i, (dim, dim, dim), with t the ``weights (n_rows,)``.

        It is made of the coordinates L^T x, with L the ``factor (dim, dim)``, which is to make them
        alike: of many rows by products in single precision, whose sums are in double. So errors
        stay near 1e-7 of third derivatives in any direction. By symmetry about a sixth of the
        entries is computed.
        """
        dim, at_once = self.dim, 3
        precision = np.float32 if len(self) * dim**3 > 1e9 else np.float64
        known = np.zeros((dim, dim, dim))  # i <= j <= k, by j, i and k
        for rows, block in self.blocks(dim, cached=1024 * dim):
            x = np.ascontiguousarray(block.dot(factor).T, dtype=precision)
            weighted = x * weights[rows].astype(precision)
            for j in range(0, dim, at_once):
                pairs = weighted[j : j + at_once, None] * x[: j + at_once]
                part = pairs.reshape(-1, x.shape[1]) @ x[j:].T
                known[j : j + at_once, : j + at_once, j:] += part.reshape(*pairs.shape[:2], -1)
        least, middle, most = np.sort(np.indices(known.shape), axis=0)
        found = known[middle, least, most]
        inverse = np.linalg.inv(factor)
        for _ in range(3):  # an axis each time
            found = np.tensordot(found, inverse, axes=(0, 0))
        return np.asarray(found)


def whitening(hessian: FloatArray) -> FloatArray:
    """Return a matrix L (dim, dim) with L^T H L near the identity where H is far from singular."""
    sizes = np.sqrt(np.where(np.diag(hessian) > 0.0, np.diag(hessian), 1.0))
    values, vectors = np.linalg.eigh(hessian / np.outer(sizes, sizes))
    least = 1e-10 * max(values[-1], 1e-10)
    return np.asarray(vectors / np.sqrt(np.maximum(values, least)) / sizes[:, None])
