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
            above = np.minimum(values - least, np.finfo(np.float64).max)
        flat = top * (1.0 + np.log(np.maximum(above, top) / top))
        heights = np.where(above > top, flat, above)
        # a thousandth of a nat costs no acceptance, and keeps digits
        variance = 1e-3**2 + np.square(0.1 * np.maximum(heights - top, 0.0))
        return cls(values=heights, variance=variance, least=least)


def scale_table(dim: int) -> FloatArray:
    """Return the usual log scales, their standard deviations, and bounds: shape (4, 2 + dim)."""
    sds = (math.log(3.0), 2.0, -4.0, 5.0), (math.log(2.0), 1.0, -4.0, 3.4)
    return np.array([*sds, *[(math.log(2.5), 0.7, -0.7, 3.5)] * dim]).T


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

    def parts(self, a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the covariances (n, m) of quadratic and smooth function at a and b (m, dim)."""
        scaled = a / self.length_scales
        smooth = unit_matrix(scaled, scaled if b is a else b / self.length_scales)
        quadratic = self.quadratic_sd**2 * np.square(1.0 + a @ b.T / a.shape[1])
        return quadratic, self.signal_sd**2 * smooth

    def covariance(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return the covariance (n, m) of U at ``a (n, dim)`` and ``b (m, dim)``."""
        quadratic, smooth = self.parts(a, b)
        return quadratic + smooth

    def condition(
        self, covariance: FloatArray, z: FloatArray, heights: Heights
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the factor of a covariance with noise, what |z|^2 / 2 leaves, and its dual."""
        scale = float(np.diag(covariance).mean())
        noisy = covariance + np.diag(heights.variance)
        factor, _ = factorise(noisy, scale, (1e-10,), "covariance of values", 0.0)
        left = heights.values - 0.5 * np.square(z).sum(axis=1)
        return factor, left, solve(factor, solve(factor, left), transposed=True)


def log_posterior(logs: FloatArray, z: FloatArray, heights: Heights) -> tuple[float, FloatArray]:
    """Return the log posterior density of scales, up to a constant, and its derivatives.

    Their logarithms are normal about the usual ones: few values say little of so many scales.
    """
    prior = QuadraticPrior.at(logs)
    quadratic, smooth = prior.parts(z, z)
    factor, left, dual = prior.condition(quadratic + smooth, z, heights)
    adjoint = inverse_of(factor) - np.outer(dual, dual)
    by_smooth = adjoint * smooth
    by_lengths = weighted_squares(by_smooth, z, z) / np.square(prior.length_scales)
    slope = [np.einsum("ij,ij->", adjoint, quadratic), by_smooth.sum(), *(0.5 * by_lengths)]
    usual, spread, *_ = scale_table(z.shape[1])
    away = (logs - usual) / spread
    value = 0.5 * left @ dual + np.log(np.diag(factor)).sum() + 0.5 * away @ away
    return -float(value), -(np.array(slope) + away / spread)


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
        factor, _, dual = prior.condition(prior.covariance(z, z), z, heights)
        trend = Polynomial(
            level=heights.least + share * float(dual.sum()),
            slope=2.0 * share / dim * (dual @ z),
            matrix=np.eye(dim) + 2.0 * share / dim**2 * (z.T * dual) @ z,
        )
        mean = Expansion(
            origin=np.zeros(dim),
            scaling=np.diag(1.0 / lengths),
            nodes=z / lengths,
            levels=prior.signal_sd**2 * dual,
            slopes=None,
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
        near = np.abs(z).max(axis=1) < 200.0  # beyond, a point says nothing
        if near.sum() <= z.shape[1]:
            near[:] = True
        z, heights = z[near], Heights.of(values[near], z.shape[1])
        # the search looks at the lowest points: the price of a step is their cube
        rows = np.argsort(heights.values, kind="stable")[:300]
        few = attrs.evolve(heights, values=heights.values[rows], variance=heights.variance[rows])
        low, high = bounds = scale_table(z.shape[1])[2:]
        logs, *_ = climb(
            lambda logs: log_posterior(logs, z[rows], few),
            np.clip(start.logs, low, high),
            bounds.T,
            {"maxiter": 30},
        )
        return cls.of(start if logs is None else QuadraticPrior.at(logs), z, heights)

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return int(self.z.shape[1])

    def covariance(self, z: FloatArray) -> FloatArray:
        """Return the covariance of U, shape (n, n), at ``z (n, dim)``, in nats squared."""
        known = solve(self.factor, self.prior.covariance(z, self.z).T)
        return np.asarray(self.prior.covariance(z, z) - known.T @ known)

    def variance(self, z: FloatArray) -> FloatArray:
        """Return the variance of U, shape (n,), at ``z (n, dim)``, in nats squared."""
        known = solve(self.factor, self.prior.covariance(z, self.z).T)
        squares = np.square(1.0 + np.square(z).sum(axis=1) / self.dim)
        alone = self.prior.quadratic_sd**2 * squares + self.prior.signal_sd**2
        return np.asarray(np.maximum(alone - np.einsum("mn,mn->n", known, known), 0.0))

    def left_out(self) -> FloatArray:
        """Return the error at each point of the process given all others, shape (n,)."""
        inverse = solve(self.factor, np.eye(len(self.z)))
        return np.asarray(self.dual / np.square(inverse).sum(axis=0))
