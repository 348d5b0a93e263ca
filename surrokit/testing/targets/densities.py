"""Densities whose moments and derivatives are known."""

from __future__ import annotations

import math

import attrs
import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular
from scipy.special import expit, ndtr, ndtri, stdtr, stdtrit

from surrokit import capabilities as can
from surrokit.arguments import check_weights
from surrokit.targets.gaussian import GaussianEnergy
from surrokit.testing.targets.target import MetricTarget, Target
from surrokit.types import Capabilities, FloatArray


def _array(value: npt.ArrayLike) -> FloatArray:
    array = np.array(value, dtype=np.float64)
    array.setflags(write=False)
    return array


@attrs.frozen(kw_only=True, eq=False)
class Gaussian(MetricTarget):
    """A normal distribution with correlation; its metric is the precision.

    Parameters
    ----------
    mean : array_like of shape (2,)
        Its mean.
    covariance : array_like of shape (2, 2)
        Its covariance.
    """

    mean: FloatArray = attrs.field(default=(0.5, -0.3), converter=_array)
    covariance: FloatArray = attrs.field(default=((1.0, 0.4), (0.4, 0.7)), converter=_array)

    @property
    def capabilities(self) -> Capabilities:
        """Also ``convex`` and ``gaussian``."""
        return super().capabilities | {can.CONVEX, can.GAUSSIAN}

    @property
    def factor(self) -> FloatArray:
        """L, lower triangular of shape (2, 2), with L L^T the covariance."""
        return np.asarray(np.linalg.cholesky(self.covariance), dtype=np.float64)

    def from_normals(self, normals: FloatArray) -> FloatArray:
        """Return mean + L z, with L L^T the covariance."""
        return self.mean + normals @ self.factor.T

    def to_normals(self, positions: FloatArray) -> FloatArray:
        """Return L^-1 (q - mean)."""
        away = (positions - self.mean).T
        return np.asarray(solve_triangular(self.factor, away, lower=True).T)

    def _energy(self, q: FloatArray) -> FloatArray:
        half = 0.5 * ((q - self.mean) * self._slope(q)).sum(axis=1)
        return np.where(np.isnan(half), np.inf, half)  # infinities of both signs cancel to NaN

    def _slope(self, q: FloatArray) -> FloatArray:
        return (q - self.mean) @ np.linalg.inv(self.covariance)

    def _curvature(self, q: FloatArray) -> FloatArray:
        return np.broadcast_to(np.linalg.inv(self.covariance), (len(q), 2, 2)).copy()

    def _twist(self, q: FloatArray) -> FloatArray:
        return np.zeros((len(q), 2, 2, 2))

    def _metric(self, q: FloatArray) -> FloatArray:
        return self._curvature(q)

    def _metric_slopes(self, q: FloatArray) -> FloatArray:
        return self._twist(q)


@attrs.frozen(kw_only=True)
class Mixture(Target):
    """Two unit normals at (-a, 0) and (a, 0), with weights 1 - w and w.

    Its Hessian is indefinite between the modes.

    Parameters
    ----------
    half_distance
        a.
    weight
        w, that of the mode at (a, 0).
    """

    half_distance: float = 1.5
    weight: float = 0.35

    def from_normals(self, normals: FloatArray) -> FloatArray:
        """Invert the distribution function of the first coordinate by bisection."""
        goal = ndtr(normals[:, 0])
        low = np.full(len(goal), -self.half_distance - 40.0)
        high = -low
        for _ in range(60):
            middle = 0.5 * (low + high)
            below = self._distribution(middle) < goal
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.column_stack([0.5 * (low + high), normals[:, 1]])

    def to_normals(self, positions: FloatArray) -> FloatArray:
        """Return the normal quantile of each first coordinate's probability."""
        return np.column_stack([ndtri(self._distribution(positions[:, 0])), positions[:, 1]])

    def _distribution(self, x: FloatArray) -> FloatArray:
        a, w = self.half_distance, self.weight
        return np.asarray((1.0 - w) * ndtr(x + a) + w * ndtr(x - a))

    def _share(self, x: FloatArray) -> FloatArray:
        """Return the probability that a point belongs to the mode at (a, 0)."""
        odds = math.log(self.weight / (1.0 - self.weight))
        return np.asarray(expit(2.0 * self.half_distance * x + odds))

    def _energy(self, q: FloatArray) -> FloatArray:
        a, w = self.half_distance, self.weight
        left = math.log(1.0 - w) - 0.5 * np.square(q[:, 0] + a)
        right = math.log(w) - 0.5 * np.square(q[:, 0] - a)
        return np.asarray(-np.logaddexp(left, right) + 0.5 * np.square(q[:, 1]))

    def _slope(self, q: FloatArray) -> FloatArray:
        a = self.half_distance
        return np.column_stack([q[:, 0] + a - 2.0 * a * self._share(q[:, 0]), q[:, 1]])

    def _curvature(self, q: FloatArray) -> FloatArray:
        share = self._share(q[:, 0])
        hessian = np.broadcast_to(np.eye(2), (len(q), 2, 2)).copy()
        hessian[:, 0, 0] -= 4.0 * self.half_distance**2 * share * (1.0 - share)
        return hessian

    def _twist(self, q: FloatArray) -> FloatArray:
        share = self._share(q[:, 0])
        third = np.zeros((len(q), 2, 2, 2))
        bend = share * (1.0 - share) * (1.0 - 2.0 * share)
        third[:, 0, 0, 0] = -8.0 * self.half_distance**3 * bend
        return third


