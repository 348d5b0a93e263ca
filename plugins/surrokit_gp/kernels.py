"""The squared-exponential kernel between values and derivatives, and factors of its matrices.

In coordinates x = z / l it is s^2 e, with e = exp(-|x - x'|^2 / 2) (Rasmussen and Williams 2006,
equation (5.1); section 3.3 of the paper). A derivative of a Gaussian process is one too (their
section 9.4): with d = x - x', cov(f(x), d_j f(x')) = s^2 e d_j, and cov(d_i f(x), d_j f(x')) =
s^2 e (delta_ij - d_i d_j). Everything here is in units of s^2.

Equations are the n values, then the derivatives in the first coordinate at k places, and so on.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack, solve_triangular

from surrokit.errors import SurrogateFitError
from surrokit.types import FloatArray, IntArray

JITTERS = (0.0, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6)
"""Additions to the diagonal that are tried in turn, relative to the kernel's variance."""


def unit_matrix(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return exp(-|x - x'|^2 / 2) between rows (n, dim) and rows (m, dim), shape (n, m).

    Distances come from one matrix product, |x|^2 - 2 x . x' + |x'|^2, about the mean of the latter,
    so that few digits are lost; rounding does not depend on which of the former there are.
    """
    same = left is right
    centre = right.mean(axis=0) if len(right) else 0.0
    left = left - centre
    right = left if same else right - centre
    exponents: FloatArray = left @ right.T
    exponents -= 0.5 * np.einsum("nd,nd->n", left, left)[:, None]
    exponents -= 0.5 * np.einsum("md,md->m", right, right)
    np.minimum(exponents, 0.0, out=exponents)
    if same:
        np.fill_diagonal(exponents, 0.0)
    return np.exp(exponents, out=exponents)


def weighted_squares(weights: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
    """Return sum_nm weights[n, m] (left[n, k] - right[m, k])^2 for each k, shape (dim,)."""
    mixed = np.einsum("nk,nk->k", left, weights @ right)
    return np.asarray(
        weights.sum(axis=1) @ np.square(left) + weights.sum(axis=0) @ np.square(right) - 2.0 * mixed
    )


def _differences(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return left[n, j] - right[b, j] as an array of shape (dim, n, b)."""
    return np.asarray(left.T[:, :, None] - right.T[:, None, :])


def cross_matrix(where: FloatArray, scaled: FloatArray, gradient_rows: IntArray) -> FloatArray:
    """Return the kernel between values at ``where (m, dim)`` and all equations: (m, n + k dim).

    Values are known at ``scaled (n, dim)``, derivatives at its rows ``gradient_rows (k,)``.
    """
    values = unit_matrix(where, scaled)
    if not len(gradient_rows):
        return values
    away = _differences(where, scaled[gradient_rows])
    away *= values[:, gradient_rows]
    return np.concatenate([values, *away], axis=1)


def joint_matrix(scaled: FloatArray, gradient_rows: IntArray) -> FloatArray:
    """Return the kernel between all equations, shape (n + k dim, n + k dim)."""
    n, dim = scaled.shape
    k = len(gradient_rows)
    above = cross_matrix(scaled, scaled, gradient_rows)
    if not k:
        return above
    matrix = np.empty((n + k * dim, n + k * dim))
    matrix[:n] = above
    matrix[n:, :n] = above[:, n:].T
    among, at = above[np.ix_(gradient_rows, gradient_rows)], scaled[gradient_rows]
    away = _differences(at, at)
    block = matrix[n:, n:].reshape(dim, k, dim, k)
    np.multiply(-(among * away)[:, :, None, :], away.transpose(1, 0, 2), out=block)
    np.einsum("iaib->iab", block)[...] += among
    return matrix


def scale_derivatives(
    adjoint: FloatArray, matrix: FloatArray, scaled: FloatArray, gradient_rows: IntArray
) -> FloatArray:
    """Return the derivative of sum(adjoint * matrix) in log l_k through x = z / l, shape (dim,).

    ``matrix`` is that of :func:`joint_matrix`, and ``adjoint`` a symmetric one of the same shape.
    """
    n, dim = scaled.shape
    values = matrix[:n, :n]
    total = weighted_squares(adjoint[:n, :n] * values, scaled, scaled)
    if not len(gradient_rows):
        return total
    k, at = len(gradient_rows), scaled[gradient_rows]
    away, by_value = _differences(scaled, at), values[:, gradient_rows]
    cross = adjoint[:n, n:].reshape(n, dim, k)
    pulls = by_value * np.einsum("njb,jnb->nb", cross, away)
    total += 2.0 * weighted_squares(pulls, scaled, at)
    total -= 2.0 * np.einsum("njb,jnb->j", cross, by_value * away)
    away, among = away[:, gradient_rows], by_value[gradient_rows]
    block = adjoint[n:, n:].reshape(dim, k, dim, k)
    turned = np.einsum("iajb,jab->iab", block, away)
    levels = np.einsum("iaib->ab", block) - np.einsum("iab,iab->ab", turned, away)
    total += weighted_squares(among * levels, at, at)
    total += 2.0 * np.einsum("iab,iab->i", turned, among * away)
    return total


def factorise(
    matrix: FloatArray,
    scale: float,
    what: str = "kernel matrix",
    room: float = 10.0 * float(np.finfo(np.float64).eps),
) -> tuple[FloatArray, float]:
    """Return the lower Cholesky factor of a symmetric matrix, and the jitter that it needed.

    Jitters are relative to ``scale``, the diagonal of the matrix (n, n) without noise, and tried in
    turn. A factor is not taken if the square of a pivot is below ``room``, relative to it: what is
    solved with that has no correct digit.

    Raises
    ------
    SurrogateFitError
        If the largest jitter does not suffice.
    """
    if not len(matrix):
        return np.empty((0, 0)), 0.0
    diagonal = np.diag(matrix).copy()
    for jitter in JITTERS:
        shifted = matrix.T.copy(order="F")
        np.fill_diagonal(shifted, diagonal + jitter * scale)
        factor, failed = lapack.dpotrf(shifted, lower=1, clean=1, overwrite_a=1)
        pivots = np.diag(factor)
        if not failed and np.isfinite(pivots).all() and pivots.min() ** 2 > room * scale:
            return np.asarray(factor), jitter
    raise SurrogateFitError(
        f"the {len(matrix)} x {len(matrix)} {what} has no Cholesky factor even with "
        f"{JITTERS[-1]:g} of its scale added to its diagonal; use more noise, shorter length "
        "scales or whiten=True where these are settings, or rescale the parameters"
    )


def solve(factor: FloatArray, right: FloatArray, *, transposed: bool = False) -> FloatArray:
    """Return L^-1 b, or L^-T b, for a lower triangular L (n, n) and b of shape (n,) or (n, m)."""
    if right.size == 0:
        return np.array(right, dtype=np.float64)
    found: FloatArray = solve_triangular(
        factor, right, lower=True, trans=int(transposed), check_finite=False
    )
    return found


def inverse_of(factor: FloatArray) -> FloatArray:
    """Return (L L^T)^-1, shape (n, n); nothing should be solved with it."""
    lower = lapack.dpotri(factor, lower=1)[0]
    return np.asarray(lower + np.tril(lower, -1).T)
