"""Anderson acceleration of a fixed-point iteration, for many chains at once."""

from __future__ import annotations

import numpy as np

from surrokit.types import FloatArray, IntArray

_RIDGE = 1e-12  # of the normal equations, whose diagonal is 1
_GROWTH = 100.0  # of the squared residual over its least; more is a step that went astray


class Anderson:
    """Anderson's method, type II: from some last points and residuals to the next point.

    Walker and Ni (2011), doi:10.1137/10078356X. The combination of the last residuals that is
    shortest, in a norm that the caller brings, says where to go. A chain whose residual has grown
    to ten times its least goes back to where that was, forgets, and takes half a plain step.

    Parameters
    ----------
    depth
        How many differences of residuals to combine, at most.
    """

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self._steps: list[FloatArray] = []  # of point plus residual
        self._changes: list[FloatArray] = []  # of residuals
        self._duals: list[FloatArray] = []  # the same, after the norm's matrix
        self._last: list[FloatArray] = []
        self._best: list[FloatArray] = []
        self._least = np.empty(0)
        self._damping = np.empty(0)

    def next(
        self, points: FloatArray, residuals: FloatArray, duals: FloatArray, sizes: FloatArray
    ) -> FloatArray:
        """Return the next point of each chain, shape (n, dim).

        Parameters
        ----------
        points : ndarray of shape (n, dim)
            Where the chains are.
        residuals : ndarray of shape (n, dim)
            What a plain step would add.
        duals : ndarray of shape (n, dim)
            The residuals times the matrix of the norm.
        sizes : ndarray of shape (n,)
            Their products: squared norms.
        """
        if self._last:
            self._remember(points, residuals, duals)
        else:
            self._least, self._damping = sizes.copy(), np.ones(len(sizes))
            self._best = [points.copy(), residuals.copy(), duals.copy()]
        astray = np.flatnonzero(sizes > _GROWTH * self._least)
        following = points + residuals
        self._last = [points, residuals, duals]
        if self._changes:
            following -= self._correction(duals)
        better = sizes < self._least
        self._least = np.where(better, sizes, self._least)
        for best, now in zip(self._best, self._last, strict=True):
            best[better] = now[better]
        if astray.size:
            following[astray] = self._return_half_way(astray)
        return following

    def keep(self, rows: IntArray) -> None:
        """Go on with some of the chains only."""
        if not self._last:
            return
        for arrays in (self._steps, self._changes, self._duals, self._last, self._best):
            arrays[:] = [array[rows] for array in arrays]
        self._least, self._damping = self._least[rows], self._damping[rows]

    def _remember(self, points: FloatArray, residuals: FloatArray, duals: FloatArray) -> None:
        before, residuals_before, duals_before = self._last
        change = residuals - residuals_before
        self._changes.append(change)
        self._steps.append(points - before + change)
        self._duals.append(duals - duals_before)
        if len(self._changes) > min(self.depth, points.shape[1]):
            for arrays in (self._changes, self._steps, self._duals):
                arrays.pop(0)

    def _correction(self, duals: FloatArray) -> FloatArray:
        changes = np.stack(self._changes, axis=1)
        gram = np.einsum("nid,njd->nij", changes, np.stack(self._duals, axis=1))
        right = np.einsum("nid,nd->ni", changes, duals)
        return np.asarray(
            np.einsum("ni,nid->nd", _solve(gram, right), np.stack(self._steps, axis=1))
        )

    def _return_half_way(self, rows: IntArray) -> FloatArray:
        """Return chains to half a plain step from their best points, and forget their past."""
        for arrays in (self._steps, self._changes, self._duals):
            for array in arrays:
                array[rows] = 0.0
        self._last = [array.copy() for array in self._last]
        for last, best in zip(self._last, self._best, strict=True):
            last[rows] = best[rows]
        self._damping[rows] *= 0.5
        points, residuals, _ = self._best
        return points[rows] + self._damping[rows, None] * residuals[rows]


def _solve(gram: FloatArray, right: FloatArray) -> FloatArray:
    """Solve normal equations, shapes (n, m, m) and (n, m); a column of zeros gets nothing."""
    m = gram.shape[1]
    both = np.arange(m)
    diagonal = gram[:, both, both]
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.where(diagonal > 0.0, 1.0 / np.sqrt(diagonal), 0.0)
    matrix = gram * scale[:, :, None] * scale[:, None, :]
    matrix[:, both, both] = 1.0 + _RIDGE
    x = right * scale
    for i in range(m - 1):  # elimination without pivots: the matrix is positive definite
        factor = matrix[:, i + 1 :, i] / matrix[:, i, i, None]
        matrix[:, i + 1 :, i + 1 :] -= factor[:, :, None] * matrix[:, i, None, i + 1 :]
        x[:, i + 1 :] -= factor * x[:, i, None]
    for i in range(m - 1, -1, -1):
        x[:, i] -= np.einsum("nj,nj->n", matrix[:, i, i + 1 :], x[:, i + 1 :])
        x[:, i] /= matrix[:, i, i]
    return np.asarray(x * scale)
