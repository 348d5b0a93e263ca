"""Priors and energies of data: what they offer, and the normal ones."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Protocol, cast

import attrs
import numpy as np
import numpy.typing as npt

from surrokit import capabilities as can
from surrokit.arguments import check_methods, numbers
from surrokit.coordinates.parameters import Parameters
from surrokit.coordinates.priors import ConstantMetric, Priors
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.model.source import Isolated
from surrokit.potentials import CURVATURE_DERIVATIVES, CURVATURES, Energy, MetricDerivativePotential
from surrokit.types import Capabilities, FloatArray, Pair

FLAT = ("a flat prior",)
"""What has no normalising constant."""

OF_METRICS = frozenset({can.METRIC, can.METRIC_DERIVATIVE})
"""What a flat prior offers."""


class Prior(Protocol):
    """A prior for :func:`forward_potential`: a potential with gradient.

    A prior that names ``metric`` in an attribute ``capabilities`` is a :class:`CurvedPrior`; one
    that names ``metric-derivative`` as well also has a method ``metric_trace_gradient``.
    """

    def value_and_gradient(self, positions: FloatArray) -> Pair:
        """Return -log prior, shape (n,), and its gradient, shape (n, dim)."""


class CurvedPrior(Prior, Protocol):
    """A prior with capability ``metric``."""

    @property
    def capabilities(self) -> Capabilities:
        """Names of what it can do beyond its gradient."""

    def metric(self, positions: FloatArray) -> FloatArray:
        """Return a curvature of -log prior without negative eigenvalues, shape (n, dim, dim)."""


def metrics_of(prior: Prior | None) -> Capabilities:
    """Return which of a metric and its derivative a prior offers; None is a flat one."""
    if prior is None:
        return OF_METRICS
    offered: Capabilities = getattr(prior, "capabilities", frozenset())
    return offered & OF_METRICS


def metric_of(prior: Prior | None, positions: FloatArray) -> FloatArray:
    """Return the metric of a prior, shape (n, dim, dim); zeros for a flat one."""
    if prior is None:
        return np.zeros((*positions.shape, positions.shape[1]))
    return cast(CurvedPrior, prior).metric(positions)


def metric_trace_of(prior: Prior | None, positions: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the gradient of tr(B R), shape (n, dim), with R the metric of a prior."""
    if prior is None:
        return np.zeros_like(positions)
    return cast(MetricDerivativePotential, prior).metric_trace_gradient(positions, weights)


def unnormalized_prior(prior: Prior | None) -> tuple[str, ...]:
    """Return what of a prior may lack its normalising constant, in words; nothing of one's own."""
    if prior is None:
        return FLAT
    found: tuple[str, ...] = getattr(prior, "unnormalized", ("the prior",))
    return found


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


def _array(name: str, value: npt.ArrayLike) -> FloatArray:
    array = numbers(name, value).copy()
    array.setflags(write=False)
    return array


def _mean(given: npt.ArrayLike) -> FloatArray:
    return _array("mean of a prior", given)


def _sd(given: npt.ArrayLike) -> FloatArray:
    return _array("sd of a prior", given)


def _data(given: npt.ArrayLike) -> FloatArray:
    return _array("data", given)


def _noise_sd(given: npt.ArrayLike) -> FloatArray:
    return _array("noise_sd", given)


@attrs.frozen(kw_only=True, eq=False)
class GaussianPrior(ConstantMetric):
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

    @cached_property
    def _constant(self) -> float:
        return float(np.where(np.isfinite(self.sd), _log_constants(self.sd), 0.0).sum())

    @property
    def unnormalized(self) -> tuple[str, ...]:
        """What has no density: a flat prior of some parameter."""
        return () if np.isfinite(self.sd).all() else FLAT

    def metric(self, positions: FloatArray) -> FloatArray:
        """Return the precision for every position, shape (n, dim, dim)."""
        self._check(positions)
        n, dim = positions.shape
        matrices = np.zeros((n, dim, dim))
        matrices[:, np.arange(dim), np.arange(dim)] = 1.0 / np.square(self.sd)
        return matrices

    def _check(self, positions: FloatArray) -> None:
        for name, array in (("mean", self.mean), ("sd", self.sd)):
            if array.shape not in ((), positions.shape[1:]):
                raise ShapeError(
                    f"{name} of a prior must be one number or have shape {positions.shape[1:]}, "
                    f"got {array.shape}"
                )


class DataEnergy(ABC):
    """Minus the log density of data about outputs, less the log prior.

    Subclasses have a field ``prior``, which is None for a flat one.
    """

    __slots__ = ()

    prior: Prior | None

    @property
    @abstractmethod
    def n_data(self) -> int:
        """Count of the data."""

    @property
    def unnormalized(self) -> tuple[str, ...]:
        """What of the prior may lack its constant."""
        return unnormalized_prior(self.prior)

    @property
    def capabilities(self) -> Capabilities:
        """``curvatures`` and ``curvature-derivatives``, as far as the prior's metric has them."""
        kinds = {can.METRIC: CURVATURES, can.METRIC_DERIVATIVE: CURVATURE_DERIVATIVES}
        offered = metrics_of(self.prior)
        return frozenset(kinds[name] for name in offered if can.METRIC in offered)

    def check(self, n_outputs: int) -> None:
        """Raise ShapeError unless there is one output for each datum."""
        if n_outputs != self.n_data:
            raise ShapeError(
                f"the forward map gives {n_outputs} outputs, but data holds {self.n_data}; they "
                "must correspond"
            )


