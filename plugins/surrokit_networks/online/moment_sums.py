"""The sums that normal equations are made of, with one right side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import attrs
import numpy as np

from surrokit.types import FloatArray

_PENDING = 64
"""Rows that are kept until their products are taken, which is cheaper together."""

_ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
"""Relative rounding error of a sum of squares."""

_JITTERS = (0.0, 1.0, 1e2, 1e4)
"""Multiples of the rounding error added to a diagonal, until the matrix has a Cholesky factor."""


@attrs.define(kw_only=True, eq=False)
class MomentSums:
    """A^T A, A^T t and t^T t of all rows so far, gathered in place.

    Parameters
    ----------
    gram : ndarray of shape (k, k)
        A^T A; Fortran order, lower triangle only.
    right : ndarray of shape (k,)
        A^T t.
    squares
        t^T t.
    n_free
        How many of the first columns no ridge holds back.
    ridge
        lambda on all others.
    """

    gram: FloatArray
    right: FloatArray
    squares: float
    n_free: int
    ridge: float
    _rows: FloatArray = attrs.field(init=False, repr=False)
    _n_pending: int = attrs.field(default=0, init=False, repr=False)

    @_rows.default
    def _no_rows(self) -> FloatArray:
        return np.empty((_PENDING, len(self.right)))

    @classmethod
    def empty(cls, n_columns: int, *, n_free: int, ridge: float) -> Self:
        """Return the sums over no rows."""
        return cls(
            gram=np.zeros((n_columns, n_columns), order="F"),
            right=np.zeros(n_columns),
            squares=0.0,
            n_free=n_free,
            ridge=ridge,
        )

    def add(self, rows: FloatArray, targets: FloatArray) -> None:
        """Take in rows, shape (m, k), and their targets, shape (m,)."""
        self.right += targets @ rows
        self.squares += float(targets @ targets)
        m = len(rows)
        if self._n_pending + m > _PENDING:
            self.flush()
        if m >= _PENDING // 2:
            self._gather(rows)
            return
        self._rows[self._n_pending : self._n_pending + m] = rows
        self._n_pending += m

    def flush(self) -> None:
        """Take the products of rows that were kept for it."""
        self._gather(self._rows[: self._n_pending])
        self._n_pending = 0

    def _gather(self, rows: FloatArray) -> None:
        from scipy.linalg import blas

        if len(rows):
            self.gram = blas.dsyrk(1.0, rows.T, beta=1.0, c=self.gram, lower=1, overwrite_c=1)

    def residual(self, solution: FloatArray) -> tuple[FloatArray, float]:
        """Return A^T t - (A^T A + ridge) v, shape (k,), and how large it is.

        It is zero at the solution. Its size is the largest cosine between a column (with its
        ridge) and what v leaves of the targets, times what part of the targets that is.
        """
        from scipy.linalg import blas

        self.flush()
        left = self.right - blas.dsymv(1.0, self.gram, solution, lower=1)
        left[self.n_free :] -= self.ridge * solution[self.n_free :]
        lengths = np.diag(self.gram).copy()
        lengths[self.n_free :] += self.ridge
        scale = np.sqrt(np.maximum(lengths, np.finfo(float).tiny) * (self.squares or 1.0))
        size = float(np.max(np.abs(left) / scale, initial=0.0))
        return left, size if np.isfinite(size) else float("inf")

    def squared_error(self, solution: FloatArray) -> float:
        """Return |A v - t|^2 at the solution v."""
        held = solution[self.n_free :]
        reached = float(solution @ self.right) + self.ridge * float(held @ held)
        return max(0.0, self.squares - reached)

    def solve(self, tolerance: float) -> tuple[FloatArray, FloatArray, FloatArray | None, int]:
        """Return v, Theta, Phi and the rank of Phi's columns, from one factorisation.

        The condition number is squared here, so directions below the root of the rounding error
        cannot be told from nothing.

        Parameters
        ----------
        tolerance
            Without a ridge: part of the largest singular value below which a direction counts as
            not seen.

        Raises
        ------
        ValueError
            NumPy's LinAlgError, if there is no factor.
        """
        self.flush()
        if self.ridge > 0.0:
            solution, theta = self._penalise()
            return solution, theta, None, self.n_free
        return self._least_norm(tolerance)

    def _penalise(self) -> tuple[FloatArray, FloatArray]:
        from scipy.linalg import cho_solve, lapack

        own = np.arange(len(self.right))
        noise = _ROUNDING * float(np.diag(self.gram).max(initial=0.0))
        for jitter in _JITTERS:
            matrix = self.gram.copy(order="F")
            matrix[own[self.n_free :], own[self.n_free :]] += self.ridge
            matrix[own, own] += jitter * noise
            factor, info = lapack.dpotrf(matrix, lower=1, overwrite_a=1)
            if info == 0:
                break
        else:
            raise np.linalg.LinAlgError("normal equations have no Cholesky factor")
        solution = np.asarray(cho_solve((factor, True), self.right), dtype=np.float64)
        inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
        return solution, np.asarray(inverse, dtype=np.float64)

    def _least_norm(
        self, tolerance: float
    ) -> tuple[FloatArray, FloatArray, FloatArray | None, int]:
        from scipy.linalg import solve_triangular

        k, n = len(self.right), self.n_free
        whole = np.tril(self.gram) + np.tril(self.gram, -1).T
        corner = np.linalg.cholesky(whole[:n, :n])
        known = solve_triangular(corner, whole[:n, n:], lower=True) if n else whole[:n, n:]
        values, vectors = np.linalg.eigh(whole[n:, n:] - known.T @ known)
        largest = float(np.diag(whole).sum())
        seen = values > max(tolerance**2, _ROUNDING) * largest
        values, vectors = values[seen], vectors[:, seen]
        free = solve_triangular(corner, known, lower=True, trans="T") if n else known
        lift = np.vstack([-free, np.eye(k - n)])
        roots = lift @ (vectors / np.sqrt(values))
        theta = roots @ roots.T
        if n:
            inverse = solve_triangular(corner, np.eye(n), lower=True)
            theta[:n, :n] += inverse.T @ inverse
        solution = theta @ self.right
        if seen.all():
            return solution, np.asfortranarray(theta), None, k
        shown = lift @ vectors
        phi = lift @ lift.T - shown @ shown.T
        return solution, np.asfortranarray(theta), np.asfortranarray(phi), n + int(seen.sum())

    def state(self) -> dict[str, Any]:
        """Return everything, as plain arrays and numbers."""
        self.flush()
        return {
            "gram": self.gram.copy(order="F"),
            "right": self.right.copy(),
            "squares": self.squares,
            "n_free": self.n_free,
            "ridge": self.ridge,
        }

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> Self:
        """Return what ``state`` was taken from."""
        return cls(
            gram=np.array(state["gram"], dtype=np.float64, order="F"),
            right=np.array(state["right"], dtype=np.float64),
            squares=float(state["squares"]),
            n_free=int(state["n_free"]),
            ridge=float(state["ridge"]),
        )
