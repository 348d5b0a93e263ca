"""Priors that stand beside the parameters."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import attrs
import numpy as np

from surrokit.capabilities import METRIC, METRIC_DERIVATIVE
from surrokit.coordinates.distributions import log_mass
from surrokit.coordinates.parameters import Parameters
from surrokit.types import Capabilities, FloatArray, Pair

_STEP = np.finfo(np.float64).eps ** (1.0 / 3.0)


class ConstantMetric:
    """A prior whose metric is the same everywhere; its derivatives are 0."""

    __slots__ = ()

    @property
    def capabilities(self) -> Capabilities:
        """``metric``, and ``metric-derivative``, which is zero."""
        return frozenset({METRIC, METRIC_DERIVATIVE})

    def metric_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G), G the metric, for A in ``matrices (n, dim, dim)``: zeros."""
        del matrices
        return np.zeros_like(positions)


@attrs.frozen(eq=False)
class Priors(ConstantMetric):
    """Independent priors of single numbers, by their places in a position.

    Their slopes are central differences of log densities, which cost no exact call. Their metric is
    1 / variance, the curvature of a normal prior, and 0 where there is no variance: it is constant
    and not negative, as a curvature of log densities need not be. ``constant`` is the log of the
    probability that they give to where the parameters lie: bounds that cut off a part of a density
    leave that much of it. ``unnormalized`` says in words what lacks its constant.
    """

    by_slice: tuple[tuple[slice, Any], ...]
    constant: float = 0.0
    unnormalized: tuple[str, ...] = ()

    @classmethod
    def of(cls, parameters: Parameters) -> Priors | None:
        """Return the priors of parameters; None where there are none."""
        pairs = []
        constant, lacking = 0.0, list[str]()
        for name, where in parameters.slices().items():
            spec = parameters.specs[name]
            if spec.prior is None:
                lacking.append("a flat prior")
                continue
            pairs.append((where, spec.prior))
            ends = spec.bounds if spec.constraint is None else spec.constraint.ends
            mass = None if ends is None else log_mass(spec.prior, *ends)
            if mass is None:
                lacking.append(f"the prior of {name!r}")
            else:
                constant += float(np.broadcast_to(mass, (spec.size,)).sum())
        return cls(tuple(pairs), constant, tuple(dict.fromkeys(lacking))) if pairs else None

    def value(self, positions: FloatArray) -> FloatArray:
        """Return minus the sum of log densities, shape (n,), at ``positions (n, dim)``."""
        total = np.full(len(positions), self.constant)
        for where, prior in self.by_slice:
            total -= np.asarray(prior.logpdf(positions[:, where].copy())).sum(axis=1)
        return total

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return its gradient, shape (n, dim)."""
        return self.value_and_gradient(positions)[1]

    def value_and_gradient(self, positions: FloatArray) -> Pair:
        """Return both; slopes are one-sided where one side lies outside of the support."""
        n = len(positions)
        total, found = np.full(n, self.constant), np.zeros_like(positions)
        for where, prior in self.by_slice:
            at = positions[:, where]
            step = _STEP * np.maximum(np.abs(at), _STEP)
            # what a distribution of SciPy takes is mostly for the call itself
            places = np.stack([at, at + step, at - step])
            logs = np.asarray(prior.logpdf(places.reshape(3 * n, -1).copy())).reshape(places.shape)
            total -= logs[0].sum(axis=1)
            inside = np.isfinite(logs)
            high, low = (np.where(inside[k], places[k], places[0]) for k in (1, 2))
            log_high, log_low = (np.where(inside[k], logs[k], logs[0]) for k in (1, 2))
            with np.errstate(divide="ignore", invalid="ignore"):
                found[:, where] = -((log_high - log_low) / (high - low))
        return total, found

    def metric(self, positions: FloatArray) -> FloatArray:
        """Return 1 / variance on the diagonals, shape (n, dim, dim)."""
        n, dim = positions.shape
        diagonal = np.zeros(dim)
        for where, precision in self._precisions:
            diagonal[where] = precision
        return np.tile(np.diag(diagonal), (n, 1, 1))

    @cached_property
    def _precisions(self) -> tuple[tuple[slice, FloatArray], ...]:
        return tuple((where, _precision(prior)) for where, prior in self.by_slice)


def _precision(prior: Any) -> FloatArray:
    """Return 1 / variance, shape () or (size,); 0 where a distribution has none."""
    variance_of = getattr(prior, "var", getattr(prior, "variance", None))
    with np.errstate(all="ignore"):
        variance = np.asarray(variance_of() if callable(variance_of) else np.inf, dtype=np.float64)
        known = (variance > 0.0) & (variance < np.inf)
        return np.where(known, 1.0 / variance, 0.0)