@attrs.frozen(kw_only=True)
class Banana(MetricTarget):
    """q1 ~ N(0, 1) and q2 | q1 ~ N(q1^2, s^2): curved, and a forward potential.

    The outputs are q1 and q2 - q1^2, observed as 0 with noise 1 and s; the metric is the
    Gauss-Newton matrix.

    Parameters
    ----------
    sd
        s.
    """

    sd: float = 0.8

    @property
    def capabilities(self) -> Capabilities:
        """Also the forward map with its first and second derivatives."""
        return super().capabilities | {can.FORWARD, can.JACOBIAN, can.FORWARD_HESSIAN}

    @property
    def energy(self) -> GaussianEnergy:
        """Half the squared outputs in units of their noise."""
        return GaussianEnergy(data=[0.0, 0.0], noise_sd=[1.0, self.sd])

    def forward(self, positions: FloatArray) -> FloatArray:
        """Return q1 and q2 - q1^2, shape (n, 2)."""
        q = self._open(positions)
        return np.column_stack([q[:, 0], q[:, 1] - np.square(q[:, 0])])

    def forward_and_jacobian(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the outputs, shape (n, 2), and their derivatives, shape (n, 2, 2)."""
        outputs = self.forward(positions)
        jacobian = np.broadcast_to(np.eye(2), (len(outputs), 2, 2)).copy()
        jacobian[:, 1, 0] = -2.0 * outputs[:, 0]
        return outputs, jacobian

    def forward_hessian_product(self, positions: FloatArray, weights: FloatArray) -> FloatArray:
        """Return sum over m and i of W_mi d_i d_k F_m, shape (n, 2), for ``weights (n, 2, 2)``."""
        q = self._open(positions)
        w = check_weights(weights, q)
        return np.column_stack([-2.0 * w[:, 1, 0], np.zeros(len(q))])

    def forward_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the outputs, shape (n, 2), and the gradient of U, shape (n, 2)."""
        return self.forward(positions), self._slope(self._open(positions))

    def from_normals(self, normals: FloatArray) -> FloatArray:
        """Return (z1, z1^2 + s z2)."""
        return np.column_stack([normals[:, 0], np.square(normals[:, 0]) + self.sd * normals[:, 1]])

    def to_normals(self, positions: FloatArray) -> FloatArray:
        """Return (q1, (q2 - q1^2) / s)."""
        bent = (positions[:, 1] - np.square(positions[:, 0])) / self.sd
        return np.column_stack([positions[:, 0], bent])

    def _energy(self, q: FloatArray) -> FloatArray:
        half = 0.5 * np.square(self.to_normals(q)).sum(axis=1)
        return np.asarray(half + np.log(2.0 * np.pi * self.sd))

    def _slope(self, q: FloatArray) -> FloatArray:
        bent = (q[:, 1] - np.square(q[:, 0])) / self.sd**2
        return np.column_stack([q[:, 0] * (1.0 - 2.0 * bent), bent])

    def _curvature(self, q: FloatArray) -> FloatArray:
        x, precision = q[:, 0], self.sd**-2
        hessian = np.empty((len(q), 2, 2))
        hessian[:, 0, 0] = 1.0 + precision * (6.0 * np.square(x) - 2.0 * q[:, 1])
        hessian[:, 0, 1] = hessian[:, 1, 0] = -2.0 * precision * x
        hessian[:, 1, 1] = precision
        return hessian

    def _twist(self, q: FloatArray) -> FloatArray:
        precision = self.sd**-2
        third = np.zeros((len(q), 2, 2, 2))
        third[:, 0, 0, 0] = 12.0 * precision * q[:, 0]
        third[:, 0, 0, 1] = third[:, 0, 1, 0] = third[:, 1, 0, 0] = -2.0 * precision
        return third

    def _metric(self, q: FloatArray) -> FloatArray:
        x, precision = q[:, 0], self.sd**-2
        metric = np.empty((len(q), 2, 2))
        metric[:, 0, 0] = 1.0 + 4.0 * precision * np.square(x)
        metric[:, 0, 1] = metric[:, 1, 0] = -2.0 * precision * x
        metric[:, 1, 1] = precision
        return metric

    def _metric_slopes(self, q: FloatArray) -> FloatArray:
        precision = self.sd**-2
        slopes = np.zeros((len(q), 2, 2, 2))
        slopes[:, 0, 0, 0] = 8.0 * precision * q[:, 0]
        slopes[:, 0, 1, 0] = slopes[:, 1, 0, 0] = -2.0 * precision
        return slopes


@attrs.frozen(kw_only=True)
class AdjointBanana(Banana):
    """The same, and it offers its gradient with its outputs, as by an adjoint."""

    @property
    def capabilities(self) -> Capabilities:
        """Also ``vjp``."""
        return super().capabilities | {can.VJP}


@attrs.frozen(kw_only=True)
class Student(MetricTarget):
    """Independent Student's t in each coordinate: heavy tails, and an indefinite Hessian there.

    The metric is diagonal, with (degrees + 1) / (degrees + q^2): the mean precision at q of the t
    distribution as a mixture of normals, which is positive everywhere.

    Parameters
    ----------
    degrees
        Degrees of freedom.
    """

    degrees: float = 5.0

    def from_normals(self, normals: FloatArray) -> FloatArray:
        """Return the t quantile of each normal's probability."""
        # by symmetry from the lower tail, where probabilities keep their digits
        lower = stdtrit(self.degrees, ndtr(-np.abs(normals)))
        return np.asarray(-np.sign(normals) * lower)

    def to_normals(self, positions: FloatArray) -> FloatArray:
        """Return the normal quantile of each t probability."""
        return np.asarray(-np.sign(positions) * ndtri(stdtr(self.degrees, -np.abs(positions))))

    def _energy(self, q: FloatArray) -> FloatArray:
        half = 0.5 * (self.degrees + 1.0)
        return np.asarray(half * np.log1p(np.square(q) / self.degrees).sum(axis=1))

    def _slope(self, q: FloatArray) -> FloatArray:
        return (self.degrees + 1.0) * q / (self.degrees + np.square(q))

    def _curvature(self, q: FloatArray) -> FloatArray:
        square = np.square(q)
        diagonal = (self.degrees + 1.0) * (self.degrees - square) / (self.degrees + square) ** 2
        return diagonal[:, :, None] * np.eye(2)

    def _twist(self, q: FloatArray) -> FloatArray:
        square = np.square(q)
        bend = 2.0 * q * (square - 3.0 * self.degrees) / (self.degrees + square) ** 3
        third = np.zeros((len(q), 2, 2, 2))
        both = np.arange(2)
        third[:, both, both, both] = (self.degrees + 1.0) * bend
        return third

    def _metric(self, q: FloatArray) -> FloatArray:
        diagonal = (self.degrees + 1.0) / (self.degrees + np.square(q))
        return diagonal[:, :, None] * np.eye(2)

    def _metric_slopes(self, q: FloatArray) -> FloatArray:
        slopes = np.zeros((len(q), 2, 2, 2))
        both = np.arange(2)
        denominators = np.square(self.degrees + np.square(q))
        slopes[:, both, both, both] = -2.0 * (self.degrees + 1.0) * q / denominators
        return slopes


@attrs.frozen
class HalfPlane(Target):
    """A standard normal cut at q1 = 0: no density, and no gradient, where q1 <= 0."""

    def from_normals(self, normals: FloatArray) -> FloatArray:
        """Return the half-normal quantile of the first normal's probability."""
        return np.column_stack([-ndtri(0.5 * ndtr(-normals[:, 0])), normals[:, 1]])

    def to_normals(self, positions: FloatArray) -> FloatArray:
        """Return the normal quantile of the first coordinate's half-normal probability."""
        return np.column_stack([-ndtri(2.0 * ndtr(-positions[:, 0])), positions[:, 1]])

    def _energy(self, q: FloatArray) -> FloatArray:
        return np.where(q[:, 0] > 0, 0.5 * np.square(q).sum(axis=1), np.inf)

    def _slope(self, q: FloatArray) -> FloatArray:
        return np.where(q[:, :1] > 0, q, np.nan)

    def _curvature(self, q: FloatArray) -> FloatArray:
        return np.where(q[:, :1, None] > 0, np.eye(2), np.nan)

    def _twist(self, q: FloatArray) -> FloatArray:
        return np.where(q[:, :1, None, None] > 0, np.zeros((2, 2, 2)), np.nan)


ALL: tuple[type[Target], ...] = (Gaussian, Mixture, Banana, Student, HalfPlane)
"""Every class of target here, each made without arguments."""
