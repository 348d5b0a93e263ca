"""The kernel between values and derivatives, in coordinates x = z / l with unit variance.

A derivative of a Gaussian process is one too: cov(f(x), d_j f(x')) = e d_j and
cov(d_i f(x), d_j f(x')) = e (delta_ij - d_i d_j), with d = x - x' and e = exp(-|d|^2 / 2)
(Rasmussen and Williams 2006, section 9.4).

Equations are the n values, then the derivatives in the first coordinate at k places, and so on.
"""

from __future__ import annotations

import numpy as np

from surrokit.types import FloatArray, IntArray
from surrokit_gp.kernel.kernel import unit_matrix, weighed_squares


def joint_matrix(scaled: FloatArray, slope_rows: IntArray) -> FloatArray:
    """Return the kernel between all equations, shape (n + k dim, n + k dim).

    Parameters
    ----------
    scaled : ndarray of shape (n, dim)
        x, where values are known.
    slope_rows : ndarray of shape (k,)
        At which of them derivatives are known.
    """
    n, dim = scaled.shape
    heights = unit_matrix(scaled, scaled)
    if not len(slope_rows):
        return heights
    k = len(slope_rows)
    matrix = np.empty((n + k * dim, n + k * dim))
    matrix[:n, :n] = heights
    away = _differences(scaled, scaled[slope_rows])
    by_height = heights[:, slope_rows]
    cross = matrix[:n, n:].reshape(n, dim, k)
    np.multiply(away.transpose(1, 0, 2), by_height[:, None, :], out=cross)
    matrix[n:, :n] = matrix[:n, n:].T
    among, away = by_height[slope_rows], away[:, slope_rows]
    block = matrix[n:, n:].reshape(dim, k, dim, k)
    np.multiply(-(among * away)[:, :, None, :], away.transpose(1, 0, 2), out=block)
    diagonal = np.einsum("iaib->iab", block)
    diagonal += among
    return matrix


def cross_matrix(where: FloatArray, scaled: FloatArray, slope_rows: IntArray) -> FloatArray:
    """Return the kernel between values at new places and all equations, shape (m, n + k dim).

    Parameters
    ----------
    where : ndarray of shape (m, dim)
        x of the new places.
    scaled : ndarray of shape (n, dim)
        x, where values are known.
    slope_rows : ndarray of shape (k,)
        At which of them derivatives are known.
    """
    heights = unit_matrix(where, scaled)
    if not len(slope_rows):
        return heights
    away = _differences(where, scaled[slope_rows])
    away *= heights[:, slope_rows]
    return np.concatenate([heights, *away], axis=1)


def scale_derivatives(
    adjoint: FloatArray, matrix: FloatArray, scaled: FloatArray, slope_rows: IntArray
) -> FloatArray:
    """Return the derivative of sum(adjoint * matrix) in log l_k, shape (dim,).

    Only what comes through x = z / l.

    Parameters
    ----------
    adjoint : ndarray of shape (n + k dim, n + k dim)
        Symmetric; what the entries of the matrix are weighed with.
    matrix : ndarray of the same shape
        From :func:`joint_matrix`.
    scaled : ndarray of shape (n, dim)
        x.
    slope_rows : ndarray of shape (k,)
        Where derivatives are known.
    """
    n, dim = scaled.shape
    heights = matrix[:n, :n]
    total = weighed_squares(adjoint[:n, :n] * heights, scaled, scaled)
    if not len(slope_rows):
        return total
    k, at = len(slope_rows), scaled[slope_rows]
    away, by_height = _differences(scaled, at), heights[:, slope_rows]
    cross = adjoint[:n, n:].reshape(n, dim, k)
    pulls = by_height * np.einsum("njb,jnb->nb", cross, away)
    total += 2.0 * weighed_squares(pulls, scaled, at)
    total -= 2.0 * np.einsum("njb,jnb->j", cross, by_height * away)
    away, among = away[:, slope_rows], by_height[slope_rows]
    block = adjoint[n:, n:].reshape(dim, k, dim, k)
    turned = np.einsum("iajb,jab->iab", block, away)
    levels = np.einsum("iaib->ab", block) - np.einsum("iab,iab->ab", turned, away)
    total += weighed_squares(among * levels, at, at)
    total += 2.0 * np.einsum("iab,iab->i", turned, among * away)
    return total


def _differences(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return left[n, j] - right[b, j] as an array of shape (dim, n, b)."""
    return np.asarray(left.T[:, :, None] - right.T[:, None, :])
