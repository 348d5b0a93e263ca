"""Targets in two dimensions that break samplers which cut corners, and their exact draws."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np
from scipy import stats
from scipy.special import ndtr, ndtri

import surrokit as sk
from surrokit.coordinates.parameters import Bounds, Parameters
from surrokit.coordinates.transforms import Transform
from surrokit.potentials import Potential
from surrokit.targets.bounds import with_bounds
from surrokit.testing.targets import (
    Banana,
    Gaussian,
    HalfPlane,
    Mixture,
    Separable,
    Student,
    Target,
)
from surrokit.types import Capabilities, FloatArray

Marginal = Any  # distribution function and quantiles from either end, as frozen ones of SciPy


def quantiles(marginal: Marginal, normals: FloatArray) -> FloatArray:
    """Return the quantile of each normal's probability, from the nearer end."""
    tail = ndtr(-np.abs(normals))
    return np.where(normals < 0, marginal.ppf(tail), marginal.isf(tail))


def scores(marginal: Marginal, x: FloatArray) -> FloatArray:
    """Return the normal quantile of each number's probability, from the nearer end."""
    below, above = marginal.cdf(x), marginal.sf(x)
    return np.where(below < above, ndtri(below), -ndtri(above))


@attrs.frozen
class SteppedNormal:
    """Density proportional to a standard normal's times a weight on each interval between edges."""

    edges: tuple[float, ...]
    weights: tuple[float, ...]

    @property
    def reflected(self) -> SteppedNormal:
        return SteppedNormal(tuple(-edge for edge in self.edges[::-1]), self.weights[::-1])

    @property
    def total(self) -> float:
        return float(self._masses().sum())

    def _masses(self) -> FloatArray:
        bounds = np.array([-np.inf, *self.edges, np.inf])
        return np.asarray(self.weights) * np.diff(ndtr(bounds))

    def cdf(self, x: FloatArray) -> FloatArray:
        ends = np.clip(x[..., None], [-np.inf, *self.edges], [*self.edges, np.inf])
        parts = np.asarray(self.weights) * (ndtr(ends) - ndtr([-np.inf, *self.edges]))
        return parts.sum(axis=-1) / self.total

    def sf(self, x: FloatArray) -> FloatArray:
        return self.reflected.cdf(-x)

    def ppf(self, p: FloatArray) -> FloatArray:
        ends = np.cumsum(self._masses())
        mass = p * self.total
        here = np.minimum(np.searchsorted(ends, mass, side="right"), len(ends) - 1)
        begin = np.concatenate([[0.0], ends])[here]
        lower = ndtr([-np.inf, *self.edges])[here]
        return ndtri(lower + (mass - begin) / np.asarray(self.weights)[here])

    def isf(self, p: FloatArray) -> FloatArray:
        return -self.reflected.ppf(p)


class Independent(Separable):
    """Two numbers that know nothing of each other."""

    marginals: tuple[Marginal, Marginal]

    def _derivatives(self, q: FloatArray) -> tuple[FloatArray, ...]:
        """Return U of each number and its first three derivatives, all of shape (n, 2)."""
        raise NotImplementedError

    def _derivative(self, order: int, q: FloatArray) -> FloatArray:
        return self._derivatives(q)[order]

    def from_normals(self, normals: FloatArray) -> FloatArray:
        pairs = zip(self.marginals, normals.T, strict=True)
        return np.column_stack([quantiles(*pair) for pair in pairs])

    def to_normals(self, positions: FloatArray) -> FloatArray:
        pairs = zip(self.marginals, positions.T, strict=True)
        return np.column_stack([scores(*pair) for pair in pairs])


@attrs.frozen
class Gammas(Independent):
    """Gamma(a) in each number: for a < 1 a density without bound at zero."""

    shape: float

    @property
    def marginals(self) -> tuple[Marginal, Marginal]:
        return (stats.gamma(self.shape),) * 2

    def _derivatives(self, q: FloatArray) -> tuple[FloatArray, ...]:
        b = 1.0 - self.shape
        return q + b * np.log(q), 1.0 + b / q, -b / q**2, 2.0 * b / q**3


