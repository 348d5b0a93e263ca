"""A process conditioned on values, in whitened coordinates."""

from __future__ import annotations

from typing import Self

import attrs
import numpy as np

from surrokit.errors import SurrogateFitError
from surrokit.types import FloatArray
from surrokit_gp.data.mean_functions import Polynomial
from surrokit_gp.kernel.cholesky import solve
from surrokit_gp.posterior.expansion import Expansion
from surrokit_gp.quadratic.heights import Heights
from surrokit_gp.quadratic.prior import QuadraticPrior
from surrokit_gp.quadratic.search import with_jitter


@attrs.frozen(kw_only=True, eq=False)
class QuadraticProcess:
    """What values leave of a :class:`QuadraticPrior`.

    Parameters
    ----------
    prior
        The prior.
    z : ndarray of shape (n, dim)
        Whitened positions of the values.
    factor : ndarray of shape (n, n)
        Lower Cholesky factor of their covariance.
    dual : ndarray of shape (n,)
        Covariance^-1 (values - what the prior expects).
    trend
        The quadratic in the mean, as a function of z.
    """

    prior: QuadraticPrior
    z: FloatArray
    factor: FloatArray
    dual: FloatArray
    trend: Polynomial

    @classmethod
    def of(cls, prior: QuadraticPrior, z: FloatArray, heights: Heights) -> Self:
        """Return the process given the heights of U at ``z (n, dim)``.

        Raises
        ------
        SurrogateFitError
            If their covariance cannot be factorised.
        """
        dim = z.shape[1]
        factor = _factorise(prior.covariance(z, z), heights.variance)
        left = heights.values - 0.5 * np.square(z).sum(axis=1)
        dual = solve(factor, solve(factor, left), transposed=True)
        share = prior.quadratic_sd**2
        matrix = np.eye(dim) + 2.0 * share / dim**2 * (z.T * dual) @ z
        trend = Polynomial(
            level=heights.least + share * float(dual.sum()),
            slope=2.0 * share / dim * (dual @ z),
            matrix=matrix,
        )
        return cls(prior=prior, z=z, factor=factor, dual=dual, trend=trend)

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return int(self.z.shape[1])

    @property
    def mean(self) -> Expansion:
        """The mean as a function of z."""
        lengths = self.prior.length_scales
        return Expansion(
            origin=np.zeros(self.dim),
            scaling=np.diag(1.0 / lengths),
            centres=self.z / lengths,
            weights=self.prior.signal_sd**2 * self.dual,
            slope_weights=None,
            polynomial=self.trend,
        )

    def variance(self, z: FloatArray) -> FloatArray:
        """Return the variance of U, shape (n,), at ``z (n, dim)``, in nats squared."""
        known = solve(self.factor, self.prior.covariance(self.z, z))
        left = self.prior.variance(z) - np.einsum("mn,mn->n", known, known)
        return np.asarray(np.maximum(left, 0.0))

    def covariance(self, z: FloatArray) -> FloatArray:
        """Return the covariance of U, shape (n, n), at ``z (n, dim)``."""
        known = solve(self.factor, self.prior.covariance(self.z, z))
        return np.asarray(self.prior.covariance(z, z) - known.T @ known)

    def left_out(self) -> FloatArray:
        """Return the error at each point of the process given all others, shape (n,)."""
        inverse = solve(self.factor, np.eye(len(self.z)))
        return np.asarray(self.dual / np.square(inverse).sum(axis=0))


def _factorise(covariance: FloatArray, variance: FloatArray) -> FloatArray:
    covariance = covariance.copy()
    covariance[np.diag_indices_from(covariance)] += with_jitter(covariance, variance)
    try:
        return np.asarray(np.linalg.cholesky(covariance))
    except np.linalg.LinAlgError as error:
        raise SurrogateFitError(
            f"the covariance of {len(covariance)} values could not be factorised; explore for "
            "longer, or rescale the parameters"
        ) from error