@attrs.frozen(kw_only=True, eq=False)
class GaussianEnergy(DataEnergy):
    """Minus the log density of normal errors, less the log prior.

    ``data (m,)`` have errors of standard deviation ``noise_sd``, a number or (m,); ``prior`` is
    None for a flat one.
    """

    data: FloatArray = attrs.field(converter=_data)
    noise_sd: FloatArray = attrs.field(converter=_noise_sd)
    prior: Prior | None = None

    def __attrs_post_init__(self) -> None:
        if not (np.isfinite(self.noise_sd).all() and (self.noise_sd > 0).all()):
            raise ConfigurationError(f"noise_sd must be positive and finite, got {self.noise_sd}")
        check_finite("data", self.data)
        if self.data.ndim != 1:
            raise ShapeError(f"data must have shape (m,), got {self.data.shape}; flatten it")
        if self.noise_sd.shape not in ((), self.data.shape):
            raise ShapeError(
                f"noise_sd must be one number or have the shape of data, {self.data.shape}, "
                f"got {self.noise_sd.shape}"
            )

    @cached_property
    def _constant(self) -> float:
        return float(np.broadcast_to(_log_constants(self.noise_sd), self.data.shape).sum())

    @property
    def n_data(self) -> int:
        """Count of the data."""
        return len(self.data)

    @property
    def observed_data(self) -> dict[str, FloatArray]:
        """The data, beside the outputs."""
        return {"outputs": self.data}

    def draw_data(
        self, rng: np.random.Generator, outputs: FloatArray, positions: FloatArray
    ) -> FloatArray:
        """Return data with their errors, shape (n, m), for outputs of that shape."""
        del positions
        return np.asarray(rng.normal(outputs, self.noise_sd))

    def value(self, outputs: FloatArray, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,)."""
        return self.value_and_gradients(outputs, positions)[0]

    def value_and_gradients(
        self, outputs: FloatArray, positions: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return U (n,), its gradient in the outputs (n, m), and in the positions (n, dim)."""
        self.check(outputs.shape[1])
        scaled = (outputs - self.data) / self.noise_sd
        value = 0.5 * np.square(scaled).sum(axis=1) + self._constant
        by_positions = np.zeros_like(positions)
        if self.prior is not None:
            prior_value, by_positions = self.prior.value_and_gradient(positions)
            value = value + prior_value
        return value, scaled / self.noise_sd, by_positions

    def curvatures(self, outputs: FloatArray, positions: FloatArray) -> Pair:
        """Return the precision of the noise, (n, m), and the prior's metric, (n, dim, dim)."""
        self.check(outputs.shape[1])
        by_outputs = np.empty_like(outputs)
        by_outputs[:] = 1.0 / np.square(self.noise_sd)
        return by_outputs, metric_of(self.prior, positions)

    def curvature_gradients(
        self,
        outputs: FloatArray,
        positions: FloatArray,
        by_outputs_weights: FloatArray,
        by_positions_weights: FloatArray,
    ) -> Pair:
        """Return the gradients of sum(X * C) + tr(B R): the precision C does not change."""
        del by_outputs_weights
        self.check(outputs.shape[1])
        return np.zeros_like(outputs), metric_trace_of(self.prior, positions, by_positions_weights)


def _log_constants(sds: FloatArray) -> FloatArray:
    """Return log(sd sqrt(2 pi)): what normal densities have beside their exponents."""
    return np.asarray(np.log(sds) + 0.5 * math.log(2.0 * math.pi))


def read_prior(prior: Prior | None, energy: Energy | None, declared: Parameters) -> Prior | None:
    """Return the prior of a forward potential, which shares no array with the rest.

    It may stand beside the parameters. ConfigurationError is raised if it is given twice, or is
    none.
    """
    check_methods("prior", prior, ("value_and_gradient",), "surrokit.gaussian_prior(mean, sd)")
    beside = Priors.of(declared)
    if beside is None:
        is_own = prior is None or isinstance(prior, GaussianPrior)
        return prior if is_own else cast(Prior, Isolated(prior))
    if prior is not None or energy is not None:
        raise ConfigurationError(
            f"parameters have priors beside them, and {'prior' if energy is None else 'energy'} "
            "is given too; give priors once"
        )
    return beside


def read_energy(
    data: npt.ArrayLike | None,
    noise_sd: npt.ArrayLike | None,
    prior: Prior | None,
    energy: Energy | None,
) -> Energy:
    """Return the energy of a forward map's outputs, from what a user gave.

    ConfigurationError is raised if neither or both of ``energy`` and ``data`` with ``noise_sd`` are
    given, or something is not of its kind.
    """
    check_methods("energy", energy, ("value", "value_and_gradients"), "a surrokit.plugin.Energy")
    if energy is not None:
        if data is not None or noise_sd is not None or prior is not None:
            raise ConfigurationError(
                "energy is given together with data, noise_sd or prior; an energy holds all "
                "three, so leave them out"
            )
        return cast(Energy, Isolated(energy))
    if data is None or noise_sd is None:
        raise ConfigurationError(
            "a forward potential needs data and noise_sd, or an energy; "
            f"data is {'missing' if data is None else 'given'}, "
            f"noise_sd is {'missing' if noise_sd is None else 'given'}"
        )
    return GaussianEnergy(data=data, noise_sd=noise_sd, prior=prior)
