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
recursive least squares, many rows at once by the Woodbury formula.

A^T A and A^T t are kept too: rounding errors are seen in the residual of the normal equations, and
mended from them.
"""

from __future__ import annotations

from typing import Self, TypeAlias

import attrs
import numpy as np
from scipy.linalg import solve_triangular

from surrokit.limits import check_deadline
from surrokit.types import FloatArray
from surrokit_networks.least_squares import NormalEquations, Spectrum

TOLERANCE = 1e-6
"""Part of |h| up to which c = Phi h counts as zero: below it, it is rounding error.

Measured on whitened softplus features (s = 1000): from 1e-8 to 1e-6 predictions agree with the
batch solution; with 1e-10 they are off by ten orders of magnitude.
"""

DRIFT = 1e-9
"""Residual of the normal equations (:meth:`Greville.residual`) above which they are solved anew."""

CHECK_EVERY = 256
"""Rows between two looks at the residual."""

Parts: TypeAlias = tuple[FloatArray, FloatArray, FloatArray | None, int]
"""v, Theta, Phi (None where it is zero), and the rank of the columns that Phi stands for."""


@attrs.define(kw_only=True, eq=False)
class Greville:
    """A least-squares solution that takes in rows and keeps none of them.

    Weighted rows are handed in times the root of their weight. The first ``n_free`` columns are
    free of the ridge, which is 0 for the Moore-Penrose inverse. ``phi`` is None where it is zero,
    ``rank`` counts independent directions, free columns included, ``unchecked`` rows since the last
    look at the residual, and ``repairs`` how often the solution was made anew from the ``sums``.
    """

    solution: FloatArray = attrs.field(init=False)
    theta: FloatArray = attrs.field(init=False)
    phi: FloatArray | None = attrs.field(init=False)
    rank: int = attrs.field(init=False)
    sums: NormalEquations
    n_free: int
    ridge: float
    tolerance: float = TOLERANCE
    unchecked: int = attrs.field(default=0, init=False)
    repairs: int = attrs.field(default=0, init=False)

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

        Any matrix with the same A^T A will do for A, with the targets that go with it.
        """
        made = cls(sums=_sums_of(rows, targets), n_free=n_free, ridge=ridge, tolerance=tolerance)
        table = np.column_stack([rows, targets])
        made._set(made._parts(Spectrum.of_rows([table], n_free, 1, 0.0)))
        return made

    @classmethod
    def of_sums(
        cls, sums: NormalEquations, *, n_free: int, ridge: float, tolerance: float = TOLERANCE
    ) -> Self:
        """Return the solution of normal equations; LinAlgError is raised if there is none."""
        made = cls(sums=sums, n_free=n_free, ridge=ridge, tolerance=tolerance)
        made._set(made._solve())
        return made

    @property
    def degrees(self) -> float:
        """Effective number of parameters: the trace of Theta A^T A."""
        if self.ridge == 0.0:
            return float(self.rank)
        return float(len(self.solution) - self.ridge * np.diag(self.theta)[self.n_free :].sum())

    @property
    def squared_error(self) -> float:
        """|A v - t|^2 at the solution."""
        held = self.solution[self.n_free :]
        reached = float(self.solution @ self.sums.right[:, 0]) + self.ridge * float(held @ held)
        return max(0.0, float(self.sums.squares[0]) - reached)

    def residual(self, solution: FloatArray) -> tuple[FloatArray, float]:
        """Return A^T t - (A^T A + ridge) v, shape (k,), zero at the solution, and how large it is.

        That is the largest cosine between a column (with its ridge) and what v leaves of the
        targets, times what part of the targets that is.
        """
        left = self.sums.right[:, 0] - self.sums.gram @ solution
        left[self.n_free :] -= self.ridge * solution[self.n_free :]
        lengths = np.diag(self.sums.gram).copy()
        lengths[self.n_free :] += self.ridge
        squares = float(self.sums.squares[0]) or 1.0
        scale = np.sqrt(np.maximum(lengths, np.finfo(float).tiny) * squares)
        size = float(np.max(np.abs(left) / scale, initial=0.0))
        return left, size if np.isfinite(size) else float("inf")

    def update(self, rows: FloatArray, targets: FloatArray) -> None:
        """Take in rows, shape (m, k), and targets, shape (m,); mend rounding errors."""
        check_deadline()
        self.sums += _sums_of(rows, targets)
        taken = 0
        while taken < len(rows):
            block = slice(taken, taken + (128 if self.phi is None else 1))
            if not self._take_in(rows[block], targets[block]):
                self._solve_again()  # from the sums, which have all rows
                break
            taken = block.stop
        self.unchecked += len(rows)
        if self.unchecked >= CHECK_EVERY:
            self.check()

    def check(self) -> bool:
        """Look at the residual, O(k^2), and return whether all was made anew from the sums."""
        self.unchecked = 0
        drift = self.residual(self.solution)[1]
        return drift > DRIFT and self._solve_again(drift)

    def _solve_again(self, drift: float = np.inf) -> bool:
        """Solve from the sums; keep what there is unless the residual becomes less."""
        try:
            parts = self._solve()
        except np.linalg.LinAlgError:
            return False
        if not self.residual(parts[0])[1] < drift:
            return False
        self._set(parts)
        self.repairs += 1
        return True

    def _take_in(self, rows: FloatArray, targets: FloatArray) -> bool:
        """Take in rows, or one where Phi is not zero; return whether the numbers are sound."""
        gains = self.theta @ rows.T
        inner = rows @ gains + np.eye(len(rows))
        left = targets - rows @ self.solution
        if self.phi is not None:
            h, c = rows[0], self.phi @ rows[0]
            if np.linalg.norm(c[self.n_free :]) > self.tolerance * np.linalg.norm(h):
                if not self.n_free:  # once more, against rounding errors: Phi is a projection
                    c = self.phi @ c
                b = c / np.square(c[self.n_free :]).sum()
                half = np.outer(gains[:, 0] - 0.5 * inner[0, 0] * b, b)
                self.theta = self.theta - half - half.T
                self.solution = self.solution + left[0] * b
                self.rank += 1
                self.phi = None if self.rank >= len(h) else self.phi - np.outer(c, b)
                return True
        try:
            factor = np.linalg.cholesky(inner)
        except np.linalg.LinAlgError:
            return False
        if np.diag(factor).min() ** 2 < 0.9:  # pivots are at least 1, but for rounding errors
            return False
        halves = solve_triangular(factor, gains.T, lower=True).T
        self.solution = self.solution + halves @ solve_triangular(factor, left, lower=True)
        self.theta = self.theta - halves @ halves.T
        return True

    def _set(self, parts: Parts) -> None:
        self.solution, self.theta, self.phi, self.rank = parts

    def _solve(self) -> Parts:
        """Return the solution of the sums."""
        if self.ridge == 0.0:
            return self._parts(Spectrum.of_sums(self.sums, self.n_free, 0.0))
        gram = self.sums.gram.copy()
        held = np.arange(self.n_free, len(gram))
        gram[held, held] += self.ridge
        theta = np.linalg.inv(gram)
        theta = 0.5 * (theta + theta.T)
        solution = theta @ self.sums.right[:, 0]
        return solution + theta @ self.residual(solution)[0], theta, None, self.n_free

    def _parts(self, spectrum: Spectrum) -> Parts:
        """Return the solution of a regression, from its spectrum.

        Without a ridge, directions that are hardly seen count as not seen.
        """
        if self.ridge == 0.0:
            room = self.tolerance * np.sqrt(np.trace(self.sums.gram))
            spectrum = spectrum.above(room)
        s = len(self.sums.gram) - self.n_free
        # From node weights to all coefficients: the free ones make up for what the nodes do.
        lift = np.vstack([-spectrum.inverse @ spectrum.cross, np.eye(s)])
        seen = lift @ spectrum.vectors
        theta = (seen / (np.square(spectrum.singular) + self.ridge)) @ seen.T
        theta[: self.n_free, : self.n_free] += spectrum.inverse @ spectrum.inverse.T
        rank, phi = self.n_free + len(spectrum.singular), None
        if len(spectrum.singular) < s:
            phi = lift @ lift.T - seen @ seen.T
            if self.ridge > 0.0:
                theta, phi = theta + phi / self.ridge, None
        return spectrum.coefficients(self.ridge)[:, 0], theta, phi, rank


def _sums_of(rows: FloatArray, targets: FloatArray) -> NormalEquations:
    return NormalEquations(
        gram=rows.T @ rows,
        right=(targets @ rows)[:, None],
        squares=np.array([targets @ targets]),
    )
