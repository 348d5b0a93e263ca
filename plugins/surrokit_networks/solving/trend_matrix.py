"""A quadratic trend from gradients, in closed form."""

from __future__ import annotations

import numpy as np

from surrokit.types import FloatArray

_PRICE = 1.05
"""What the choice of the ridge takes each degree of freedom to cost."""

_RIDGES = np.logspace(-4.0, 2.0, 25)
"""Ridges tried, for each unit of weight."""


def matrix_of_gradients(
    whitened: FloatArray,
    gradients: FloatArray,
    weights: FloatArray,
    expected: FloatArray | None = None,
) -> FloatArray:
    """Return the symmetric M for which gradients are M z + constant, as nearly as can be told.

    Minimises sum_n w_n |g_n - M z_n|^2 + kappa |M - E|_F^2 over symmetric M, positions and
    gradients centred; E is what is expected. In the eigenbasis of sum_n w_n z_n z_n^T the problem
    falls apart entry by entry, so kappa is chosen by generalised cross-validation from one
    eigendecomposition, and the cost is O(n dim^2 + dim^3), where the dim^2 / 2 columns of a full
    quadratic would cost dim^6.
    The identity, for E, is the matrix of a normal density in its own whitened coordinates.

    Parameters
    ----------
    whitened, gradients : ndarray of shape (n, dim)
        Whitened positions, and gradients of U in the same coordinates.
    weights : ndarray of shape (n,)
        Weights of the rows.
    expected : ndarray of shape (dim, dim), optional
        E, symmetric; None for the identity.

    Returns
    -------
    ndarray of shape (dim, dim)
        M; its eigenvalues may have either sign.
    """
    total = float(weights.sum())
    dim = whitened.shape[1]
    start = np.eye(dim) if expected is None else expected
    away = whitened - weights @ whitened / total
    left = gradients - weights @ gradients / total - away @ start
    moments = (away.T * weights) @ away
    eigenvalues, vectors = np.linalg.eigh(moments)
    eigenvalues = np.maximum(eigenvalues, 0.0)
    cross = vectors.T @ ((away.T * weights) @ left) @ vectors
    pull = cross + cross.T
    sums = eigenvalues[:, None] + eigenvalues
    square = float(weights @ np.einsum("nd,nd->n", left, left))
    count = dim * float(weights.sum() ** 2 / np.square(weights).sum())
    best, chosen = np.inf, np.zeros((dim, dim))
    for ridge in total * _RIDGES[::-1]:
        change = pull / (sums + 2.0 * ridge)
        residual = square - float(np.sum(change * pull)) + float(np.sum(change**2 * eigenvalues))
        held = sums / (sums + 2.0 * ridge)
        degrees = 0.5 * float(held.sum() + np.trace(held)) + dim
        spare = count - _PRICE * degrees
        score = max(residual, 0.0) / spare**2 if spare > 0.0 else np.inf
        if score < best:
            best, chosen = score, change
    return np.asarray(start + vectors @ chosen @ vectors.T)
