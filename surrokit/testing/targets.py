"""Targets in two dimensions whose draws, moments and derivatives are known exactly.

Each is given by a map from independent standard normals to positions, and its inverse. The map
makes exact draws. The inverse turns a test of exact draws into a test of normals.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import attrs
import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular
from scipy.special import expit, ndtr, ndtri, stdtr, stdtrit

from surrokit import capabilities as can
from surrokit.arguments import check_matrices, check_positions, check_vectors
from surrokit.coordinates.transforms import products
from surrokit.targets.energies import ObservedEnergy, gaussian_energy
from surrokit.testing import must
from surrokit.types import Capabilities, FloatArray


def of_trace(slopes: FloatArray, matrices: FloatArray) -> FloatArray:
    """Return tr(A d_k G), shape (n, 2), from d_k G_ij, shape (n, 2, 2, 2), and A."""
    return np.asarray(np.einsum("nij,nijk->nk", matrices, slopes))


def of_form(slopes: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return u^T d_k G u, shape (n, 2), from d_k G_ij, shape (n, 2, 2, 2), and u."""
    return np.asarray(np.einsum("ni,nj,nijk->nk", vectors, vectors, slopes))


class Derived(ABC):
    """A function of two numbers that gives itself and its derivatives by their order."""

    dim: ClassVar[int] = 2

    @abstractmethod
    def derivative(self, order: int, q: FloatArray) -> FloatArray:
        """Return U at q (n, 2), shape (n,), or its derivatives, shape (n, 2, ..., 2)."""

    def _open(self, positions: FloatArray) -> FloatArray:
        return check_positions(positions, 2)

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at positions of shape (n, 2); ``inf`` outside the support."""
        return self.derivative(0, self._open(positions))

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of U, shape (n, 2); NaN outside the support."""
        return self.derivative(1, self._open(positions))

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient, shape (n, 2)."""
        return self.value(positions), self.gradient(positions)

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return the second derivatives of U, shape (n, 2, 2)."""
        return self.derivative(2, self._open(positions))


class Target(Derived):
    """A potential whose distribution is known exactly, with derivatives up to the third."""

    @abstractmethod
    def from_normals(self, normals: FloatArray) -> FloatArray:
        """Return positions, shape (n, 2), made from standard ``normals (n, 2)``."""

    @abstractmethod
    def to_normals(self, positions: FloatArray) -> FloatArray:
        """Return independent standard normals, shape (n, 2), if ``positions`` are exact draws."""

    @property
    def capabilities(self) -> Capabilities:
        """Gradient, by itself as well, all that concerns the Hessian, and starting positions."""
        return can.HESSIANS | {can.GRADIENT, can.GRADIENT_ALONE, can.INITIAL}

    def hessian_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the Hessian times u, shape (n, 2), with u in ``vectors (n, 2)``."""
        return products(self.hessian(positions), check_vectors(vectors, positions))

    def hessian_diagonal(self, positions: FloatArray) -> FloatArray:
        """Return the diagonal of the Hessian, shape (n, 2)."""
        return np.array(np.einsum("nkk->nk", self.hessian(positions)))

    def hessian_diagonal_gradient(self, positions: FloatArray, weights: FloatArray) -> FloatArray:
        """Return sum_j c_j d_k G_jj, G the Hessian, shape (n, 2), with c in ``weights (n, 2)``."""
        q = self._open(positions)
        third = self.derivative(3, q)
        return np.asarray(np.einsum("nj,njjk->nk", check_vectors(weights, q), third))

    def hessian_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G), shape (n, 2), with A in ``matrices (n, 2, 2)``."""
        q = self._open(positions)
        return of_trace(self.derivative(3, q), check_matrices(matrices, q))

    def hessian_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u, shape (n, 2), with u in ``vectors (n, 2)``."""
        q = self._open(positions)
        return of_form(self.derivative(3, q), check_vectors(vectors, q))

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return independent exact draws, shape (n, 2)."""
        return self.from_normals(rng.standard_normal((n, 2)))

    initial = sample


class Separable(Target):
    """A target with U(q) = u_1(q1) + u_2(q2)."""

    @abstractmethod
    def parts(self, order: int, q: FloatArray) -> FloatArray:
        """Return u_1 and u_2, or their derivatives up to the third, shape (n, 2)."""

    def derivative(self, order: int, q: FloatArray) -> FloatArray:
        """Return U at q, or its derivatives."""
        parts = self.parts(order, q)
        return on_diagonal(parts, order) if order else np.asarray(parts.sum(axis=1))


def on_diagonal(parts: FloatArray, order: int) -> FloatArray:
    """Return arrays (n, 2, ..., 2) of an order that are zero but on their diagonals (n, 2)."""
    found = np.zeros((len(parts), *(2,) * order))
    at: tuple[Any, ...] = (slice(None), *(np.arange(2),) * order)
    found[at] = parts
    return found


