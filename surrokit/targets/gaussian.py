"""Priors of positions: normal ones, those that stand beside parameters, and several together."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol

import attrs
import numpy as np
import numpy.typing as npt

from surrokit.arguments import numbers
from surrokit.capabilities import METRIC, METRIC_DERIVATIVE
from surrokit.coordinates.distributions import closed_form, log_mass
from surrokit.coordinates.parameters import Parameters
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.types import Capabilities, FloatArray, Pair

_FLAT = "a flat prior"  # which has no normalising constant


class Prior(Protocol):
    """A prior for :func:`forward_potential`: a potential with gradient.

    A prior may name ``metric`` in an attribute ``capabilities``, a frozenset. It then has a method
    ``metric(positions)`` that returns a curvature of -log prior without negative eigenvalues, shape
    (n, dim, dim). One that names ``metric-derivative`` as well has the same metric everywhere.
    """

    def value_and_gradient(self, positions: FloatArray) -> Pair:
        """Return -log prior, shape (n,), and its gradient, shape (n, dim)."""


class _ConstantMetric:
    """A prior whose metric is diagonal, and the same everywhere."""

    __slots__ = ()

    capabilities = frozenset({METRIC, METRIC_DERIVATIVE})

    @property
    def _precision(self) -> FloatArray:
        raise NotImplementedError

    def metric(self, positions: FloatArray) -> FloatArray:
        """Return the precision for every position, shape (n, dim, dim)."""
        n, dim = positions.shape
        return np.tile(np.diag(np.broadcast_to(self._precision, (dim,))), (n, 1, 1))


def gaussian_prior(mean: npt.ArrayLike = 0.0, sd: npt.ArrayLike = 1.0) -> GaussianPrior:
    """Return independent normal priors.

    Parameters
    ----------
    mean, sd : float or array_like of shape (dim,)
        Of each parameter, in the user's coordinates. An infinite standard deviation is a flat
        prior.

    Raises
    ------
    ConfigurationError
        If a standard deviation is not positive, or a mean not finite.
    ShapeError
        If ``mean`` or ``sd`` are not numbers.
    """
    return GaussianPrior(mean=mean, sd=sd)


def check_finite(name: str, array: FloatArray) -> None:
    """Raise ConfigurationError, with the first place, unless all numbers are finite."""
    if not np.isfinite(array).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        where = f" at {list(place)}" if place else ""
        raise ConfigurationError(
            f"{name} must be finite, got {array[place]}{where}; leave out unknown numbers"
        )


def frozen_numbers(name: str, value: npt.ArrayLike) -> FloatArray:
    """Return a copy of numbers that nobody can change; ShapeError if they are none."""
    array = numbers(name, value).copy()
    array.setflags(write=False)
    return array


def _mean(given: npt.ArrayLike) -> FloatArray:
    return frozen_numbers("mean of a prior", given)


def _sd(given: npt.ArrayLike) -> FloatArray:
    return frozen_numbers("sd of a prior", given)


@attrs.frozen(kw_only=True, eq=False)
class GaussianPrior(_ConstantMetric):
    """Independent normal priors; see :func:`gaussian_prior`."""

    mean: FloatArray = attrs.field(converter=_mean)
    sd: FloatArray = attrs.field(converter=_sd)

    def __attrs_post_init__(self) -> None:
        check_finite("mean of a prior", self.mean)
        if not (self.sd > 0).all():
            raise ConfigurationError(
                f"sd of a prior must be positive, or infinite for a flat one, got {self.sd}"
            )

    def value_and_gradient(self, positions: FloatArray) -> Pair:
        """Return -log prior, shape (n,), and its gradient, shape (n, dim); 1 where it is flat."""
        self._check(positions)
        scaled = (positions - self.mean) / self.sd
        value = 0.5 * np.square(scaled).sum(axis=1) + self.constant(positions.shape[1])
        return value, scaled / self.sd

    def constant(self, dim: int) -> float:
        """Return the sum of log(sd sqrt(2 pi)) over ``dim`` parameters, flat ones left out."""
        return self._constant if self.sd.ndim else dim * self._constant

    @property
    def unnormalized(self) -> tuple[str, ...]:
        """What has no density: a flat prior of some parameter."""
        return () if np.isfinite(self.sd).all() else (_FLAT,)

    def metric(self, positions: FloatArray) -> FloatArray:
        """Return the precision for every position, shape (n, dim, dim)."""
        self._check(positions)
        return super().metric(positions)

    @cached_property
    def _constant(self) -> float:
        known = self.sd[np.isfinite(self.sd)]
        return float((np.log(known) + 0.5 * math.log(2.0 * math.pi)).sum())

    @property
    def _precision(self) -> FloatArray:
        return 1.0 / np.square(self.sd)

    def _check(self, positions: FloatArray) -> None:
        for name, array in (("mean", self.mean), ("sd", self.sd)):
            if array.shape not in ((), positions.shape[1:]):
                raise ShapeError(
                    f"{name} of a prior must be one number or have shape {positions.shape[1:]}, "
                    f"got {array.shape}"
                )


@attrs.frozen(eq=False)
class Marginal(_ConstantMetric):
    """A ``distribution`` as the prior of each of some numbers.

    Slopes are central differences of log densities where they are not known. The metric is
    1 / variance, the curvature of a normal prior, and 0 where there is no variance: it is constant
    and not negative, as a curvature of log densities need not be. ``constant`` is added to U:
    bounds that cut off a part of a density leave that much of it.
    """

    distribution: Any
    constant: float = 0.0
    unnormalized: tuple[str, ...] = ()

    def value_and_gradient(self, positions: FloatArray) -> Pair:
        """Return both; slopes are one-sided where one side lies outside of the support."""
        if self._form is not None:
            found, slopes = self._form(positions)
            return self.constant - np.where(np.isnan(found), -np.inf, found).sum(axis=1), -slopes
        tiny = np.finfo(np.float64).eps ** (1.0 / 3.0)
        step = tiny * np.maximum(np.abs(positions), tiny)
        # what a distribution of SciPy takes is mostly for the call itself
        places = np.stack([positions, positions + step, positions - step])
        rows = places.reshape(-1, positions.shape[1])
        logs = np.asarray(self.distribution.logpdf(rows)).reshape(places.shape)
        inside = np.isfinite(logs)
        high, low = (np.where(inside[k], places[k], positions) for k in (1, 2))
        log_high, log_low = (np.where(inside[k], logs[k], logs[0]) for k in (1, 2))
        with np.errstate(divide="ignore", invalid="ignore"):
            slopes = (log_low - log_high) / (high - low)
        return self.constant - logs[0].sum(axis=1), slopes

    @cached_property
    def _form(self) -> Callable[[FloatArray], Pair] | None:
        return closed_form(self.distribution)

    @cached_property
    def _precision(self) -> FloatArray:
        of = self.distribution
        variance_of = getattr(of, "var", getattr(of, "variance", None))
        with np.errstate(all="ignore"):
            variance = np.asarray(variance_of() if callable(variance_of) else np.inf, np.float64)
            return np.where((variance > 0.0) & (variance < np.inf), 1.0 / variance, 0.0)


@attrs.frozen(eq=False)
class Priors:
    """Independent priors of parts of a position, by their places; flat elsewhere.

    ``lacking`` says in words what has no normalising constant besides.
    """

    parts: tuple[tuple[slice, Prior], ...] = ()
    lacking: tuple[str, ...] = (_FLAT,)

    @classmethod
    def of(cls, parameters: Parameters) -> Priors:
        """Return the priors that stand beside parameters."""
        parts: list[tuple[slice, Prior]] = []
        for name, where in parameters.slices().items():
            spec = parameters.specs[name]
            if spec.prior is None:
                continue
            mass = log_mass(spec.prior, *spec.bounds)
            lacking = (f"the prior of {name!r}",) if mass is None else ()
            constant = 0.0 if mass is None else np.broadcast_to(mass, (spec.size,)).sum()
            parts.append((where, Marginal(spec.prior, float(constant), lacking)))
        return cls(tuple(parts), () if len(parts) == len(parameters.specs) else (_FLAT,))

    @property
    def unnormalized(self) -> tuple[str, ...]:
        """What may lack its normalising constant, in words."""
        reported = (getattr(prior, "unnormalized", ("the prior",)) for _, prior in self.parts)
        return tuple(dict.fromkeys([*self.lacking, *(each for some in reported for each in some)]))

    @property
    def capabilities(self) -> Capabilities:
        """``metric`` and ``metric-derivative``, as far as all parts have them."""
        offered = frozenset({METRIC, METRIC_DERIVATIVE})
        for _, prior in self.parts:
            offered &= getattr(prior, "capabilities", frozenset())
        return offered if METRIC in offered else frozenset()

    def value_and_gradient(self, positions: FloatArray) -> Pair:
        """Return -log prior, shape (n,), and its gradient, shape (n, dim)."""
        value, gradient = np.zeros(len(positions)), np.zeros_like(positions)
        for where, prior in self.parts:
            more, slope = prior.value_and_gradient(positions[:, where])
            value, gradient[:, where] = value + more, slope
        return value, gradient

    def metric(self, positions: FloatArray) -> FloatArray:
        """Return the metrics of all parts, shape (n, dim, dim)."""
        found = np.zeros((*positions.shape, positions.shape[1]))
        for where, prior in self.parts:
            curved: Any = prior
            found[:, where, where] = curved.metric(positions[:, where])
        return found

    def moved(self, by: int) -> tuple[tuple[slice, Prior], ...]:
        """Return the parts where numbers stand before them."""
        return tuple((slice(w.start + by, w.stop + by), prior) for w, prior in self.parts)


def as_parts(prior: Prior | None) -> Priors:
    """Return a prior of all numbers as one of parts; None is flat."""
    if isinstance(prior, Priors):
        return prior
    return Priors() if prior is None else Priors(((slice(None), prior),), ())
