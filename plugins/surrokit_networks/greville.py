"""Least squares row by row: Proposition 1 of the paper, after Greville (1960).

The solution v of min |A v - t|^2 + ridge |v_held|^2 is kept up to date as rows come in, at O(k^2) a
row for k columns, and rows are not stored. Some columns (level and trend) may be free: no ridge
holds them back, and among solutions it is the other coefficients that have least norm.

Write (A^T A + lambda P)^-1 = Phi / lambda + Theta + O(lambda) for lambda -> 0, with P the identity
on columns that need holding. With no free column and no ridge, Phi = I - A^+ A and
Theta = A^+ (A^+)^T are the matrices of Proposition 1, and one step of the Sherman-Morrison formula,
taken to its limit, gives its two cases:

- c = Phi h = 0: b = Theta h / (1 + h . Theta h), and Theta loses Theta h b^T;
- c != 0: b = c / |c|^2, Phi loses c b^T, and Theta - Theta h b^T - b (Theta h)^T
  + (1 + h . Theta h) b b^T takes the place of Theta.

Either way v gains (t - h . v) b. Where some columns are free, |c| is taken over the others only.
Once the columns are independent, or where there is a ridge, Phi is zero, and what is left is
recursive least squares. Many rows at once go by the Woodbury formula, in matrix products.

A^T A and A^T t are kept too: rounding errors are seen in the residual of the normal equations, and
mended from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeAlias

import attrs
import numpy as np

from surrokit.limits import check_deadline
from surrokit.types import BoolArray, FloatArray
from surrokit_networks.equations import NormalEquations

TOLERANCE = 1e-6
"""Part of |h| up to which c = Phi h counts as zero: below it, it is rounding error.