@attrs.frozen
class Betas(Independent):
    """Beta(a, b) in each number."""

    a: float
    b: float

    @property
    def marginals(self) -> tuple[Marginal, Marginal]:
        return (stats.beta(self.a, self.b),) * 2

    def _derivatives(self, q: FloatArray) -> tuple[FloatArray, ...]:
        a, b, rest = 1.0 - self.a, 1.0 - self.b, 1.0 - q
        return (
            a * np.log(q) + b * np.log(rest),
            a / q - b / rest,
            -a / q**2 - b / rest**2,
            2.0 * a / q**3 - 2.0 * b / rest**3,
        )


@attrs.frozen
class CutNormals(Independent):
    """N(-1, 1) above 0, which is its tail, and N(0.7, 0.25) between 0 and 1."""

    @property
    def marginals(self) -> tuple[Marginal, Marginal]:
        tail = stats.truncnorm(1.0, np.inf, loc=-1.0)
        return tail, stats.truncnorm(-1.4, 0.6, loc=0.7, scale=0.5)

    def _derivatives(self, q: FloatArray) -> tuple[FloatArray, ...]:
        precision = np.array([1.0, 4.0])
        away = q - np.array([-1.0, 0.7])
        zero = np.zeros_like(q)
        return 0.5 * precision * away**2, precision * away, precision + zero, zero


@attrs.frozen
class Step(Independent):
    """A standard normal whose density drops to a part of it where the first number is larger."""

    edge: float = 0.3
    part: float = 0.2

    @property
    def marginals(self) -> tuple[Marginal, Marginal]:
        return SteppedNormal((self.edge,), (1.0, self.part)), stats.norm()

    def _derivatives(self, q: FloatArray) -> tuple[FloatArray, ...]:
        drop = np.zeros_like(q)
        drop[q[:, 0] >= self.edge, 0] = -math.log(self.part)
        return 0.5 * q**2 + drop, q, np.ones_like(q), np.zeros_like(q)


@attrs.frozen
class Hole(Target):
    """A standard normal that is NaN where q1 lies between two edges and q2 is positive."""

    edges: tuple[float, float] = (0.2, 1.2)

    @property
    def beside(self) -> SteppedNormal:
        return SteppedNormal(self.edges, (1.0, 0.0, 1.0))

    @property
    def second(self) -> SteppedNormal:
        return SteppedNormal((0.0,), (1.0, self.beside.total))

    def from_normals(self, normals: FloatArray) -> FloatArray:
        q2 = quantiles(self.second, normals[:, 1])
        q1 = np.where(q2 > 0, quantiles(self.beside, normals[:, 0]), normals[:, 0])
        return np.column_stack([q1, q2])

    def to_normals(self, positions: FloatArray) -> FloatArray:
        q1, q2 = positions.T
        first = np.where(q2 > 0, scores(self.beside, q1), q1)
        return np.column_stack([first, scores(self.second, q2)])

    def _outside(self, q: FloatArray, array: FloatArray) -> FloatArray:
        inside = (q[:, 1] > 0) & (q[:, 0] > self.edges[0]) & (q[:, 0] < self.edges[1])
        return np.where(inside.reshape(-1, *[1] * (array.ndim - 1)), np.nan, array)

    def _energy(self, q: FloatArray) -> FloatArray:
        return self._outside(q, 0.5 * np.square(q).sum(axis=1))

    def _slope(self, q: FloatArray) -> FloatArray:
        return self._outside(q, q)

    def _curvature(self, q: FloatArray) -> FloatArray:
        return self._outside(q, np.broadcast_to(np.eye(2), (len(q), 2, 2)))

    def _twist(self, q: FloatArray) -> FloatArray:
        return self._outside(q, np.zeros((len(q), 2, 2, 2)))


@attrs.frozen
class Funnel(Target):
    """Neal's funnel: v ~ N(0, 9) and x | v ~ N(0, exp(v))."""

    sd: float = 3.0

    def from_normals(self, normals: FloatArray) -> FloatArray:
        v = self.sd * normals[:, 0]
        return np.column_stack([v, np.exp(0.5 * v) * normals[:, 1]])

    def to_normals(self, positions: FloatArray) -> FloatArray:
        v, x = positions.T
        return np.column_stack([v / self.sd, x * np.exp(-0.5 * v)])

    def _energy(self, q: FloatArray) -> FloatArray:
        return 0.5 * (np.square(self.to_normals(q)).sum(axis=1) + q[:, 0])

    def _slope(self, q: FloatArray) -> FloatArray:
        v, x = q.T
        precision = np.exp(-v)
        return np.column_stack([v / self.sd**2 + 0.5 - 0.5 * precision * x**2, precision * x])

    def _curvature(self, q: FloatArray) -> FloatArray:
        v, x = q.T
        precision = np.exp(-v)
        hessian = np.empty((len(q), 2, 2))
        hessian[:, 0, 0] = self.sd**-2 + 0.5 * precision * x**2
        hessian[:, 0, 1] = hessian[:, 1, 0] = -precision * x
        hessian[:, 1, 1] = precision
        return hessian

    def _twist(self, q: FloatArray) -> FloatArray:
        v, x = q.T
        precision = np.exp(-v)
        third = np.zeros((len(q), 2, 2, 2))
        third[:, 0, 0, 0] = -0.5 * precision * x**2
        third[:, 0, 0, 1] = third[:, 0, 1, 0] = third[:, 1, 0, 0] = precision * x
        third[:, 0, 1, 1] = third[:, 1, 0, 1] = third[:, 1, 1, 0] = -precision
        return third


