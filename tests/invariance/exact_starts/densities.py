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
    """Two numbers that know nothing of each other, by distributions as SciPy's are."""

    marginals: tuple[Marginal, Marginal]

    def from_normals(self, normals: FloatArray) -> FloatArray:
        pairs = zip(self.marginals, normals.T, strict=True)
        return np.column_stack([quantiles(*pair) for pair in pairs])

    def to_normals(self, positions: FloatArray) -> FloatArray:
        pairs = zip(self.marginals, positions.T, strict=True)
        return np.column_stack([scores(*pair) for pair in pairs])


@attrs.frozen
class Betas(Independent):
    """Beta(a, b) in each number, or for infinite b Gamma(a): for a < 1 without bound at zero."""

    a: float
    b: float = math.inf

    @property
    def marginals(self) -> tuple[Marginal, Marginal]:
        bounded = math.isfinite(self.b)
        return (stats.beta(self.a, self.b) if bounded else stats.gamma(self.a),) * 2

    def parts(self, order: int, q: FloatArray) -> FloatArray:
        a, b, rest = 1.0 - self.a, 1.0 - self.b, 1.0 - q
        first = (a * np.log(q), a / q, -a / q**2, 2.0 * a / q**3)[order]
        if not math.isfinite(b):
            return first + (q, 1.0, 0.0, 0.0)[order]
        return first + (b * np.log(rest), -b / rest, -b / rest**2, -2.0 * b / rest**3)[order]


@attrs.frozen
class CutNormals(Independent):
    """N(-1, 1) above 0, which is its tail, and N(0.7, 0.25) between 0 and 1."""

    @property
    def marginals(self) -> tuple[Marginal, Marginal]:
        tail = stats.truncnorm(1.0, np.inf, loc=-1.0)
        return tail, stats.truncnorm(-1.4, 0.6, loc=0.7, scale=0.5)

    def parts(self, order: int, q: FloatArray) -> FloatArray:
        precision, away = np.array([1.0, 4.0]), q - np.array([-1.0, 0.7])
        zero = np.zeros_like(q)
        return (0.5 * precision * away**2, precision * away, precision + zero, zero)[order]


@attrs.frozen
class Step(Independent):
    """A standard normal whose density drops to a part of it where the first number is larger."""

    edge: float = 0.3
    part: float = 0.2

    @property
    def marginals(self) -> tuple[Marginal, Marginal]:
        return SteppedNormal((self.edge,), (1.0, self.part)), stats.norm()

    def parts(self, order: int, q: FloatArray) -> FloatArray:
        drop = np.zeros_like(q)
        drop[q[:, 0] >= self.edge, 0] = -math.log(self.part)
        return (0.5 * q**2 + drop, q, np.ones_like(q), np.zeros_like(q))[order]


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

    def derivative(self, order: int, q: FloatArray) -> FloatArray:
        of = [0.5 * np.square(q).sum(axis=1), q, np.tile(np.eye(2), (len(q), 1, 1))]
        found = np.zeros((len(q), 2, 2, 2)) if order == 3 else of[order].copy()
        found[(q[:, 1] > 0) & (q[:, 0] > self.edges[0]) & (q[:, 0] < self.edges[1])] = np.nan
        return found


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

    def derivative(self, order: int, q: FloatArray) -> FloatArray:
        v, x = q.T
        precision = np.exp(-v)
        if order == 0:
            return 0.5 * (np.square(self.to_normals(q)).sum(axis=1) + v)
        if order == 1:
            return np.column_stack([v / self.sd**2 + 0.5 - 0.5 * precision * x**2, precision * x])
        found = np.zeros((len(q), *(2,) * order))
        if order == 2:
            found[:, 0, 0] = self.sd**-2 + 0.5 * precision * x**2
            found[:, 0, 1] = found[:, 1, 0] = -precision * x
            found[:, 1, 1] = precision
        else:
            found[:, 0, 0, 0] = -0.5 * precision * x**2
            found[:, 0, 0, 1] = found[:, 0, 1, 0] = found[:, 1, 0, 0] = precision * x
            found[:, 0, 1, 1] = found[:, 1, 0, 1] = found[:, 1, 1, 0] = -precision
        return found


@attrs.frozen(eq=False)
class Case:
    """A target with exact draws, in coordinates z in which it has no bounds."""

    name: str
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
    # heavy tails: far chains move slowly, and no surrogate is right out there
    Case("t, 3 degrees of freedom", Student(degrees=3.0)),
    # scales that differ by a factor of thousands from place to place
    Case("Neal's funnel", Funnel(), step_size=0.3),
    # a thin curved ridge
    Case("banana", Banana(sd=0.3), step_size=0.4),
    # a valley between modes, with an indefinite Hessian in it
    Case("two normals", Mixture(half_distance=2.0), step_size=0.6),
    # the change of variables and its Jacobian, with one bound and with two
    Case("normals cut by bounds", CutNormals(), ((0.0, None), (0.0, 1.0))),
    # proposals that end where the density is zero, and paths that cross it
    Case("normal cut by inf", HalfPlane()),
    # an infinite density at a bound: in z a long exponential tail; the same between two bounds
    Case("Gamma(0.3)", Betas(0.3), ((0.0, None), (0.0, None))),
    Case("Beta(0.3, 5)", Betas(0.3, 5.0), ((0.0, 1.0), (0.0, 1.0))),
    # infinite densities at both bounds, the upper one where floats are sparse
    Case("Beta(1/2, 1/2)", Betas(0.5, 0.5), ((0.0, 1.0), (0.0, 1.0))),
    # a discontinuity that no gradient shows
    Case("a step in U", Step()),
    # a region that cannot be evaluated; the target is what lies around it
    Case("a hole of NaN", Hole()),
    # variances that differ by 10^6, along no axis
    Case("rotated normal", _rotated(0.6, (1.0, 1e-6))),
)
"""Targets, each with what it is hard on."""
