"""Sums of outer products, and quadratic forms of the same vectors.

Every Hessian here comes down to the former, and its derivative's contractions to the latter.
"""

from __future__ import annotations

import numpy as np

from surrokit.types import FloatArray
from surrokit_networks.row_blocks import row_blocks


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
    dim = len(vectors)
    total = np.empty((len(factors), dim, dim))
    for rows in row_blocks(len(factors), vectors.size):
        np.matmul(factors[rows, None, :] * vectors, vectors.T, out=total[rows])
    return total


def quadratic_forms(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return vectors[:, i]^T matrices[n] vectors[:, i] for each n and i.

    Parameters
    ----------
    matrices : ndarray of shape (n, dim, dim)
        Matrix of each row of forms.
    vectors : ndarray of shape (dim, s)
        Vectors as columns.

    Returns
    -------
    ndarray of shape (n, s)
        The forms.
    """
    dim, n_vectors = vectors.shape
    forms = np.empty((len(matrices), n_vectors))
    for rows in row_blocks(len(matrices), vectors.size):
        products = matrices[rows].reshape(-1, dim) @ vectors
        np.einsum("nks,ks->ns", products.reshape(-1, dim, n_vectors), vectors, out=forms[rows])
    return forms
