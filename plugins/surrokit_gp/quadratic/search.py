"""The search for the scales of a prior that values make most likely."""

from __future__ import annotations

import numpy as np

from surrokit.limits import check_deadline
from surrokit.types import FloatArray
from surrokit_gp.quadratic.heights import Heights
from surrokit_gp.quadratic.prior import QuadraticPrior, bounds, penalty

_ITERATIONS = 30
_REFUSED = 1e25  # what the optimiser is told where the likelihood cannot be computed
JITTER = 1e-10
"""Added to the variances, relative to their mean."""


def find_prior(z: FloatArray, heights: Heights, start: QuadraticPrior) -> QuadraticPrior:
    """Return the scales of the largest posterior density, by L-BFGS-B from a start.

    Parameters
    ----------
    z : ndarray of shape (n, dim)
        Whitened positions.
    heights
        Of U there.
    start
        Where to begin.
    """
    from scipy.optimize import minimize

    objective = _Objective(z, heights)
    low, high = np.array(bounds(z.shape[1])).T
    found = minimize(
        objective,
        np.clip(start.point, low, high),
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(low, high, strict=True)),
        options={"maxiter": _ITERATIONS},
    )
    if not np.isfinite(found.x).all() or found.fun >= _REFUSED:
        return start
    return QuadraticPrior.at(found.x)


class _Objective:
    """Minus the log posterior density of a prior's scales, with its slope."""

    def __init__(self, z: FloatArray, heights: Heights) -> None:
        self._z = z
        self._variance = heights.variance
        self._left = heights.values - 0.5 * np.square(z).sum(axis=1)

    def __call__(self, point: FloatArray) -> tuple[float, FloatArray]:
        from scipy.linalg import LinAlgError, cho_factor, cho_solve, lapack

        check_deadline()

        prior = QuadraticPrior.at(point)
        quadratic = prior.quadratic(self._z, self._z)
        smooth = prior.smooth(self._z, self._z)
        covariance = quadratic + smooth
        covariance[np.diag_indices_from(covariance)] += with_jitter(covariance, self._variance)
        try:
            factor = cho_factor(covariance, lower=True, check_finite=False)
        except LinAlgError:
            return _REFUSED, np.zeros_like(point)
        dual = cho_solve(factor, self._left, check_finite=False)
        # a third of the work of solving for all unit vectors; the upper triangle is left over
        adjoint = np.tril(lapack.dpotri(factor[0], lower=1)[0])
        adjoint += np.tril(adjoint, -1).T
        adjoint -= np.outer(dual, dual)
        value = 0.5 * self._left @ dual + float(np.log(np.diag(factor[0])).sum())
        by_smooth = adjoint * smooth
        # the sum over i, j of b_ij (z_ik - z_jk)^2, for symmetric b, by one product
        by_lengths = 2.0 * (
            by_smooth.sum(axis=1) @ np.square(self._z)
            - np.einsum("ik,ik->k", self._z, by_smooth @ self._z)
        )
        slope = np.concatenate(
            [
                [np.einsum("ij,ij->", adjoint, quadratic), by_smooth.sum()],
                0.5 * by_lengths / np.square(prior.length_scales),
            ]
        )
        more, steeper = penalty(point)
        total = value + more
        if not (np.isfinite(total) and np.isfinite(slope).all()):
            return _REFUSED, np.zeros_like(point)
        return float(total), slope + steeper


def with_jitter(covariance: FloatArray, variance: FloatArray) -> FloatArray:
    """Return noise of ``variance (n,)`` with what keeps a covariance (n, n) positive."""
    return np.asarray(variance + JITTER * float(np.diag(covariance).mean()))
