"""Cholesky factors, inverses and products of a batch of small matrices, one for each chain.

Two ways: LAPACK matrix by matrix, and for many small matrices column by column, all at once.
Neither lets a matrix that cannot be factorised touch the others.
"""

from __future__ import annotations

import attrs
import numpy as np
from scipy.linalg import lapack

from surrokit.types import BoolArray, FloatArray

_MANY = 8
"""So many matrices for each of their columns are worth a loop over columns."""


@attrs.frozen(eq=False)
class Factors:
    """What is known of G = L L^T for each row; NaN where G is not positive definite.

    Parameters
    ----------
    lower : ndarray of shape (n, dim, dim)
        L.
    inverse : ndarray of shape (n, dim, dim)
        G^-1.
    log_determinant : ndarray of shape (n,)
        log det G.
    """

    lower: FloatArray
    inverse: FloatArray
    log_determinant: FloatArray


def factorise(matrices: FloatArray) -> Factors:
    """Return the factors of symmetric matrices of shape (n, dim, dim)."""
    with np.errstate(all="ignore"):
        if _many(matrices):
            lower = _lower_by_columns(matrices)
            inverse = _inverse_by_rows(lower)
        else:
            lower, inverse = _factors_one_by_one(matrices)
        diagonal = np.diagonal(lower, axis1=1, axis2=2)
        log_determinant = np.asarray(2.0 * np.log(diagonal).sum(axis=1))
    log_determinant[~np.isfinite(log_determinant)] = np.nan
    return Factors(lower, inverse, log_determinant)


def are_definite(matrices: FloatArray) -> BoolArray:
    """Return which of some symmetric matrices (n, dim, dim) are positive definite."""
    with np.errstate(all="ignore"):
        if _many(matrices):
            lower = _lower_by_columns(matrices)
            return np.asarray(np.isfinite(lower).all(axis=(1, 2)))
        return np.array([_is_definite(matrix) for matrix in matrices], dtype=bool)


def product(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return M v for each row, shape (n, dim), from M (n, dim, dim) and v (n, dim)."""
    if _many(matrices):
        return np.asarray(np.einsum("nij,nj->ni", matrices, vectors))
    return np.asarray(np.matmul(matrices, vectors[:, :, None])[:, :, 0])


def dot(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the product of each two rows, shape (n,), of two arrays of shape (n, dim)."""
    return np.asarray(np.einsum("ni,ni->n", first, second))


def _many(matrices: FloatArray) -> bool:
    return bool(len(matrices) > _MANY * matrices.shape[1])


def _is_definite(matrix: FloatArray) -> bool:
    lower, info = lapack.dpotrf(matrix.T, lower=1)
    return bool(info == 0 and np.isfinite(np.diagonal(lower)).all())


def _factors_one_by_one(matrices: FloatArray) -> tuple[FloatArray, FloatArray]:
    lower = np.full_like(matrices, np.nan)
    triangle = np.full_like(matrices, np.nan)
    for i, matrix in enumerate(matrices):
        factor, info = lapack.dpotrf(matrix.T, lower=1, clean=1)
        if info == 0 and np.isfinite(np.diagonal(factor)).all():
            lower[i] = factor
            triangle[i], _ = lapack.dpotri(factor, lower=1)
    inverse = triangle + triangle.transpose(0, 2, 1)
    both = np.arange(matrices.shape[1])
    inverse[:, both, both] = triangle[:, both, both]
    return lower, inverse


def _lower_by_columns(matrices: FloatArray) -> FloatArray:
    lower = np.zeros_like(matrices)
    for j in range(matrices.shape[1]):
        row = lower[:, j, :j]
        root = np.sqrt(matrices[:, j, j] - dot(row, row))  # NaN unless the pivot is positive
        lower[:, j, j] = root
        below = np.einsum("nik,nk->ni", lower[:, j + 1 :, :j], row)
        lower[:, j + 1 :, j] = (matrices[:, j + 1 :, j] - below) / root[:, None]
    diagonal = np.diagonal(lower, axis1=1, axis2=2)
    lower[~((diagonal > 0) & np.isfinite(diagonal)).all(axis=1)] = np.nan
    return lower


def _inverse_by_rows(lower: FloatArray) -> FloatArray:
    inverse = np.zeros_like(lower)  # of L; that of G is its transpose times itself
    for i in range(lower.shape[1]):
        scale = 1.0 / lower[:, i, i]
        inverse[:, i, i] = scale
        above = np.einsum("nk,nkj->nj", lower[:, i, :i], inverse[:, :i, :i])
        inverse[:, i, :i] = -above * scale[:, None]
    return np.asarray(np.einsum("nki,nkj->nij", inverse, inverse))