@attrs.frozen(kw_only=True, eq=False)
class Case:
    """A target with exact draws, in coordinates z in which it has no bounds."""

    name: str
    attacks: str  # what it is hard on
    density: Target  # in the user's coordinates
    bounds: tuple[Bounds | None, Bounds | None] = (None, None)  # of the two numbers there
    step_size: float = 0.7  # in units of the covariance of z

    @property
    def parameters(self) -> dict[str, Bounds | None]:
        return dict(zip(("first", "second"), self.bounds, strict=True))

    @property
    def transform(self) -> Transform:
        return Transform.of(Parameters.declare(self.parameters))

    def exact(self, needs: Capabilities) -> Potential:
        """Return U of z, from two plain functions as a user has them, unless more is needed."""
        density = self.density
        plain = sk.potential(
            density.value, density.gradient, parameters=self.parameters, batched=True
        )
        if needs <= plain.capabilities:
            return plain
        return with_bounds(density, Parameters.declare(self.parameters))

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        return self.transform.to_unbounded(self.density.sample(rng, n))

    def to_normals(self, positions: FloatArray) -> FloatArray:
        return self.density.to_normals(self.transform.to_bounded(positions))


def _rotated(angle: float, variances: tuple[float, float]) -> Gaussian:
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return Gaussian(mean=(0.0, 0.0), covariance=turn @ np.diag(variances) @ turn.T)


CASES = (
    Case(
        name="t, 3 degrees of freedom",
        attacks="heavy tails: far chains move slowly, and no surrogate is right out there",
        density=Student(degrees=3.0),
    ),
    Case(
        name="Neal's funnel",
        attacks="scales that differ by a factor of thousands from place to place",
        density=Funnel(),
        step_size=0.3,
    ),
    Case(
        name="banana",
        attacks="a thin curved ridge",
        density=Banana(sd=0.3),
        step_size=0.4,
    ),
    Case(
        name="two normals",
        attacks="a valley between modes, with an indefinite Hessian in it",
        density=Mixture(half_distance=2.0),
        step_size=0.6,
    ),
    Case(
        name="normals cut by bounds",
        attacks="the change of variables and its Jacobian, with one bound and with two",
        density=CutNormals(),
        bounds=((0.0, None), (0.0, 1.0)),
    ),
    Case(
        name="normal cut by inf",
        attacks="proposals that end where the density is zero, and paths that cross it",
        density=HalfPlane(),
    ),
    Case(
        name="Gamma(0.3)",
        attacks="an infinite density at a bound: in z a long exponential tail",
        density=Gammas(0.3),
        bounds=((0.0, None), (0.0, None)),
    ),
    Case(
        name="Beta(0.3, 5)",
        attacks="the same between two bounds",
        density=Betas(0.3, 5.0),
        bounds=((0.0, 1.0), (0.0, 1.0)),
    ),
    Case(
        name="Beta(1/2, 1/2)",
        attacks="infinite densities at both bounds, the upper one where floats are sparse",
        density=Betas(0.5, 0.5),
        bounds=((0.0, 1.0), (0.0, 1.0)),
    ),
    Case(
        name="a step in U",
        attacks="a discontinuity that no gradient shows",
        density=Step(),
    ),
    Case(
        name="a hole of NaN",
        attacks="a region that cannot be evaluated; the target is what lies around it",
        density=Hole(),
    ),
    Case(
        name="rotated normal",
        attacks="variances that differ by 10^6, along no axis",
        density=_rotated(0.6, (1.0, 1e-6)),
    ),
)
"""All of them."""
