"""A process about a random quadratic, for few values of a nearly normal density.

In coordinates z in which the target is nearly standard normal, U(z) = |z|^2 / 2 + a random
quadratic + a random smooth function. The quadratic has the covariance s^2 (1 + z . z' / dim)^2:
each of its coefficients is normal, so that fewer values than coefficients do no harm. The smooth
function has the squared-exponential one. A mean function of a quadratic with such a kernel is that
of Acerbi (2018, arXiv:1810.05558).
"""

from __future__ import annotations

import math
from typing import Self

import attrs
import numpy as np

from surrokit.types import FloatArray
from surrokit_gp.fitted import Expansion
from surrokit_gp.hyperparameters import climb
from surrokit_gp.kernels import factorise, inverse_of, solve, unit_matrix, weighted_squares
from surrokit_gp.trend import Polynomial

# the usual logarithm of each scale, its standard deviation, and its bounds
_SDS = ((math.log(3.0), 2.0, -4.0, 5.0), (math.log(2.0), 1.0, -4.0, 3.4))
_LENGTH = (math.log(2.5), 0.7, -0.7, 3.5)

_NOISE = 1e-3  # of a value in nats; costs no acceptance, and keeps digits
_OFF = 0.1  # noise of a flattened value, as a part of its height above those that are not
_JITTER = 1e-10  # added to the variances, relative to their mean
_SEARCHED = 300  # points that the search looks at, the lowest: the price of a step is their cube
_NEAR = 200.0  # whitened coordinate beyond which a point says nothing


def flat_from(dim: int) -> float:
    """Return the height, in nats, up to which values are met: draws lie dim / 2 high on average."""
    return 5.0 + 2.0 * dim


@attrs.frozen(kw_only=True, eq=False)
class Heights:
    """Values above the least one, in nats.

    Up to ``flat_from`` they are as they are. Above, where the density is next to nothing, they grow
    as their logarithm: a steep wall would bend a process wherever it lies.

    ``values (n,)`` are 0 for the least, and met up to noise of ``variance (n,)``; ``least`` is the
    least value.
    """

    values: FloatArray
    variance: FloatArray
    least: float

    @classmethod
    def of(cls, values: FloatArray, dim: int) -> Heights:
        """Return the heights of values (n,), all finite, at positions of so many numbers."""
        least, top = float(values.min()), flat_from(dim)
        with np.errstate(over="ignore"):
            above = values - least
        above = np.minimum(above, np.finfo(np.float64).max)
        flat = top * (1.0 + np.log(np.maximum(above, top) / top))
        heights = np.where(above > top, flat, above)
        variance = _NOISE**2 + np.square(_OFF * np.maximum(heights - top, 0.0))
        return cls(values=heights, variance=variance, least=least)


def scale_table(dim: int) -> FloatArray:
    """Return the usual log scales, their standard deviations, and bounds: shape (4, 2 + dim)."""
    return np.array([*_SDS, *[_LENGTH] * dim]).T


