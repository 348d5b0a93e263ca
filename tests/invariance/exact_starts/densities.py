"""Targets in two dimensions that break samplers which cut corners, in the user's coordinates."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Protocol

import attrs
import numpy as np
from scipy import stats
from scipy.special import ndtr, ndtri

from surrokit.testing.targets import Separable, Target
from surrokit.types import FloatArray


class Marginal(Protocol):
    """Distribution function and quantiles from either end; frozen ones of SciPy have them."""

    def cdf(self, x: FloatArray) -> FloatArray: ...

    def sf(self, x: FloatArray) -> FloatArray: ...

    def ppf(self, p: FloatArray) -> FloatArray: ...

    def isf(self, p: FloatArray) -> FloatArray: ...


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
    """Density proportional to a standard normal's times a constant on each of some intervals.

    Parameters
    ----------
    edges
        Where the constant changes, in order.
    weights
        The constants, one more than edges; 0 leaves an interval out.
    """

    edges: tuple[float, ...]
    weights: tuple[float, ...]

    @property
    def reflected(self) -> SteppedNormal:
        """The distribution of -x."""
        return SteppedNormal(tuple(-edge for edge in self.edges[::-1]), self.weights[::-1])

    @property
    def total(self) -> float:
        """The integral of normal density times constant."""
        return float(self._masses().sum())

    def _masses(self) -> FloatArray:
        bounds = np.array([-np.inf, *self.edges, np.inf])
        return np.asarray(self.weights) * np.diff(ndtr(bounds))

    def cdf(self, x: FloatArray) -> FloatArray:
        """Return the probability below."""
        ends = np.clip(x[..., None], [-np.inf, *self.edges], [*self.edges, np.inf])
        parts = np.asarray(self.weights) * (ndtr(ends) - ndtr([-np.inf, *self.edges]))
        return parts.sum(axis=-1) / self.total

    def sf(self, x: FloatArray) -> FloatArray:
        """Return the probability above."""
        return self.reflected.cdf(-x)

    def ppf(self, p: FloatArray) -> FloatArray:
        """Return the quantile from below."""
        ends = np.cumsum(self._masses())
        mass = p * self.total
        here = np.minimum(np.searchsorted(ends, mass, side="right"), len(ends) - 1)
        begin = np.concatenate([[0.0], ends])[here]
        lower = ndtr([-np.inf, *self.edges])[here]
        return ndtri(lower + (mass - begin) / np.asarray(self.weights)[here])

    def isf(self, p: FloatArray) -> FloatArray:
        """Return the quantile from above."""
        return -self.reflected.ppf(p)


class Independent(Separable):
    """Two numbers that know nothing of each other."""

    @property
    @abstractmethod
    def marginals(self) -> tuple[Marginal, Marginal]:
        """Their distributions."""

    @abstractmethod
    def _derivatives(self, q: FloatArray) -> tuple[FloatArray, ...]:
        """Return U of each number and its first three derivatives, all of shape (n, 2)."""

    def _derivative(self, order: int, q: FloatArray) -> FloatArray:
        return self._derivatives(q)[order]

    def from_normals(self, normals: FloatArray) -> FloatArray:
        return self._each(quantiles, normals)

    def to_normals(self, positions: FloatArray) -> FloatArray:
        return self._each(scores, positions)

    def _each(
        self, function: Callable[[Marginal, FloatArray], FloatArray], rows: FloatArray
    ) -> FloatArray:
        pairs = zip(self.marginals, rows.T, strict=True)
        return np.column_stack([function(marginal, column) for marginal, column in pairs])


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
    """A standard normal that cannot be evaluated in half a strip: everything is NaN there.

    The first number is between two edges there, and the second one positive.
    """

    edges: tuple[float, float] = (0.2, 1.2)

    @property
    def beside(self) -> SteppedNormal:
        """The first number where the second one is positive."""
        return SteppedNormal(self.edges, (1.0, 0.0, 1.0))

    @property
    def second(self) -> SteppedNormal:
        """The second number."""
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