Measured on whitened softplus features (s = 1000): from 1e-8 to 1e-6 predictions agree with the
batch solution; with 1e-10 they are off by ten orders of magnitude.
"""

DRIFT = 1e-9
"""Residual of the normal equations, as :meth:`RowSums.residual` measures it, above which the
solution is repaired."""

CHECK_EVERY = 256
"""Rows between two looks at the residual."""

_BLOCK = 128
"""Rows taken in at once, at most."""

_LEAST_PIVOT = 0.9
"""Least pivot of 1 + H Theta H^T, which is at least 1, that is taken for rounding error."""

_ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
"""Relative rounding error of a sum of squares."""

_JITTERS = (0.0, 1.0, 1e2, 1e4)
"""Multiples of the rounding error added to a diagonal, until the matrix has a Cholesky factor."""

Parts: TypeAlias = tuple[FloatArray, FloatArray, FloatArray | None, int]
"""v, Theta, Phi (None where it is zero), and the rank of the columns that Phi stands for."""


@attrs.define(kw_only=True, eq=False)
class RowSums:
    """A^T A, A^T t and t^T t of all rows so far, gathered in place.

    Parameters
    ----------
    gram : ndarray of shape (k, k)
        A^T A; Fortran order, lower triangle only.
    n_free
        How many of the first columns no ridge holds back.
    """

    gram: FloatArray
    right: FloatArray
    squares: float
    n_free: int
    ridge: float

    @classmethod
    def empty(cls, n_columns: int, *, n_free: int, ridge: float) -> Self:
        """Return the sums over no rows."""
        gram = np.zeros((n_columns, n_columns), order="F")
        return cls(gram=gram, right=np.zeros(n_columns), squares=0.0, n_free=n_free, ridge=ridge)

    @classmethod
    def of(cls, normal: NormalEquations, *, n_free: int, ridge: float) -> Self:
        """Return the sums that are normal equations of one target."""
        gram, right = np.asfortranarray(normal.gram), normal.right[:, 0].copy()
        squares = float(normal.squares[0])
        return cls(gram=gram, right=right, squares=squares, n_free=n_free, ridge=ridge)

    def add(self, rows: FloatArray, targets: FloatArray) -> None:
        """Take in rows, shape (m, k), and their targets, shape (m,)."""
        from scipy.linalg import blas

        self.right += targets @ rows
        self.squares += float(targets @ targets)
        if len(rows):
            self.gram = blas.dsyrk(1.0, rows.T, beta=1.0, c=self.gram, lower=1, overwrite_c=1)

    def plus(self, other: RowSums) -> RowSums:
        """Return the sums over both sets of rows, with the ridge of these."""
        return attrs.evolve(
            self,
            gram=np.asfortranarray(self.gram + other.gram),
            right=self.right + other.right,
            squares=self.squares + other.squares,
        )

    def residual(self, solution: FloatArray) -> tuple[FloatArray, float]:
        """Return A^T t - (A^T A + ridge) v, shape (k,), zero at the solution, and how large it is.

        That is the largest cosine between a column (with its ridge) and what v leaves of the
        targets, times what part of the targets that is.
        """
        from scipy.linalg import blas

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

    def whole_gram(self) -> FloatArray:
        """Return A^T A with both triangles."""
        return np.asarray(np.tril(self.gram) + np.tril(self.gram, -1).T)

    def solve(self, tolerance: float) -> Parts:
        """Return the solution, from one factorisation of the normal equations.

        The condition number is squared here, so directions below the root of the rounding error
        count as not seen.

        Raises
        ------
        ValueError
            NumPy's LinAlgError, if there is no factor.
        """
        if self.ridge > 0.0:
            return *self._penalise(), None, self.n_free
        values, vectors = np.linalg.eigh(self.whole_gram())
        seen = values > _ROUNDING * float(values.sum())
        roots = np.sqrt(values[seen])
        rows, targets = roots[:, None] * vectors[:, seen].T, vectors[:, seen].T @ self.right / roots
        return _least_norm(rows, targets, self.n_free, tolerance)

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
                solution = cho_solve((factor, True), self.right, check_finite=False)
                inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
                return np.asarray(solution), np.asarray(inverse)
        raise np.linalg.LinAlgError("normal equations have no Cholesky factor")


def _from_rows(rows: FloatArray, targets: FloatArray, n_free: int, ridge: float) -> Parts:
    """Return the solution under a positive ridge, by orthogonal transformations."""
    from scipy.linalg import lapack, solve_triangular

    k = rows.shape[1]
    bottom = np.zeros((k - n_free, k + 1))
    np.fill_diagonal(bottom[:, n_free:], np.sqrt(ridge))
    stacked = np.vstack([np.column_stack([rows, targets]), bottom])
    triangle = np.asarray(np.linalg.qr(stacked, mode="r"), dtype=np.float64)
    corner = triangle[:k, :k]
    solution = np.asarray(solve_triangular(corner, triangle[:k, k]), dtype=np.float64)
    theta = np.asarray(lapack.dpotri(np.asfortranarray(corner.T), lower=1)[0])
    return solution, theta, None, n_free


def _least_norm(rows: FloatArray, targets: FloatArray, n_free: int, tolerance: float) -> Parts:
    """Return the solution of rows (n, k) where there is no ridge.

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
    theta = np.asfortranarray(theta)
    if seen.sum() == k - n_free:
        return solution, theta, None, k
    phi = lift @ lift.T - (lift @ vectors.T) @ (lift @ vectors.T).T
    return solution, theta, np.asfortranarray(phi), n_free + int(seen.sum())


