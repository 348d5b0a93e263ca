"""Ridge regression of a network's weights, and the choice of its ridge: equation (11).

Level and trend are free of the ridge and projected out first. There are three ways to the rest:

- orthogonal transformations of the rows written out (:func:`solve`): for a given ridge and the
  Moore-Penrose inverse. The condition number of the features is not squared, which in the paper's
  raw coordinates would be beyond double precision;
- the eigendecomposition of the nodes' normal matrix (:class:`Projected`): for many rows;
- that of the matrix of inner products between rows (:func:`dual_spectrum`): for few rows.

Both eigendecompositions give a :class:`Spectrum`, from which the ridge is chosen. They square the
condition number. Features of whitened positions bear that, as ridges below the rounding error of
the eigenvalues are not considered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import attrs
import numpy as np

from surrokit.types import BoolArray, FloatArray
from surrokit_networks.equations import (
    Basis,
    Equations,
    NormalEquations,
    normal_equations,
    write_out,
)
from surrokit_networks.trend import COST

ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
"""Eigenvalues below this are noise, in units of the trace before anything was projected out, or of
the sum of weights: nodes that hardly see the training points get no weight for it."""

Complete: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""From node weights (s, m) to the level (m,) and the trend's coefficients (p, m) with them."""


@attrs.frozen(kw_only=True, eq=False)
class Solution:
    """A fitted linear combination of the columns of a basis.

    Coefficients are those of the trend's monomials (p, m), of nodes (s, m), and the constants
    added, ``level (m,)``. ``degrees`` is the effective number of parameters of a target, and
    ``error`` the mean squared error of an equation to expect, summed over targets
    (:func:`expected_error`).
    """

    trend: FloatArray
    weights: FloatArray
    level: FloatArray
    ridge: float
    degrees: float
    error: float

    @classmethod
    def of(
        cls,
        equations: Equations,
        weights: FloatArray,
        complete: Complete,
        ridge: float,
        degrees: float,
        residual: float,
    ) -> Solution:
        """Return the solution with these node weights, and the error to expect of it."""
        level, trend = complete(weights)
        error = expected_error(equations.count, equations.total_weight, residual, degrees)
        return cls(
            trend=trend, weights=weights, level=level, ridge=ridge, degrees=degrees, error=error
        )


def expected_error(count: float, weight: float, residual_squares: float, degrees: float) -> float:
    """Return the generalised cross-validation error of a fit (Golub, Heath and Wahba 1979).

    ``count`` and ``degrees`` are independent equations and effective parameters of each target,
    ``weight`` that of values and of gradients' components. The error is infinite where there are as
    many degrees of freedom as equations.
    """
    spare = 1.0 - degrees / count
    return float("inf") if spare <= 1e-10 else float(residual_squares / weight / spare**2)


