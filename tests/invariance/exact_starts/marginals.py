"""Distributions of one number, exact in both tails, and the map from standard normals to them."""

from __future__ import annotations

from typing import Protocol

import attrs
import numpy as np
from scipy.special import ndtr, ndtri

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