@attrs.define(kw_only=True, eq=False)
class Greville:
    """A least-squares solution that takes in rows and keeps none of them.

    Make one with :meth:`empty`, :meth:`of_rows` or :meth:`of_sums`. Weighted rows are handed in
    times the root of their weight.

    Parameters
    ----------
    solution : ndarray of shape (k,)
        v.
    theta : ndarray of shape (k, k)
        Theta; Fortran order, lower triangle only.
    phi : ndarray of shape (k, k) or None
        Phi, likewise; None where it is zero.
    rank
        Independent directions so far, free columns included.
    sums
        A^T A and A^T t, to repair from.
    tolerance
        Part of |h| up to which c counts as zero.
    unchecked
        Rows since the last look at the residual.
    repairs
        How often the solution was made anew from the sums.
    """

    solution: FloatArray
    theta: FloatArray
    phi: FloatArray | None
    rank: int
    sums: RowSums
    tolerance: float = TOLERANCE
    unchecked: int = 0
    repairs: int = 0

    @classmethod
    def empty(cls, n_columns: int, *, ridge: float = 0.0, tolerance: float = TOLERANCE) -> Self:
        """Return the solution of no rows at all, zero, without free columns."""
        return cls(
            solution=np.zeros(n_columns),
            theta=np.asfortranarray(
                np.eye(n_columns) / ridge if ridge else np.zeros((n_columns,) * 2)
            ),
            phi=None if ridge else np.eye(n_columns, order="F"),
            rank=0,
            sums=RowSums.empty(n_columns, n_free=0, ridge=ridge),
            tolerance=tolerance,
        )

    @classmethod
    def of_rows(
        cls,
        rows: FloatArray,
        targets: FloatArray,
        *,
        n_free: int = 0,
        ridge: float = 0.0,
        tolerance: float = TOLERANCE,
    ) -> Self:
        """Return the solution of rows A (n, k) and targets t (n,), by orthogonal transformations.

        Any matrix with the same A^T A will do for A, with the targets that go with it. The first
        ``n_free`` columns, which no ridge holds back, must be independent. The ridge is lambda on
        all others, 0 for the Moore-Penrose inverse, equation (11).

        Raises
        ------
        ValueError
            NumPy's LinAlgError, if the free columns are dependent.
        """
        sums = RowSums.empty(rows.shape[1], n_free=n_free, ridge=ridge)
        sums.add(rows, targets)
        if ridge > 0.0:
            return cls._of(_from_rows(rows, targets, n_free, ridge), sums, tolerance)
        return cls._of(_least_norm(rows, targets, n_free, tolerance), sums, tolerance)

    @classmethod
    def of_sums(cls, sums: RowSums, tolerance: float = TOLERANCE) -> Self:
        """Return the solution of normal equations, which are kept and added to.

        Raises
        ------
        ValueError
            NumPy's LinAlgError, if they have none.
        """
        return cls._of(sums.solve(tolerance), sums, tolerance)

    @classmethod
    def _of(cls, parts: Parts, sums: RowSums, tolerance: float) -> Self:
        solution, theta, phi, rank = parts
        return cls(
            solution=solution,
            theta=np.asfortranarray(theta),
            phi=phi,
            rank=rank,
            sums=sums,
            tolerance=tolerance,
        )

    def __len__(self) -> int:
        return len(self.solution)

    @property
    def degrees(self) -> float:
        """Effective number of parameters: the trace of Theta A^T A."""
        if self.sums.ridge == 0.0:
            return float(self.rank)
        held = np.diag(self.theta)[self.sums.n_free :]
        return float(len(self) - self.sums.ridge * held.sum())

    def update(self, rows: FloatArray, targets: FloatArray) -> None:
        """Take in rows, shape (m, k), and targets, shape (m,); mend rounding errors."""
        for start in range(0, len(rows), _BLOCK):
            check_deadline()
            block, sought = rows[start : start + _BLOCK], targets[start : start + _BLOCK]
            self.sums.add(block, sought)
            if not self._take_in(block, sought):
                self._solve_again()
            self.unchecked += len(block)
            if self.unchecked >= CHECK_EVERY:
                self.check()

    def check(self) -> bool:
        """Look at the residual of the normal equations, O(k^2), and repair what has drifted.

        First by one step of iterative refinement, v + Theta (A^T t - (A^T A + ridge) v); where that
        is not enough Theta itself is off, and both are made anew from the sums, O(k^3): return
        whether they were.
        """
        from scipy.linalg import blas

        self.unchecked = 0
        left, drift = self.sums.residual(self.solution)
        if drift <= 0.01 * DRIFT:
            return False
        refined = self.solution + blas.dsymv(1.0, self.theta, left, lower=1)
        _, after = self.sums.residual(refined)
        if after < drift:
            self.solution, drift = refined, after
        return drift > DRIFT and self._solve_again(drift)

    def _solve_again(self, drift: float = np.inf) -> bool:
        """Solve from the sums; keep what there is unless the residual becomes less."""
        try:
            solution, theta, phi, rank = self.sums.solve(self.tolerance)
        except np.linalg.LinAlgError:
            return False
        if not self.sums.residual(solution)[1] < drift:
            return False
        self.solution, self.theta, self.phi, self.rank = solution, theta, phi, rank
        self.repairs += 1
        return True

    def _take_in(self, rows: FloatArray, targets: FloatArray) -> bool:
        """Take in some rows by the Woodbury formula; return whether the numbers are sound."""
        from scipy.linalg import blas, solve_triangular

        if self.phi is not None:
            fresh, beyond = self._independent(rows)
            if fresh.any():
                self._raise_rank(rows[fresh], beyond, targets[fresh])
                rows, targets = rows[~fresh], targets[~fresh]
            if not len(rows):
                return True
        gains = blas.dsymm(1.0, self.theta, rows.T, lower=1)
        inner = rows @ gains
        inner[np.diag_indices(len(inner))] += 1.0
        try:
            factor = np.linalg.cholesky(inner)
        except np.linalg.LinAlgError:
            return False
        if np.diag(factor).min() ** 2 < _LEAST_PIVOT:
            return False
        halves = blas.dtrsm(1.0, factor.T, gains, side=1, lower=0)
        errors = solve_triangular(factor, targets - rows @ self.solution, lower=True)
        self.solution += halves @ errors
        self.theta = blas.dsyrk(-1.0, halves, beta=1.0, c=self.theta, lower=1, overwrite_c=1)
        return True

    def _independent(self, rows: FloatArray) -> tuple[BoolArray, FloatArray]:
        """Return which rows bring something new, also to one another, and their c, (k, r)."""
        from scipy.linalg import blas, qr

        assert self.phi is not None
        c = blas.dsymm(1.0, self.phi, rows.T, lower=1)
        lengths = np.linalg.norm(rows, axis=1)
        lengths[lengths == 0.0] = 1.0
        corner, order = qr(c[self.sums.n_free :] / lengths, mode="r", pivoting=True)
        rank = int(np.count_nonzero(np.abs(np.diag(corner)) > self.tolerance))
        fresh = np.zeros(len(rows), dtype=bool)
        fresh[order[:rank]] = True
        c = c[:, fresh]
        if rank and self.sums.n_free == 0:
            c = blas.dsymm(1.0, self.phi, c, lower=1)
        return fresh, np.asarray(c)

    def _raise_rank(self, rows: FloatArray, beyond: FloatArray, targets: FloatArray) -> None:
        """Take in rows that are independent of one another and of all before: case c != 0.

        With several, b of Proposition 1 becomes B = C (C^T C)^-1, the inner product over columns
        that are held back.
        """
        from scipy.linalg import blas, solve_triangular

        assert self.phi is not None
        corner = np.linalg.qr(beyond[self.sums.n_free :], mode="r")
        unit = solve_triangular(corner, beyond.T, trans="T").T
        gains = np.asfortranarray(solve_triangular(corner, unit.T).T)  # B
        own = blas.dsymm(1.0, self.theta, rows.T, lower=1)
        inner = rows @ own
        inner[np.diag_indices(len(inner))] += 1.0
        self.solution += gains @ (targets - rows @ self.solution)
        # Theta - D B^T - B D^T + B (1 + H D) B^T, as one symmetric product of rank 2 r.
        own = np.asfortranarray(own - 0.5 * gains @ inner)
        self.theta = blas.dsyr2k(-1.0, own, gains, beta=1.0, c=self.theta, lower=1, overwrite_c=1)
        unit = np.asfortranarray(unit)
        self.phi = blas.dsyrk(-1.0, unit, beta=1.0, c=self.phi, lower=1, overwrite_c=1)
        self.rank += len(rows)
        if self.rank >= len(self):
            self.phi = None

    def state(self) -> dict[str, Any]:
        """Return everything, as plain arrays and numbers."""
        return attrs.asdict(self, value_serializer=_copied)

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> Self:
        """Return what ``state`` was taken from."""
        sums = {name: _copied(None, None, value) for name, value in state["sums"].items()}
        own = {name: _copied(None, None, value) for name, value in state.items()}
        return cls(**{**own, "sums": RowSums(**sums)})


def _copied(_: Any, __: Any, value: Any) -> Any:
    """Return a copy of an array, matrices in Fortran order, and anything else as it is."""
    return np.array(value, dtype=np.float64, order="F") if isinstance(value, np.ndarray) else value