class MetricTarget(Target):
    """A target with a metric that is positive definite everywhere."""

    @abstractmethod
    def of_metric(self, order: int, q: FloatArray) -> FloatArray:
        """Return the metric G at q (n, 2), shape (n, 2, 2), or d_k G_ij, shape (n, 2, 2, 2)."""

    @property
    def capabilities(self) -> Capabilities:
        """Also the metric, its derivative and its products."""
        return super().capabilities | can.METRICS

    def metric(self, positions: FloatArray) -> FloatArray:
        """Return the metric G, shape (n, 2, 2)."""
        return self.of_metric(0, self._open(positions))

    def metric_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return G u, shape (n, 2), with u in ``vectors (n, 2)``."""
        return products(self.metric(positions), check_vectors(vectors, positions))

    def metric_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G), shape (n, 2), with A in ``matrices (n, 2, 2)``."""
        q = self._open(positions)
        return of_trace(self.of_metric(1, q), check_matrices(matrices, q))

    def metric_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u, shape (n, 2), with u in ``vectors (n, 2)``."""
        q = self._open(positions)
        return of_form(self.of_metric(1, q), check_vectors(vectors, q))


def _array(value: npt.ArrayLike) -> FloatArray:
    array = np.array(value, dtype=np.float64)
    array.setflags(write=False)
    return array


@attrs.frozen(kw_only=True, eq=False)
class Gaussian(MetricTarget):
    """A normal distribution with correlation; its metric is the precision."""

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
        """Return mean + L z."""
        return self.mean + normals @ self.factor.T

    def to_normals(self, positions: FloatArray) -> FloatArray:
        """Return L^-1 (q - mean)."""
        away = (positions - self.mean).T
        return np.asarray(solve_triangular(self.factor, away, lower=True).T)

    def derivative(self, order: int, q: FloatArray) -> FloatArray:
        """Return U at q, or its derivatives."""
        precision = np.asarray(np.linalg.inv(self.covariance), dtype=np.float64)
        if order >= 2:
            found = precision if order == 2 else np.zeros((2, 2, 2))
            return np.broadcast_to(found, (len(q), *found.shape)).copy()
        slope = (q - self.mean) @ precision
        if order == 1:
            return slope
        half = 0.5 * ((q - self.mean) * slope).sum(axis=1)
        return np.where(np.isnan(half), np.inf, half)  # infinities of both signs cancel to NaN

    def of_metric(self, order: int, q: FloatArray) -> FloatArray:
        """Return the precision, or zeros."""
        return self.derivative(2 + order, q)


@attrs.frozen(kw_only=True)
class Mixture(Separable):
    """Two unit normals at (-a, 0) and (a, 0), with weights 1 - w and w.

    Its Hessian is indefinite between the modes.
    """

    half_distance: float = 1.5  # a
    weight: float = 0.35  # w

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

    def parts(self, order: int, q: FloatArray) -> FloatArray:
        """Return the two terms, or their derivatives."""
        (x, y), a, w = q.T, self.half_distance, self.weight
        share = expit(2.0 * a * x + math.log(w / (1.0 - w)))  # probability of the mode at (a, 0)
        spread = share * (1.0 - share)
        left, right = (math.log(of) - 0.5 * np.square(x - at) for of, at in ((1.0 - w, -a), (w, a)))
        first, second = (
            (-np.logaddexp(left, right), 0.5 * np.square(y)),
            (x + a - 2.0 * a * share, y),
            (1.0 - 4.0 * a**2 * spread, np.ones_like(y)),
            (-8.0 * a**3 * spread * (1.0 - 2.0 * share), np.zeros_like(y)),
        )[order]
        return np.column_stack([first, second])


@attrs.frozen(kw_only=True)
class Banana(MetricTarget):
    """q1 ~ N(0, 1) and q2 | q1 ~ N(q1^2, s^2): curved, and a forward potential.

    The outputs are q1 and q2 - q1^2, observed as 0 with noise 1 and s; the metric is the
    Gauss-Newton matrix. With ``adjoint`` its gradient comes with its outputs.
    """

    sd: float = 0.8  # s
    adjoint: bool = False

    @property
    def capabilities(self) -> Capabilities:
        """Also the forward map with its derivatives, and perhaps ``vjp``."""
        of_map = {can.FORWARD, can.JACOBIAN}
        return super().capabilities | of_map | ({can.VJP} if self.adjoint else set())

    @property
    def energy(self) -> ObservedEnergy:
        """Half the squared outputs in units of their noise."""
        return gaussian_energy([0.0, 0.0], [1.0, self.sd])

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

    def forward_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the outputs, shape (n, 2), and the gradient of U, shape (n, 2)."""
        return self.forward(positions), self.gradient(positions)

    def from_normals(self, normals: FloatArray) -> FloatArray:
        """Return (z1, z1^2 + s z2)."""
        return np.column_stack([normals[:, 0], np.square(normals[:, 0]) + self.sd * normals[:, 1]])

    def to_normals(self, positions: FloatArray) -> FloatArray:
        """Return (q1, (q2 - q1^2) / s)."""
        bent = (positions[:, 1] - np.square(positions[:, 0])) / self.sd
        return np.column_stack([positions[:, 0], bent])

    def derivative(self, order: int, q: FloatArray) -> FloatArray:
        """Return U at q, or its derivatives."""
        constant = 0.0 if order else np.log(2.0 * np.pi * self.sd)
        return BananaSum(1.0, self.sd**-2).derivative(order, q) + constant

    def of_metric(self, order: int, q: FloatArray) -> FloatArray:
        """Return J^T J in units of the noise, or its derivative."""
        x, b = q[:, 0], self.sd**-2
        return _bent(order, x, b, (1.0 + 4.0 * b * np.square(x), 8.0 * b * x)[order])


