"""Matrices of second derivatives, under an elementwise change of coordinates z -> q."""

from __future__ import annotations

import numpy as np

from surrokit.transforms import Derivatives
from surrokit.types import FloatArray


def congruent(matrices: FloatArray, d: Derivatives) -> FloatArray:
    """Return q'_i M_ij q'_j, shape (n, dim, dim), of ``matrices (n, dim, dim)``; a new array."""
    return np.asarray(matrices * d.first[:, :, None] * d.first[:, None, :])


def crossed(weights: FloatArray, matrices: FloatArray, d: Derivatives) -> FloatArray:
    """Return sum_j A_kj M_kj q'_j, shape (n, dim), with A in ``weights (n, dim, dim)``."""
    return np.asarray(np.einsum("nkj,nkj,nj->nk", weights, matrices, d.first))


def products(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return the product of each matrix (dim, dim) with its own vector, shape (n, dim)."""
    return np.asarray(np.matmul(matrices, vectors[:, :, None])[:, :, 0])


def plus_diagonal(matrices: FloatArray, diagonals: FloatArray) -> FloatArray:
    """Add ``diagonals (n, dim)`` to matrices (n, dim, dim), in place, and return them."""
    dim = diagonals.shape[1]
    matrices[:, np.arange(dim), np.arange(dim)] += diagonals
    return matrices
