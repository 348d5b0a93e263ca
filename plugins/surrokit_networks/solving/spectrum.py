"""Ridge regression from one eigendecomposition, with the ridge chosen from the data.

Level and trend are projected out first. What is decomposed then is the s x s normal matrix of the
nodes or, with fewer equations than nodes, the matrix of inner products between rows:
O(min(n, s)^2 max(n, s)) operations, all in matrix products. Either squares the condition number
of the features. Features of whitened positions bear that, as ridges below the rounding error of
the eigenvalues are not considered; for fixed ridges and raw coordinates there is
:mod:`surrokit_networks.solving.orthogonal`.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np

from surrokit.types import FloatArray
from surrokit_networks.solving.basis import Basis
from surrokit_networks.solving.design import Counted, Solution, expected_error, write_out
from surrokit_networks.solving.equations import Equations
from surrokit_networks.solving.normal_equations import NormalEquations

_RIDGES = np.logspace(-13.0, 4.0, 103)
"""Ridges tried, in units of the largest eigenvalue."""

_ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
"""Eigenvalues below this are noise, in units of the trace before anything was projected out, or of
the sum of weights: nodes that hardly see the training points get no weight for it."""

_JITTERS = (0.0, 1.0, 1e2, 1e4, 1e6, 1e8)
"""Multiples of the rounding error added to a diagonal, until the matrix has a Cholesky factor."""

_PRICE = 1.05
"""What the choice of the ridge takes each degree of freedom to cost (see ``cross_validated``)."""


@attrs.frozen(kw_only=True, eq=False)
class Spectrum:
    """A regression in the basis where it falls apart into one number at a time.

    Parameters
    ----------
    eigenvalues : ndarray of shape (r,)
        Squared singular values e of the nodes' columns, with level and trend projected out.
    projections : ndarray of shape (r, m)
        Targets along the left singular vectors.
    unreachable : float
        Sum of squares of the targets that no combination of columns reaches.
    expand
        From coefficients (r, ...) along the left singular vectors to node weights (s, ...).
    complete
        From node weights (s, m) to the level (m,) and the trend's coefficients (p, m) that go
        with them.
    free
        How many parameters are free of the ridge.
    noise
        Rounding error of the eigenvalues.
    """

    eigenvalues: FloatArray
    projections: FloatArray
    unreachable: float
    expand: Callable[[FloatArray], FloatArray]
    complete: Callable[[FloatArray], tuple[FloatArray, FloatArray]]
    free: int
    noise: float

    @property
    def ridges(self) -> FloatArray:
        """The ridges among which one is chosen."""
        # Where every feature is constant any ridge will do.
        ridges = _RIDGES * (float(self.eigenvalues.max(initial=0.0)) or 1.0)
        return np.maximum(ridges, self.noise)

    def cross_validated(self, count: float) -> float:
        """Return the ridge with the least generalised cross-validation score, made a bit dearer.

        The score is RSS / (n - 1.05 degrees)^2, and infinite where that many degrees of freedom
        are not to be had. With the factor 1, where there are about as many rows as nodes, the
        ridge comes out far too small in a few cases of a hundred, and the fit explodes (measured:
        error 17 where the best ridge gives 0.26); with 1.05 it never did, and over logistic,
        quartic and banana targets the gradients came out best too. Factors from 1.2 on throw away
        what exact values can tell.

        Parameters
        ----------
        count
            Independent equations.
        """
        ridges = self.ridges
        held = ridges[:, None] / (self.eigenvalues + ridges[:, None])
        residuals = self.unreachable + (held**2) @ np.square(self.projections).sum(axis=1)
        degrees = self.free + (1.0 - held).sum(axis=1)
        spare = count - _PRICE * degrees
        scores = np.full(len(ridges), np.inf)
        np.divide(residuals, spare**2, out=scores, where=spare > 0.0)
        return largest_of_the_best(ridges, scores)

    def along(self, ridges: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the trends (j, p, m) and node weights (j, s, m) at ridges of shape (j,)."""
        shrunk = self.projections / (self.eigenvalues[:, None] + ridges[:, None, None])
        n_outputs = self.projections.shape[1]
        columns = np.moveaxis(shrunk, 0, 1).reshape(len(self.eigenvalues), len(ridges) * n_outputs)
        weights = self.expand(columns)
        each = np.moveaxis(weights.reshape(len(weights), len(ridges), n_outputs), 1, 0)
        return np.array([self.complete(one)[1] for one in each]), each

    def solution(self, equations: Counted, ridge: float) -> Solution:
        """Return the minimiser of the weighted squared error + ridge |v|^2.

        Parameters
        ----------
        equations
            What the spectrum was made from.
        ridge
            lambda, positive.
        """
        held = ridge / (self.eigenvalues + ridge)
        degrees = self.free + float((1.0 - held).sum())
        squares = np.square(self.projections).sum(axis=1)
        residual = self.unreachable + float((held**2) @ squares)
        weights = self.expand(self.projections / (self.eigenvalues + ridge)[:, None])
        level, trend = self.complete(weights)
        return Solution(
            trend=trend,
            weights=weights,
            level=level,
            ridge=ridge,
            degrees=degrees,
            error=expected_error(equations, residual, degrees),
        )


