"""Ridge regression at a given ridge, and the Moore-Penrose inverse, without normal equations.

Rows are reduced by orthogonal transformations, block by block, so the condition number of the
features is not squared: in the paper's raw coordinates its square is beyond double precision. It
costs a few times what :mod:`surrokit_networks.spectrum` does.
"""

from __future__ import annotations

import numpy as np

from surrokit.types import FloatArray
from surrokit_networks.design import Design, Solution, expected_error


def solved(design: Design, ridge: float) -> Solution:
    """Return the minimiser of the weighted squared error + ridge |v|^2.

    Parameters
    ----------
    design
        What to fit.
    ridge
        lambda, on the sum of squared errors. With 0, the solution of least |v| among the
        least-squares solutions: v = H^+ T of Algorithm 2.
    """
    triangle = _triangle(design)
    means = np.zeros(triangle.shape[1])
    if design.trains_level:
        means = triangle[0, 1:] / triangle[0, 0]
        triangle = triangle[1:, 1:]
    features, targets = triangle[:, :-1], triangle[:, -1]
    weights, degrees = (
        _ridge_solution(features, targets, ridge) if ridge > 0.0 else _least_norm(features, targets)
    )
    degrees += design.trains_level
    residual = targets - features @ weights
    return Solution(
        weights=weights,
        level=float(means[-1] - means[:-1] @ weights) if design.trains_level else 0.0,
        ridge=ridge,
        degrees=degrees,
        error=expected_error(design, float(residual @ residual), degrees),
    )


def _triangle(design: Design) -> FloatArray:
    """Return R of the QR factorisation of all rows, at most as many rows as columns."""
    triangle: FloatArray | None = None
    for block in design.blocks():
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
    from scipy.linalg import solve_triangular

    bottom = np.sqrt(ridge) * np.eye(n_features)
    basis, corner = np.linalg.qr(np.vstack([features, bottom]))
    weights: FloatArray = solve_triangular(corner, basis[:n_rows].T @ targets)
    return weights, float(np.sum(basis[:n_rows] ** 2))


def _least_norm(features: FloatArray, targets: FloatArray) -> tuple[FloatArray, float]:
    weights, _, rank, _ = np.linalg.lstsq(features, targets, rcond=None)
    return np.asarray(weights, dtype=np.float64), float(rank)
