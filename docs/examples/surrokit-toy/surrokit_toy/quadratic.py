"""A quadratic fitted to values by least squares."""

from __future__ import annotations

import numpy as np

import surrokit as sk
from surrokit.errors import SurrogateFitError
from surrokit.protocols import Potential


def fit(
    rows: sk.Evaluations,
    rng: np.random.Generator,  # noqa: ARG001
    *,
    floor: float,
) -> Potential:
    """Fit U(q) = c + b.z + z.A z / 2 in standardised coordinates z.

    Parameters
    ----------
    rows
        Exact evaluations: positions (n, dim) and values (n,).
    rng
        Not used: the fit is the same for the same rows.
    floor
        Least eigenvalue of A, as a part of the largest. Along a direction of negative
        curvature trajectories would run away.

    Raises
    ------
    SurrogateFitError
        If there are fewer distinct rows than coefficients.
    """
    dim = rows.positions.shape[1]
    i, j = np.triu_indices(dim)
    # the start of a burn-in is not near
    near = rows.values - rows.values.min() < 50.0 + 10.0 * dim
    points, values = rows.positions[near], rows.values[near]
    distinct, needed = len(np.unique(points, axis=0)), 1 + dim + len(i)
    if distinct < needed:
        raise SurrogateFitError(
            f"a quadratic in {dim} dimensions needs {needed} distinct points, "
            f"got {distinct}; explore for longer"
        )
    # [fit]
    centre, scale = points.mean(axis=0), points.std(axis=0)
    z = (points - centre) / scale
    design = np.column_stack([np.ones(len(z)), z, z[:, i] * z[:, j]])
    c, *_ = np.linalg.lstsq(design, values, rcond=None)
    upper = np.zeros((dim, dim))
    upper[i, j] = c[1 + dim :]
    eigenvalues, vectors = np.linalg.eigh(upper + upper.T)
    clipped = np.maximum(eigenvalues, floor * np.abs(eigenvalues).max())
    slope, hessian = c[1 : 1 + dim], (vectors * clipped) @ vectors.T
    # [end]

    def value_and_gradient(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        z = (q - centre) / scale
        bent = z @ hessian
        return c[0] + z @ slope + 0.5 * np.sum(z * bent, axis=1), (slope + bent) / scale

    return sk.potential(value_and_gradient=value_and_gradient, dim=dim, batched=True)