def largest_of_the_best(ridges: FloatArray, scores: FloatArray) -> float:
    """Return the ridge with the least score, the largest of equals.

    Parameters
    ----------
    ridges, scores : ndarray of shape (j,)
        Ridges in rising order, and what speaks against each.
    """
    best = len(ridges) - 1 - int(np.argmin(scores[::-1]))
    return float(ridges[best])


@attrs.frozen(kw_only=True, eq=False)
class Projected:
    """Normal equations of the nodes alone, with level and trend projected out.

    Parameters
    ----------
    gram : ndarray of shape (s, s)
        Products of what is left of the nodes' columns.
    right : ndarray of shape (s, m)
        Products of what is left of nodes' columns and targets.
    squares
        Sum of squares of what is left of the targets.
    complete
        As in :class:`Spectrum`.
    free, noise
        As in :class:`Spectrum`.
    """

    gram: FloatArray
    right: FloatArray
    squares: float
    complete: Callable[[FloatArray], tuple[FloatArray, FloatArray]]
    free: int
    noise: float

    @classmethod
    def of(cls, normal: NormalEquations, n_trend: int, trains_level: bool) -> Projected:
        """Project out the level, if it is trained, and the first ``n_trend`` columns.

        Raises
        ------
        ValueError
            NumPy's LinAlgError, if the trend's own matrix has no Cholesky factor.
        """
        centred = normal.without_level() if trains_level else normal
        trend = centred.gram[:n_trend, :n_trend]
        factor = _cholesky(trend, _ROUNDING * float(np.trace(trend)))
        cross = _triangular(factor, centred.gram[:n_trend, n_trend:])
        known = _triangular(factor, centred.right[:n_trend])

        def complete(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
            found = _triangular(factor, known - cross @ weights, transposed=True)
            if not trains_level:
                return np.zeros(weights.shape[1]), found
            fitted = normal.sums @ np.concatenate([found, weights])
            return (normal.target_sums - fitted) / normal.weight, found

        return cls(
            gram=centred.gram[n_trend:, n_trend:] - cross.T @ cross,
            right=centred.right[n_trend:] - cross.T @ known,
            squares=float(centred.squares.sum() - np.sum(known**2)),
            complete=complete,
            free=n_trend + int(trains_level),
            noise=_ROUNDING * max(float(np.trace(centred.gram[n_trend:, n_trend:])), normal.mass),
        )

    def spectrum(self) -> Spectrum:
        """Return the spectrum, from one eigendecomposition."""
        eigenvalues, vectors = np.linalg.eigh(self.gram)
        kept = eigenvalues > self.noise
        roots = np.sqrt(eigenvalues[kept])
        vectors = vectors[:, kept]
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

    def solution(self, equations: Counted, ridge: float, *, counted: bool = True) -> Solution:
        """Return the solution at a ridge, from one Cholesky factorisation.

        Parameters
        ----------
        equations
            What the normal equations were made from.
        ridge
            lambda, positive.
        counted
            Whether the degrees of freedom, and with them the error, are wanted: they cost as much
            again, and are NaN otherwise.
        """
        from scipy.linalg import lapack

        factor = _cholesky(self.gram + ridge * np.eye(len(self.gram)), self.noise)
        weights = _triangular(factor, _triangular(factor, self.right), transposed=True)
        degrees = float("nan")
        if counted:
            # tr((K + lambda)^-1 K) = s - lambda |R^-1|^2, with R the factor.
            inverse, _ = lapack.dtrtri(factor, lower=1) if len(factor) else (factor, 0)
            degrees = self.free + len(factor) - ridge * float(np.sum(np.tril(inverse) ** 2))
        level, trend = self.complete(weights)
        reached = np.sum(weights * (self.right + ridge * weights))
        return Solution(
            trend=trend,
            weights=weights,
            level=level,
            ridge=ridge,
            degrees=degrees,
            error=expected_error(equations, max(0.0, self.squares - float(reached)), degrees),
        )


def _triangular(factor: FloatArray, right: FloatArray, transposed: bool = False) -> FloatArray:
    """Solve with a lower triangular factor, or its transpose; one without rows, too."""
    from scipy.linalg import solve_triangular

    if not len(factor):
        return right
    trans = "T" if transposed else "N"
    return np.asarray(solve_triangular(factor, right, lower=True, trans=trans, check_finite=False))


def _cholesky(matrix: FloatArray, noise: float) -> FloatArray:
    for jitter in _JITTERS[:-1]:
        try:
            return np.asarray(np.linalg.cholesky(_add_to_diagonal(matrix, jitter * noise)))
        except np.linalg.LinAlgError:
            continue
    return np.asarray(np.linalg.cholesky(_add_to_diagonal(matrix, _JITTERS[-1] * noise)))


def _add_to_diagonal(matrix: FloatArray, jitter: float) -> FloatArray:
    return matrix if jitter == 0.0 else matrix + jitter * np.eye(len(matrix))


def dual_spectrum(basis: Basis, equations: Equations, block_rows: int | None = None) -> Spectrum:
    """Return the spectrum from the matrix of inner products between equations, which are few."""
    rows = np.vstack(list(write_out(basis, equations, block_rows)))
    lead = int(equations.trains_level)
    free, n_outputs = lead + basis.n_trend, equations.n_outputs
    basis_of_free, corner = np.linalg.qr(rows[:, :free])
    rest = rows[:, free:]
    known = basis_of_free.T @ rest
    rest -= basis_of_free @ known
    features, targets = np.ascontiguousarray(rest[:, :-n_outputs]), rest[:, -n_outputs:]
    eigenvalues, vectors = np.linalg.eigh(features @ features.T)

    def complete(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        left = known[:, -n_outputs:] - known[:, :-n_outputs] @ weights
        try:
            found = _triangular(corner.T, left, transposed=True)
        except np.linalg.LinAlgError:  # a direction in which no position varies
            found = np.linalg.lstsq(corner, left, rcond=None)[0]
        return (found[0] if lead else np.zeros(n_outputs)), found[lead:]

    return Spectrum(
        eigenvalues=np.maximum(eigenvalues, 0.0),
        projections=vectors.T @ targets,
        unreachable=0.0,
        expand=lambda coefficients: features.T @ (vectors @ coefficients),
        complete=complete,
        free=free,
        noise=_ROUNDING * equations.mass,
    )
