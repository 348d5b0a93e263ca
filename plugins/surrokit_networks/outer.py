"""Sums of outer products, one for each row of factors: what every Hessian here comes down to."""

from __future__ import annotations

import numpy as np

from surrokit.types import FloatArray

_SCRATCH = 2_000_000
"""Numbers of scratch that the products may take at a time."""


def weighted_outer(factors: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return sum_i factors[n, i] vectors[:, i] vectors[:, i]^T for each n.

    Parameters
    ----------
    factors : ndarray of shape (n, s)
        Factors of each sum.
    vectors : ndarray of shape (dim, s)
        Vectors as columns.

    Returns
    -------
    ndarray of shape (n, dim, dim)
        The sums, symmetric.
    """
    dim, n_vectors = vectors.shape
    total = np.empty((len(factors), dim, dim))
    block = max(1, _SCRATCH // max(1, dim * n_vectors))
    for start in range(0, len(factors), block):
        rows = slice(start, start + block)
        np.matmul(factors[rows, None, :] * vectors, vectors.T, out=total[rows])
    return total
