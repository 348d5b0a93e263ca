"""The least-squares solution that a row-by-row fit begins with."""

from __future__ import annotations

import numpy as np

from surrokit.types import FloatArray

TOLERANCE = 1e-6
"""Part of |h| up to which c = Phi h counts as zero: below it, it is rounding error.

Measured on whitened softplus features (s = 1000): from 1e-8 to 1e-6 predictions agree with the
batch solution; with 1e-10 they are off by ten orders of magnitude.
"""


def penalise(
    rows: FloatArray, targets: FloatArray, n_free: int, ridge: float
) -> tuple[FloatArray, FloatArray]:
    """Return v and Theta = (A^T A + ridge)^-1 from the triangle of A and the roots of the ridge."""
    from scipy.linalg import lapack, solve_triangular

    k = rows.shape[1]
    bottom = np.zeros((k - n_free, k + 1))
    np.fill_diagonal(bottom[:, n_free:], np.sqrt(ridge))
    stacked = np.vstack([np.column_stack([rows, targets]), bottom])
    triangle = np.asarray(np.linalg.qr(stacked, mode="r"), dtype=np.float64)
    corner = triangle[:k, :k]
    solution = np.asarray(solve_triangular(corner, triangle[:k, k]), dtype=np.float64)
    return solution, np.asarray(lapack.dpotri(np.asfortranarray(corner.T), lower=1)[0])


def least_norm(
    rows: FloatArray, targets: FloatArray, n_free: int, tolerance: float
) -> tuple[FloatArray, FloatArray, FloatArray | None, int]:
    """Return v, Theta, Phi and the rank where there is no ridge.

    With A = (F, H), F free: what is left of H once F is projected out has the Moore-Penrose inverse
    that gives the weights, and F^+ (t - H v) are the free coefficients.
    """
    from scipy.linalg import solve_triangular

    k = rows.shape[1]
    basis, corner = np.linalg.qr(rows[:, :n_free])
    known = basis.T @ rows[:, n_free:]
    left = rows[:, n_free:] - basis @ known
    u, values, vectors = np.linalg.svd(left, full_matrices=False)
    seen = values > tolerance * max(float(np.linalg.norm(rows, 2)), np.finfo(float).tiny)
    u, values, vectors = u[:, seen], values[seen], vectors[seen]
    # From node weights to all coefficients: the free ones make up for what the nodes do.
    lift = np.vstack([-solve_triangular(corner, known) if n_free else known, np.eye(k - n_free)])
    roots = lift @ (vectors.T / values)
    theta = roots @ roots.T
    solution = roots @ (u.T @ targets)
    if n_free:
        inverse = solve_triangular(corner, np.eye(n_free))
        theta[:n_free, :n_free] += inverse @ inverse.T
        solution[:n_free] += inverse @ (basis.T @ targets)
    if seen.sum() == k - n_free:
        return solution, theta, None, k
    phi = lift @ lift.T - (lift @ vectors.T) @ (lift @ vectors.T).T
    return solution, theta, np.asfortranarray(phi), n_free + int(seen.sum())
