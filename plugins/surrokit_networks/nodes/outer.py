"""Sums of outer products, and quadratic or bilinear forms of the same vectors.

Every Hessian here comes down to the first, and derivatives of matrices to the others.
"""

from __future__ import annotations

import numpy as np

from surrokit.types import FloatArray
from surrokit_networks.nodes.row_blocks import row_blocks


def weighted_outer(factors: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return sum_i factors[n, i] vectors[:, i] vectors[:, i]^T for each n, shape (n, dim, dim).

    Parameters
    ----------
    factors : ndarray of shape (n, s)
        Factors of each sum.
    vectors : ndarray of shape (dim, s)
        Vectors as columns.
    """
    dim = len(vectors)
    total = np.empty((len(factors), dim, dim))
    for rows in row_blocks(len(factors), vectors.size):
        np.matmul(factors[rows, None, :] * vectors, vectors.T, out=total[rows])
    return total


def quadratic_forms(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return vectors[:, i]^T matrices[n] vectors[:, i] for each n and i, shape (n, s).

    Parameters
    ----------
    matrices : ndarray of shape (n, dim, dim)
        Matrix of each row of forms.
    vectors : ndarray of shape (dim, s)
        Vectors as columns.
    """
    dim, n_vectors = vectors.shape
    forms = np.empty((len(matrices), n_vectors))
    for rows in row_blocks(len(matrices), vectors.size):
        products = matrices[rows].reshape(-1, dim) @ vectors
        np.einsum("nks,ks->ns", products.reshape(-1, dim, n_vectors), vectors, out=forms[rows])
    return forms


def bilinear_forms(
    weights: FloatArray, coefficients: FloatArray, vectors: FloatArray
) -> FloatArray:
    """Return sum_m coefficients[i, m] weights[n, m] . vectors[:, i] for n and i, shape (n, s).

    Parameters
    ----------
    weights : ndarray of shape (n, m, dim)
        Rows of each sum.
    coefficients : ndarray of shape (s, m)
        Coefficients of the sums.
    vectors : ndarray of shape (dim, s)
        Vectors as columns.
    """
    n, m, dim = weights.shape
    forms = np.empty((n, len(coefficients)))
    # whichever side is summed last is in the scratch array: the shorter one
    if dim <= m:
        for rows in row_blocks(n, dim * len(coefficients)):
            columns = weights[rows].transpose(0, 2, 1).reshape(-1, m)
            sums = (columns @ coefficients.T).reshape(-1, dim, len(coefficients))
            np.einsum("nds,ds->ns", sums, vectors, out=forms[rows])
    else:
        for rows in row_blocks(n, m * len(coefficients)):
            along = (weights[rows].reshape(-1, dim) @ vectors).reshape(-1, m, len(coefficients))
            np.einsum("nms,sm->ns", along, coefficients, out=forms[rows])
    return forms