@attrs.frozen(kw_only=True, eq=False)
class QuadraticPrior:
    """Standard deviations of the random quadratic (s) and of the smooth function, in nats.

    And the ``length_scales (dim,)`` of the latter.
    """

    quadratic_sd: float
    signal_sd: float
    length_scales: FloatArray

    @classmethod
    def usual(cls, dim: int) -> Self:
        """Return the scales before any value is known."""
        return cls.at(scale_table(dim)[0])

    @classmethod
    def at(cls, logs: FloatArray) -> Self:
        """Return the scales with these logarithms, shape (2 + dim,)."""
        quadratic_sd, signal_sd, *lengths = np.exp(logs).tolist()
        return cls(quadratic_sd=quadratic_sd, signal_sd=signal_sd, length_scales=np.array(lengths))

    @property
    def logs(self) -> FloatArray:
        """Logarithms of all scales, shape (2 + dim,)."""
        return np.log([self.quadratic_sd, self.signal_sd, *self.length_scales])

    def quadratic(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return the covariance (n, m) of the quadratic at ``a (n, dim)`` and ``b (m, dim)``."""
        return np.asarray(self.quadratic_sd**2 * np.square(1.0 + a @ b.T / a.shape[1]))

    def smooth(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return the covariance (n, m) of the smooth function."""
        scaled = a / self.length_scales
        return self.signal_sd**2 * unit_matrix(scaled, scaled if b is a else b / self.length_scales)

    def covariance(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return the covariance (n, m) of U at ``a (n, dim)`` and ``b (m, dim)``."""
        return self.quadratic(a, b) + self.smooth(a, b)

    def variance(self, z: FloatArray) -> FloatArray:
        """Return the variance of U, shape (n,), at ``z (n, dim)``."""
        squares = 1.0 + np.square(z).sum(axis=1) / z.shape[1]
        return np.asarray(self.quadratic_sd**2 * np.square(squares) + self.signal_sd**2)


def log_posterior(logs: FloatArray, z: FloatArray, heights: Heights) -> tuple[float, FloatArray]:
    """Return the log posterior density of scales, up to a constant, and its derivatives.

    Their logarithms are normal about the usual ones: few values say little of so many scales.
    """
    prior = QuadraticPrior.at(logs)
    quadratic, smooth = prior.quadratic(z, z), prior.smooth(z, z)
    factor = _factor(quadratic + smooth, heights.variance)
    left = heights.values - 0.5 * np.square(z).sum(axis=1)
    dual = solve(factor, solve(factor, left), transposed=True)
    adjoint = inverse_of(factor) - np.outer(dual, dual)
    by_smooth = adjoint * smooth
    by_lengths = weighted_squares(by_smooth, z, z) / np.square(prior.length_scales)
    slope = [np.einsum("ij,ij->", adjoint, quadratic), by_smooth.sum(), *(0.5 * by_lengths)]
    usual, spread, *_ = scale_table(z.shape[1])
    away = (logs - usual) / spread
    value = 0.5 * left @ dual + np.log(np.diag(factor)).sum() + 0.5 * away @ away
    return -float(value), -(np.array(slope) + away / spread)


def find_prior(z: FloatArray, heights: Heights, start: QuadraticPrior) -> QuadraticPrior:
    """Return the scales of the largest posterior density near a start, by values at z (n, dim)."""
    low, high = bounds = scale_table(z.shape[1])[2:]
    first = np.clip(start.logs, low, high)
    path = climb(lambda logs: log_posterior(logs, z, heights), first, bounds.T, {"maxiter": 30})
    return start if path.point is None else QuadraticPrior.at(path.point)


@attrs.frozen(kw_only=True, eq=False)
class QuadraticProcess:
    """The process given values at ``z (n, dim)``, and its mean as a function of z.

    ``factor (n, n)`` is the lower Cholesky factor of their covariance, and ``dual (n,)`` is
    covariance^-1 (values - |z|^2 / 2).
    """

    prior: QuadraticPrior
    z: FloatArray
    factor: FloatArray
    dual: FloatArray
    mean: Expansion

    @classmethod
    def of(cls, prior: QuadraticPrior, z: FloatArray, heights: Heights) -> Self:
        """Return the process given the heights of U at ``z (n, dim)``."""
        dim, lengths, share = z.shape[1], prior.length_scales, prior.quadratic_sd**2
        factor = _factor(prior.covariance(z, z), heights.variance)
        left = heights.values - 0.5 * np.square(z).sum(axis=1)
        dual = solve(factor, solve(factor, left), transposed=True)
        trend = Polynomial(
            level=heights.least + share * float(dual.sum()),
            slope=2.0 * share / dim * (dual @ z),
            matrix=np.eye(dim) + 2.0 * share / dim**2 * (z.T * dual) @ z,
        )
        mean = Expansion(
            origin=np.zeros(dim),
            scaling=np.diag(1.0 / lengths),
            centres=z / lengths,
            weights=prior.signal_sd**2 * dual,
            gradient_weights=None,
            polynomial=trend,
        )
        return cls(prior=prior, z=z, factor=factor, dual=dual, mean=mean)

    @classmethod
    def fit(cls, z: FloatArray, values: FloatArray, start: QuadraticPrior) -> Self:
        """Return the process given ``values (n,)``, with scales that are searched for from a start.

        Raises
        ------
        SurrogateFitError
            If the values cannot be fitted.
        """
        near = np.abs(z).max(axis=1) < _NEAR
        if near.sum() <= z.shape[1]:
            near[:] = True
        z, heights = z[near], Heights.of(values[near], z.shape[1])
        rows = np.argsort(heights.values, kind="stable")[:_SEARCHED]
        few = attrs.evolve(heights, values=heights.values[rows], variance=heights.variance[rows])
        return cls.of(find_prior(z[rows], few, start), z, heights)

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return int(self.z.shape[1])

    def variance(self, z: FloatArray) -> FloatArray:
        """Return the variance of U, shape (n,), at ``z (n, dim)``, in nats squared."""
        known = solve(self.factor, self.prior.covariance(z, self.z).T)
        left = self.prior.variance(z) - np.einsum("mn,mn->n", known, known)
        return np.asarray(np.maximum(left, 0.0))

    def covariance(self, z: FloatArray) -> FloatArray:
        """Return the covariance of U, shape (n, n), at ``z (n, dim)``."""
        known = solve(self.factor, self.prior.covariance(z, self.z).T)
        return np.asarray(self.prior.covariance(z, z) - known.T @ known)

    def left_out(self) -> FloatArray:
        """Return the error at each point of the process given all others, shape (n,)."""
        inverse = solve(self.factor, np.eye(len(self.z)))
        return np.asarray(self.dual / np.square(inverse).sum(axis=0))


def _factor(covariance: FloatArray, noise: FloatArray) -> FloatArray:
    """Return the Cholesky factor of a covariance (n, n) with noise of some variance (n,)."""
    scale = float(np.diag(covariance).mean())
    return factorise(covariance + np.diag(noise), scale, (_JITTER,), "covariance of values", 0.0)[0]
