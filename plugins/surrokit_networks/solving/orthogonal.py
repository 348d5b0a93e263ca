"""Ridge regression at a given ridge, and the Moore-Penrose inverse, without normal equations.

Rows are reduced by orthogonal transformations, block by block, so the condition number of the
features is not squared: in the paper's raw coordinates its square is beyond double precision. It
costs a few times what :mod:`surrokit_networks.solving.spectrum` does.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from surrokit.types import FloatArray
from surrokit_networks.solving.basis import Basis
from surrokit_networks.solving.design import Solution, expected_error, write_out
from surrokit_networks.solving.equations import Equations


def solve(
    basis: Basis, equations: Equations, ridge: float | FloatArray, block_rows: int | None = None
) -> Solution:
    """Return the minimiser of the weighted squared error + ridge |v|^2, or + v^T ridge v.

    Parameters
    ----------
    basis
        The columns.
    equations
        The rows.
    ridge : float or ndarray of shape (s, s)
        lambda, on the sum of squared errors. With 0, the solution of least |v| among the
        least-squares solutions: v = H^+ T of Algorithm 2. Or a positive definite matrix, as a
        Gaussian process has (section 3.3): with radial nodes at the data and the matrix sigma^2 K
        the solution is its mean.
    block_rows : int, optional
        Positions written out at a time.
    """
    triangle = triangle_of(write_out(basis, equations, block_rows))
    n_outputs = equations.n_outputs
    n_free = int(equations.trains_level) + basis.n_trend
    top, bottom = triangle[:n_free], triangle[n_free:, n_free:]
    features, targets = bottom[:, :-n_outputs], bottom[:, -n_outputs:]
    if isinstance(ridge, np.ndarray):
        bottom = np.asarray(np.linalg.cholesky(ridge).T, dtype=np.float64)
        weights, degrees = _penalise(features, targets, bottom)
    elif ridge > 0.0:
        weights, degrees = _ridge_solution(features, targets, ridge)
    else:
        weights, degrees = _least_norm(features, targets)
    known = top[:, -n_outputs:] - top[:, n_free:-n_outputs] @ weights
    free = np.asarray(np.linalg.lstsq(top[:, :n_free], known, rcond=None)[0], dtype=np.float64)
    lead = int(equations.trains_level)
    residuals = targets - features @ weights
    degrees += n_free
    return Solution(
        trend=free[lead:],
        weights=weights,
        level=free[0] if lead else np.zeros(n_outputs),
        ridge=float(np.mean(np.diag(ridge))) if isinstance(ridge, np.ndarray) else ridge,
        degrees=degrees,
        error=expected_error(equations, float(np.sum(residuals**2)), degrees),
    )


def triangle_of(blocks: Iterable[FloatArray]) -> FloatArray:
    """Return R of the QR factorisation of all rows, at most as many rows as columns."""
    triangle: FloatArray | None = None
    for block in blocks:
        rows = block if triangle is None else np.vstack([triangle, block])
        triangle = np.asarray(np.linalg.qr(rows, mode="r"), dtype=np.float64)
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
        return np.asarray(basis @ inner, dtype=np.float64), degrees
    return _penalise(features, targets, np.sqrt(ridge) * np.eye(n_features))


def _penalise(
    features: FloatArray, targets: FloatArray, bottom: FloatArray
) -> tuple[FloatArray, float]:
    """Return the solution under the penalty |bottom v|^2."""
    from scipy.linalg import solve_triangular

    n_rows = len(features)
    if features.shape[1] == 0:  # which not every LAPACK takes
        return np.empty((0, targets.shape[1])), 0.0
    basis, corner = np.linalg.qr(np.vstack([features, bottom]))
    weights: FloatArray = solve_triangular(corner, basis[:n_rows].T @ targets)
    return weights, float(np.sum(basis[:n_rows] ** 2))


def _least_norm(features: FloatArray, targets: FloatArray) -> tuple[FloatArray, float]:
    weights, _, rank, _ = np.linalg.lstsq(features, targets, rcond=None)
    return np.asarray(weights, dtype=np.float64), float(rank)