def solve(basis: Basis, equations: Equations, ridge: float) -> Solution:
    """Return the minimiser of the weighted squared error + ridge |v|^2.

    With ridge 0 it is the solution of least |v| among the least-squares solutions: v = H^+ T of
    Algorithm 2.
    """
    triangle = triangle_of(write_out(basis, equations))
    m, lead = equations.targets.shape[1], int(equations.trains_level)
    n_free = lead + len(basis.trend)
    top, bottom = triangle[:n_free], triangle[n_free:, n_free:]
    features, targets = bottom[:, :-m], bottom[:, -m:]
    if ridge > 0.0:
        weights, degrees = _ridge_solution(features, targets, ridge)
    else:
        least, _, rank, _ = np.linalg.lstsq(features, targets, rcond=None)
        weights, degrees = np.asarray(least, dtype=np.float64), float(rank)
    squares = float(np.sum((targets - features @ weights) ** 2))

    def complete(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        known = top[:, -m:] - top[:, n_free:-m] @ weights
        free = np.asarray(np.linalg.lstsq(top[:, :n_free], known, rcond=None)[0])
        return (free[0] if lead else np.zeros(m)), free[lead:]

    return Solution.of(equations, weights, complete, ridge, degrees + n_free, squares)


def triangle_of(rows: Iterable[FloatArray]) -> FloatArray:
    """Return R of the QR factorisation of all rows, at most as many rows as columns."""
    triangle: FloatArray | None = None
    for block in rows:
        both = block if triangle is None else np.vstack([triangle, block])
        triangle = np.asarray(np.linalg.qr(both, mode="r"), dtype=np.float64)
    assert triangle is not None
    return triangle


def _ridge_solution(
    features: FloatArray, targets: FloatArray, ridge: float
) -> tuple[FloatArray, float]:
    """Return node weights and effective parameters of a small ridge problem."""
    n_rows, n_features = features.shape
    if n_rows < n_features:
        # v lies in the row space: v = basis u with |v| = |u|, and the problem is square.
        basis, corner = np.linalg.qr(features.T)
        inner, degrees = _ridge_solution(corner.T, targets, ridge)
        return np.asarray(basis @ inner), degrees
    basis, corner = np.linalg.qr(np.vstack([features, np.sqrt(ridge) * np.eye(n_features)]))
    own = basis[:n_rows]
    return triangular(corner, own.T @ targets, lower=False), float(np.sum(own**2))


@attrs.frozen(kw_only=True, eq=False)
class Spectrum:
    """A regression in the basis where it separates into one number at a time.

    The ``eigenvalues (r,)`` are squared singular values of the nodes' columns, with level and trend
    projected out, ``noise`` their rounding error, and ``projections (r, m)`` targets along the left
    singular vectors; what no combination of columns reaches has the sum of squares ``unreachable``.
    ``expand`` goes from coefficients (r, m) along these vectors to node weights (s, m), with which
    ``complete`` gives the rest. So many parameters are ``free`` of the ridge.
    """

    eigenvalues: FloatArray
    projections: FloatArray
    unreachable: float
    expand: Callable[[FloatArray], FloatArray]
    complete: Complete
    free: int
    noise: float

    def cross_validated(self, count: float, cost: float = COST) -> float:
        """Return the ridge with the least generalised cross-validation score, the largest of them.

        The score is RSS / (n - cost degrees)^2, and infinite where there are not so many degrees of
        freedom, n the ``count`` of independent equations.
        """
        # Where every feature is constant any ridge will do.
        largest = float(self.eigenvalues.max(initial=0.0)) or 1.0
        ridges = np.maximum(np.logspace(-13.0, 4.0, 103) * largest, self.noise)
        held = ridges[:, None] / (self.eigenvalues + ridges[:, None])
        residuals = self.unreachable + (held**2) @ np.square(self.projections).sum(axis=1)
        spare = count - cost * (self.free + (1.0 - held).sum(axis=1))
        scores = np.full(len(ridges), np.inf)
        np.divide(residuals, spare**2, out=scores, where=spare > 0.0)
        return float(ridges[len(ridges) - 1 - int(np.argmin(scores[::-1]))])

    def solution(self, equations: Equations, ridge: float) -> Solution:
        """Return the minimiser of the weighted squared error + ridge |v|^2, ridge positive."""
        held = ridge / (self.eigenvalues + ridge)
        degrees = self.free + float((1.0 - held).sum())
        squares = np.square(self.projections).sum(axis=1)
        residual = self.unreachable + float((held**2) @ squares)
        weights = self.expand(self.projections / (self.eigenvalues + ridge)[:, None])
        return Solution.of(equations, weights, self.complete, ridge, degrees, residual)


@attrs.frozen(kw_only=True, eq=False)
class Projected:
    """Normal equations of the nodes alone, gram v = right, with level and trend projected out.

    ``squares`` are those of what is left of the targets. For the rest see :class:`Spectrum`.
    """

    gram: FloatArray
    right: FloatArray
    squares: float
    complete: Complete
    free: int
    noise: float

    @classmethod
    def of(cls, normal: NormalEquations, n_trend: int, trains_level: bool) -> Projected:
        """Project out the level, if it is trained, and the first ``n_trend`` columns.

        NumPy's LinAlgError is raised if the trend's own matrix has no Cholesky factor.
        """
        centred = normal.without_level() if trains_level else normal
        trend = centred.gram[:n_trend, :n_trend]
        factor = cholesky(trend, ROUNDING * float(np.trace(trend)))
        cross = triangular(factor, centred.gram[:n_trend, n_trend:])
        known = triangular(factor, centred.right[:n_trend])

        def complete(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
            found = triangular(factor, known - cross @ weights, transposed=True)
            if not trains_level:
                return np.zeros(weights.shape[1]), found
            fitted = normal.gram[0, 1:] @ np.concatenate([found, weights])
            return (normal.right[0] - fitted) / normal.gram[0, 0], found

        return cls(
            gram=centred.gram[n_trend:, n_trend:] - cross.T @ cross,
            right=centred.right[n_trend:] - cross.T @ known,
            squares=float(centred.squares.sum() - np.sum(known**2)),
            complete=complete,
            free=n_trend + int(trains_level),
            noise=ROUNDING * max(float(np.trace(centred.gram[n_trend:, n_trend:])), normal.mass),
        )

    def spectrum(self) -> Spectrum:
        """Return the spectrum, from one eigendecomposition."""
        eigenvalues, vectors = np.linalg.eigh(self.gram)
        kept = eigenvalues > self.noise
        roots, vectors = np.sqrt(eigenvalues[kept]), vectors[:, kept]
        projections = (vectors.T @ self.right) / roots[:, None]
        return Spectrum(
            eigenvalues=eigenvalues[kept],
            projections=projections,
            unreachable=max(0.0, self.squares - float(np.sum(projections**2))),
            expand=lambda coefficients: vectors @ (roots[:, None] * coefficients),
            complete=self.complete,
            free=self.free,
            noise=self.noise,
        )

    def solution(self, equations: Equations, ridge: float) -> Solution:
        """Return the solution at a positive ridge, from one Cholesky factorisation."""
        from scipy.linalg import lapack

        factor = cholesky(self.gram + ridge * np.eye(len(self.gram)), self.noise)
        weights = triangular(factor, triangular(factor, self.right), transposed=True)
        # tr((K + lambda)^-1 K) = s - lambda |R^-1|^2, with R the factor.
        inverse, _ = lapack.dtrtri(factor, lower=1) if len(factor) else (factor, 0)
        degrees = self.free + len(factor) - ridge * float(np.sum(np.tril(inverse) ** 2))
        residual = max(0.0, self.squares - float(np.sum(weights * (self.right + ridge * weights))))
        return Solution.of(equations, weights, self.complete, ridge, degrees, residual)


def dual_spectrum(basis: Basis, equations: Equations) -> Spectrum:
    """Return the spectrum from the matrix of inner products between equations, which are few."""
    rows = np.vstack(list(write_out(basis, equations)))
    lead, m = int(equations.trains_level), equations.targets.shape[1]
    free = lead + len(basis.trend)
    basis_of_free, corner = np.linalg.qr(rows[:, :free])
    rest = rows[:, free:]
    known = basis_of_free.T @ rest
    rest -= basis_of_free @ known
    features, targets = np.ascontiguousarray(rest[:, :-m]), rest[:, -m:]
    eigenvalues, vectors = np.linalg.eigh(features @ features.T)

    def complete(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        left = known[:, -m:] - known[:, :-m] @ weights
        try:
            found = triangular(corner, left, lower=False)
        except np.linalg.LinAlgError:  # a direction in which no position varies
            found = np.linalg.lstsq(corner, left, rcond=None)[0]
        return (found[0] if lead else np.zeros(m)), found[lead:]

    return Spectrum(
        eigenvalues=np.maximum(eigenvalues, 0.0),
        projections=vectors.T @ targets,
        unreachable=0.0,
        expand=lambda coefficients: features.T @ (vectors @ coefficients),
        complete=complete,
        free=free,
        noise=ROUNDING * equations.mass,
    )


def triangular(
    factor: Any, right: FloatArray, *, lower: bool = True, transposed: bool = False
) -> FloatArray:
    """Solve with a triangular factor, or its transpose; one without rows, too."""
    from scipy.linalg import solve_triangular

    if not len(factor):
        return right
    trans = "T" if transposed else "N"
    return np.asarray(solve_triangular(factor, right, lower=lower, trans=trans, check_finite=False))


def cholesky(matrix: FloatArray, noise: float) -> FloatArray:
    """Return the factor of a matrix, with as little added to its diagonal as it takes."""
    for jitter in (0.0, 1.0, 1e2, 1e4, 1e6):
        try:
            return np.asarray(np.linalg.cholesky(matrix + jitter * noise * np.eye(len(matrix))))
        except np.linalg.LinAlgError:
            continue
    return np.asarray(np.linalg.cholesky(matrix + 1e8 * noise * np.eye(len(matrix))))


def solve_with_twin(
    basis: Basis, equations: Equations, ridge: float | None, held: BoolArray | None
) -> tuple[Solution, Solution | None]:
    """Return the solution, and its twin, which the rows ``held (n,)`` are not shown to.

    A ridge of None is chosen by generalised cross-validation of all rows; the twin has the same.
    NumPy's LinAlgError is raised if the numbers cannot be handled.
    """
    shown = None if held is None else equations.take(~held)
    if ridge is not None and (not equations.has_gradients or ridge == 0.0):
        twin = None if shown is None else solve(basis, shown, ridge)
        return solve(basis, equations, ridge), twin
    if equations.n_rows < len(basis.nodes):
        spectrum = dual_spectrum(basis, equations)
        ridge = spectrum.cross_validated(equations.count) if ridge is None else ridge
        twin = None if shown is None else dual_spectrum(basis, shown).solution(shown, ridge)
        return spectrum.solution(equations, ridge), twin
    n_trend, level = len(basis.trend), equations.trains_level
    normal = normal_equations(basis, equations if shown is None else shown)
    part = None if shown is None else Projected.of(normal, n_trend, level)
    if held is not None:
        normal = normal + normal_equations(basis, equations.take(held))
    whole = Projected.of(normal, n_trend, level)
    if ridge is None:
        spectrum = whole.spectrum()
        solution = spectrum.solution(equations, spectrum.cross_validated(equations.count))
    else:
        solution = whole.solution(equations, ridge)
    if shown is None or part is None:
        return solution, None
    return solution, part.solution(shown, solution.ridge)