@attrs.frozen
class BananaSum(Derived):
    """a q1^2 / 2 + b (q2 - q1^2)^2 / 2, with derivatives up to the third."""

    first: float  # a
    second: float  # b

    capabilities: ClassVar[Capabilities] = frozenset(
        {can.GRADIENT, can.GRADIENT_ALONE, can.HESSIAN}
    )

    def derivative(self, order: int, q: FloatArray) -> FloatArray:
        """Return U at q, or its derivatives."""
        (x, y), a, b = q.T, self.first, self.second
        off = y - np.square(x)
        if order == 0:
            return np.asarray(0.5 * (a * np.square(x) + b * np.square(off)))
        if order == 1:
            return np.column_stack([x * (a - 2.0 * b * off), b * off])
        found = _bent(
            order - 2, x, b, (a + b * (6.0 * np.square(x) - 2.0 * y), 12.0 * b * x)[order - 2]
        )
        if order == 3:
            found[:, 0, 0, 1] = -2.0 * b
        return found


def _bent(order: int, x: FloatArray, b: float, corner: FloatArray) -> FloatArray:
    """Return [[corner, -2 b x], [-2 b x, b]], or its derivative with that of the corner by x."""
    found = np.zeros((len(x), *(2,) * (2 + order)))
    found.reshape(len(x), -1)[:, 0] = corner
    if order == 0:
        found[:, 0, 1] = found[:, 1, 0] = -2.0 * b * x
        found[:, 1, 1] = b
    else:
        found[:, 0, 1, 0] = found[:, 1, 0, 0] = -2.0 * b
    return found


@attrs.frozen(kw_only=True)
class Student(MetricTarget, Separable):
    """Independent Student's t in each coordinate: heavy tails, and an indefinite Hessian there.

    The metric is diagonal, with (degrees + 1) / (degrees + q^2): the mean precision at q of the t
    distribution as a mixture of normals, which is positive everywhere.
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

    def parts(self, order: int, q: FloatArray) -> FloatArray:
        """Return the two terms, or their derivatives."""
        v, square = self.degrees, np.square(q)
        found = (
            0.5 * np.log1p(square / v),
            q / (v + square),
            (v - square) / (v + square) ** 2,
            2.0 * q * (square - 3.0 * v) / (v + square) ** 3,
        )[order]
        return np.asarray((v + 1.0) * found)

    def of_metric(self, order: int, q: FloatArray) -> FloatArray:
        """Return the metric at q, or its derivative."""
        spread = self.degrees + np.square(q)
        found = (1.0 / spread, -2.0 * q / np.square(spread))[order]
        return on_diagonal((self.degrees + 1.0) * found, 2 + order)


@attrs.frozen
class HalfPlane(Separable):
    """A standard normal cut at q1 = 0: no density, and no gradient, where q1 <= 0."""

    def from_normals(self, normals: FloatArray) -> FloatArray:
        """Return the half-normal quantile of the first normal's probability."""
        return np.column_stack([-ndtri(0.5 * ndtr(-normals[:, 0])), normals[:, 1]])

    def to_normals(self, positions: FloatArray) -> FloatArray:
        """Return the normal quantile of the first coordinate's half-normal probability."""
        return np.column_stack([-ndtri(2.0 * ndtr(-positions[:, 0])), positions[:, 1]])

    def parts(self, order: int, q: FloatArray) -> FloatArray:
        """Return the two terms, or their derivatives."""
        inside = (0.5 * np.square(q), q, np.ones_like(q), np.zeros_like(q))[order]
        return np.where(q[:, :1] > 0, inside, np.nan if order else np.inf)


ALL: tuple[type[Target], ...] = (Gaussian, Mixture, Banana, Student, HalfPlane)
"""Classes of target with different shapes, each made without arguments."""


def usable(part: Any, *targets: Target) -> list[Target]:
    """Return the targets, at least one, that offer what a part needs.

    If none of those given does, that is the normal target, which offers more than any other.
    """
    for several in (targets, (Gaussian(),)):
        if found := [target for target in several if part.needs <= target.capabilities]:
            return found
    must.hold(
        False, f"the {type(part).__name__} needs {sorted(part.needs)}, which no target offers"
    )
    return []
