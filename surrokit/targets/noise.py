"""Data and their noise: energies, families of errors, and scales that are parameters."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar, cast

import attrs
import numpy as np
import numpy.typing as npt

from surrokit import capabilities as can
from surrokit.arguments import check_functions, check_methods, is_number, numbers, unmasked
from surrokit.coordinates.distributions import quantiles
from surrokit.coordinates.models import called
from surrokit.coordinates.parameters import Parameter, Parameters
from surrokit.coordinates.priors import Priors
from surrokit.coordinates.transforms import plus_diagonal
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.potentials import Energy, MetricDerivativePotential
from surrokit.predictive.names import read_name, suggest
from surrokit.targets.gaussian import (
    PRIOR_METHODS,
    CurvedPrior,
    DataEnergy,
    GaussianEnergy,
    Prior,
    isolated_prior,
    one_prior,
    read_energy,
    unnormalized_prior,
)
from surrokit.types import BoolArray, Capabilities, FloatArray, IntArray

_LOG_ROOT = 0.5 * math.log(2.0 * math.pi)

_Arrays = TypeVar("_Arrays", bound=tuple[FloatArray, ...])

Link: TypeAlias = Literal["identity", "log"]
"""Whether outputs are means, or logarithms of means."""


class ErrorFamily(ABC):
    """A family of errors.

    Outputs and scales have shape (n, m), data (m,); so have results (n, m). A family without a
    scale takes ones, and its derivatives in the scale are zero.
    """

    name: ClassVar[str]
    has_scale: ClassVar[bool] = True

    def check_data(self, data: FloatArray) -> None:
        """Raise ConfigurationError where data cannot be such; by default, let all numbers pass."""
        del data

    def spread(self, data: FloatArray) -> FloatArray:
        """Return data in the units of the scale: as they are, unless the family has others."""
        return data

    @abstractmethod
    def value(self, outputs: FloatArray, data: FloatArray, scale: FloatArray) -> FloatArray:
        """Return -log p; ``inf`` where that is no density, NaN where outputs are."""

    @abstractmethod
    def slopes(
        self, outputs: FloatArray, data: FloatArray, scale: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return its derivatives in outputs and scales."""

    @abstractmethod
    def information(self, outputs: FloatArray, scale: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the Fisher information of outputs and of scales."""

    @abstractmethod
    def information_slopes(
        self, outputs: FloatArray, scale: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return derivatives of the former in outputs and in scales, and of the latter in scales.

        The information of a scale does not change with the output.
        """

    @abstractmethod
    def draw(self, rng: np.random.Generator, outputs: FloatArray, scale: FloatArray) -> FloatArray:
        """Return data for these outputs."""


class _Errors(ErrorFamily):
    """Errors of a location and a scale: -log p = log s + g((f - y) / s)."""

    def value(self, outputs: FloatArray, data: FloatArray, scale: FloatArray) -> FloatArray:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            value = np.log(scale) + self._term((outputs - data) / scale)
        return np.where(_is_scale(scale), value, np.inf)

    def slopes(
        self, outputs: FloatArray, data: FloatArray, scale: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            scaled = (outputs - data) / scale
            slope = self._slope(scaled)
            found = slope / scale, (1.0 - scaled * slope) / scale
        return _unless(_is_scale(scale), found)

    def information(self, outputs: FloatArray, scale: FloatArray) -> tuple[FloatArray, FloatArray]:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            precision = np.broadcast_to(1.0 / np.square(scale), outputs.shape)
        of_location, of_scale = self._unit_information()
        return of_location * precision, of_scale * precision

    def information_slopes(
        self, outputs: FloatArray, scale: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            slope = np.broadcast_to(-2.0 / scale**3, outputs.shape)
        of_location, of_scale = self._unit_information()
        return np.zeros_like(outputs), of_location * slope, of_scale * slope

    @abstractmethod
    def _unit_information(self) -> tuple[float, float]:
        """Return the Fisher information of location and scale where the scale is 1."""

    @abstractmethod
    def _term(self, scaled: FloatArray) -> FloatArray:
        """Return g."""

    @abstractmethod
    def _slope(self, scaled: FloatArray) -> FloatArray:
        """Return g'."""


@attrs.frozen
class NormalErrors(_Errors):
    """Normal errors, whose standard deviation is the scale."""

    name: ClassVar[str] = "gaussian"

    def draw(self, rng: np.random.Generator, outputs: FloatArray, scale: FloatArray) -> FloatArray:
        """Return data about the outputs."""
        return np.asarray(rng.normal(outputs, scale))

    def _unit_information(self) -> tuple[float, float]:
        return 1.0, 2.0

    def _term(self, scaled: FloatArray) -> FloatArray:
        return np.asarray(0.5 * np.square(scaled) + _LOG_ROOT)

    def _slope(self, scaled: FloatArray) -> FloatArray:
        return scaled


@attrs.frozen
class StudentErrors(_Errors):
    """Errors with Student's t: (nu + 1) / 2 log(1 + r^2 / nu), and a constant of nu.

    Its Fisher information is that of Lange, Little and Taylor (1989), doi:10.2307/2290063.

    Parameters
    ----------
    degrees
        nu. The standard deviation is the scale times sqrt(nu / (nu - 2)), for nu above 2.
    """

    name: ClassVar[str] = "student"

    degrees: float

    def draw(self, rng: np.random.Generator, outputs: FloatArray, scale: FloatArray) -> FloatArray:
        """Return data about the outputs."""
        return np.asarray(outputs + scale * rng.standard_t(self.degrees, size=outputs.shape))

    def _unit_information(self) -> tuple[float, float]:
        more = self.degrees + 3.0
        return (self.degrees + 1.0) / more, 2.0 * self.degrees / more

    def _term(self, scaled: FloatArray) -> FloatArray:
        half = 0.5 * (self.degrees + 1.0)
        return np.asarray(half * np.log1p(np.square(scaled) / self.degrees) + self._constant)

    @property
    def _constant(self) -> float:
        beta = math.lgamma(0.5 * self.degrees) - math.lgamma(0.5 * (self.degrees + 1.0))
        return beta + 0.5 * math.log(math.pi * self.degrees)

    def _slope(self, scaled: FloatArray) -> FloatArray:
        return np.asarray((self.degrees + 1.0) * scaled / (self.degrees + np.square(scaled)))


@attrs.frozen
class LognormalErrors(ErrorFamily):
    """Positive data whose logarithms are normal about those of positive outputs.

    The scale is the standard deviation of the logarithms.
    """

    name: ClassVar[str] = "lognormal"

    def check_data(self, data: FloatArray) -> None:
        """Raise ConfigurationError unless all data are positive."""
        if not (data > 0.0).all():
            place = int(np.flatnonzero(~(data > 0.0))[0])
            raise ConfigurationError(
                f"data of the family 'lognormal' must be positive, got {data[place]:g} at "
                f"[{place}]; leave such data out, or take the family 'gaussian'"
            )

    def spread(self, data: FloatArray) -> FloatArray:
        """Return logarithms."""
        return np.log(data)

    def draw(self, rng: np.random.Generator, outputs: FloatArray, scale: FloatArray) -> FloatArray:
        """Return data whose logarithms are about those of the outputs."""
        return np.asarray(np.exp(rng.normal(_log(outputs), scale)))

    def value(self, outputs: FloatArray, data: FloatArray, scale: FloatArray) -> FloatArray:
        """Return log s + r^2 / 2 + log sqrt(2 pi) + log y with r = (log f - log y) / s."""
        value = NormalErrors().value(_log(outputs), np.log(data), scale) + np.log(data)
        return np.where(outputs <= 0.0, np.inf, value)

    def slopes(
        self, outputs: FloatArray, data: FloatArray, scale: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return derivatives in f and s."""
        by_logs, by_scale = NormalErrors().slopes(_log(outputs), np.log(data), scale)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return _unless(outputs > 0.0, (by_logs / outputs, by_scale))

    def information(self, outputs: FloatArray, scale: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return 1 / (s f)^2 and 2 / s^2."""
        of_logs, of_scale = NormalErrors().information(outputs, scale)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return _unless(outputs > 0.0, (of_logs / np.square(outputs), of_scale))

    def information_slopes(
        self, outputs: FloatArray, scale: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return -2 / (s^2 f^3), -2 / (s^3 f^2) and -4 / s^3."""
        of_logs, _ = NormalErrors().information(outputs, scale)
        _, by_scale, twice = NormalErrors().information_slopes(outputs, scale)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            found = -2.0 * of_logs / outputs**3, by_scale / np.square(outputs), twice
        return _unless(outputs > 0.0, found)


@attrs.frozen
class PoissonCounts(ErrorFamily):
    """Counts with a Poisson distribution.

    Parameters
    ----------
    link
        ``"identity"``: outputs are means; ``"log"``: outputs are logarithms of means.
    """

    name: ClassVar[str] = "poisson"
    has_scale: ClassVar[bool] = False

    link: Link = "identity"

    def check_data(self, data: FloatArray) -> None:
        """Raise ConfigurationError unless all data are counts."""
        wrong = (data < 0.0) | (data != np.round(data))
        if wrong.any():
            place = int(np.flatnonzero(wrong)[0])
            raise ConfigurationError(
                f"data of the family 'poisson' must be counts 0, 1, 2, ..., got {data[place]:g} at "
                f"[{place}]; give counts before any scaling, or take another family"
            )

    def draw(self, rng: np.random.Generator, outputs: FloatArray, scale: FloatArray) -> FloatArray:
        """Return counts."""
        del scale
        means = np.exp(outputs) if self.link == "log" else outputs
        return np.asarray(rng.poisson(means), dtype=np.float64)

    def value(self, outputs: FloatArray, data: FloatArray, scale: FloatArray) -> FloatArray:
        """Return m - y log m + log y!, with m the mean."""
        from scipy.special import gammaln  # late: importing stays fast

        del scale
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            means = np.exp(outputs) if self.link == "log" else outputs
            logs = outputs if self.link == "log" else np.log(outputs)
            value = means - np.where(data > 0.0, data * logs, 0.0) + gammaln(data + 1.0)
            # of an infinite mean, no difference is known
            return np.where((means < 0.0) | (means == np.inf), np.inf, value)

    def slopes(
        self, outputs: FloatArray, data: FloatArray, scale: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return 1 - y / m, or m - y for the logarithm."""
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            if self.link == "log":
                return np.exp(outputs) - data, np.zeros_like(outputs)
            slope = 1.0 - np.where(data > 0.0, data / outputs, 0.0)
        del scale
        return _unless(outputs >= 0.0, (slope, np.zeros_like(outputs)))

    def information(self, outputs: FloatArray, scale: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return 1 / m, or m for the logarithm."""
        del scale
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            if self.link == "log":
                return np.exp(outputs), np.zeros_like(outputs)
            return _unless(outputs > 0.0, (1.0 / outputs, np.zeros_like(outputs)))

    def information_slopes(
        self, outputs: FloatArray, scale: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return -1 / m^2, or m for the logarithm."""
        del scale
        nothing = np.zeros_like(outputs)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            if self.link == "log":
                return np.exp(outputs), nothing, nothing
            return _unless(outputs > 0.0, (-1.0 / np.square(outputs), nothing, nothing))


def _is_scale(scale: FloatArray) -> BoolArray:
    return np.asarray((scale > 0.0) & (scale < np.inf))


def _log(outputs: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(outputs))


def _unless(inside: BoolArray, arrays: _Arrays) -> _Arrays:
    """Return arrays with NaN outside a support."""
    return cast(_Arrays, tuple(np.where(inside, array, np.nan) for array in arrays))


_OF_METRICS = frozenset({can.METRIC, can.METRIC_DERIVATIVE})


@attrs.frozen(kw_only=True, eq=False)
class Block:
    """Data that follow one another in the outputs, with errors of one family.

    Parameters
    ----------
    data : ndarray of shape (m,)
        What was observed.
    family
        How it scatters.
    factors : ndarray of shape (m,)
        Known scales, or factors of those that are parameters.
    columns : ndarray of shape (m,), optional
        The place in a position of each datum's scale; None where scales are known.
    """

    data: FloatArray
    family: ErrorFamily
    factors: FloatArray
    columns: IntArray | None = None

    def scales(self, positions: FloatArray) -> FloatArray:
        """Return each datum's scale, shape (n, m)."""
        if self.columns is None:
            return np.broadcast_to(self.factors, (len(positions), len(self.factors)))
        return np.asarray(positions[:, self.columns] * self.factors)

    def gather(self, by_scale: FloatArray, found: FloatArray, power: int = 1) -> None:
        """Add what belongs to each scale, shape (n, m), to its place in ``found (n, dim)``."""
        if self.columns is None:
            return
        weighted = by_scale * self.factors**power
        for column in np.unique(self.columns):
            found[:, column] += weighted[:, self.columns == column].sum(axis=1)


@attrs.frozen(kw_only=True, eq=False)
class ObservedEnergy(DataEnergy):
    """Minus the log likelihood of blocks of data, in the order of outputs, less the log prior."""

    blocks: tuple[Block, ...]
    prior: Prior | None = None

    @property
    def n_data(self) -> int:
        """Count of the data."""
        return sum(len(block.data) for block in self.blocks)

    @property
    def observed_data(self) -> dict[str, FloatArray]:
        """The data of all blocks, beside the outputs."""
        return {"outputs": np.concatenate([block.data for block in self.blocks])}

    def draw_data(
        self, rng: np.random.Generator, outputs: FloatArray, positions: FloatArray
    ) -> FloatArray:
        """Return data with their errors, shape (n, m), for outputs of that shape."""
        found = np.empty_like(outputs)
        for block, where, own in self._each(outputs):
            found[:, where] = block.family.draw(rng, own, block.scales(positions))
        return found

    def value(self, outputs: FloatArray, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,); ``inf`` where an output or a scale is none of its family's."""
        total = np.zeros(len(positions)) if self.prior is None else _value(self.prior, positions)
        return self._add_misfit(total, outputs, positions)

    def _add_misfit(
        self, total: FloatArray, outputs: FloatArray, positions: FloatArray
    ) -> FloatArray:
        for block, _, own in self._each(outputs):
            terms = block.family.value(own, block.data, block.scales(positions))
            total = total + terms.sum(axis=1)
        return total

    def value_and_gradients(
        self, outputs: FloatArray, positions: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return U (n,), its gradient in the outputs (n, m), and in the positions (n, dim)."""
        value, by_outputs = np.zeros(len(positions)), np.empty_like(outputs)
        by_positions = np.zeros_like(positions)
        if self.prior is not None:
            value, slope = self.prior.value_and_gradient(positions)
            by_positions = by_positions + slope  # a prior may go on using its own
        for block, where, own in self._each(outputs):
            slopes = block.family.slopes(own, block.data, block.scales(positions))
            by_outputs[:, where] = slopes[0]
            block.gather(slopes[1], by_positions)
        return self._add_misfit(value, outputs, positions), by_outputs, by_positions

    def curvatures(
        self, outputs: FloatArray, positions: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the Fisher information of outputs, (n, m), and of scales with the prior's metric.

        The latter has shape (n, dim, dim).
        """
        by_outputs, of_scales = np.empty_like(outputs), np.zeros_like(positions)
        for block, where, own in self._each(outputs):
            found = block.family.information(own, block.scales(positions))
            by_outputs[:, where] = found[0]
            block.gather(found[1], of_scales, power=2)
        return by_outputs, plus_diagonal(self._metric(positions).copy(), of_scales)

    def curvature_gradients(
        self,
        outputs: FloatArray,
        positions: FloatArray,
        by_outputs_weights: FloatArray,
        by_positions_weights: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the gradients of sum(X * C) + tr(B R), shapes (n, m) and (n, dim).

        C and R are those of :meth:`curvatures`, X and B their weights, of the same shapes.
        """
        by_outputs, by_positions = np.empty_like(outputs), np.zeros_like(positions)
        own_weights = np.einsum("nii->ni", by_positions_weights)
        for block, where, own in self._each(outputs):
            found = block.family.information_slopes(own, block.scales(positions))
            weights = by_outputs_weights[:, where]
            by_outputs[:, where] = weights * found[0]
            block.gather(weights * found[1], by_positions)
            if block.columns is not None:
                block.gather(own_weights[:, block.columns] * found[2], by_positions, power=3)
        return by_outputs, by_positions + self._metric_trace(positions, by_positions_weights)

    def _each(self, outputs: FloatArray) -> Iterator[tuple[Block, slice, FloatArray]]:
        """Yield each block with the place of its outputs, and these."""
        self.check(outputs.shape[1])
        first = 0
        for block in self.blocks:
            where = slice(first, first + len(block.data))
            yield block, where, outputs[:, where]
            first = where.stop


@attrs.frozen(eq=False)
class WithScales:
    """A prior of the first ``count`` numbers of a position, and one of the scales after them.

    ``prior`` is None for a flat one. The Fisher information of scales is their metric, so their own
    prior has none.
    """

    prior: Prior | None
    count: int
    scales: Prior

    @property
    def unnormalized(self) -> tuple[str, ...]:
        """What of either prior may lack its constant."""
        return tuple(
            dict.fromkeys(unnormalized_prior(self.prior) + unnormalized_prior(self.scales))
        )

    @property
    def capabilities(self) -> Capabilities:
        """What the prior of the first ones offers."""
        offered: Capabilities = getattr(self.prior, "capabilities", frozenset())
        return _OF_METRICS if self.prior is None else offered & _OF_METRICS

    def value(self, positions: FloatArray) -> FloatArray:
        """Return -log prior, shape (n,)."""
        found = _value(self.scales, positions)
        return (
            found if self.prior is None else found + _value(self.prior, positions[:, : self.count])
        )

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return -log prior, shape (n,), and its gradient, shape (n, dim)."""
        value, gradient = self.scales.value_and_gradient(positions)
        if self.prior is None:
            return value, gradient
        first, slope = self.prior.value_and_gradient(positions[:, : self.count])
        gradient[:, : self.count] += slope
        return value + first, gradient

    def metric(self, positions: FloatArray) -> FloatArray:
        """Return the metric of the first ones, and zeros: shape (n, dim, dim)."""
        n, dim = positions.shape
        found = np.zeros((n, dim, dim))
        if self.prior is not None:
            own = cast(CurvedPrior, self.prior).metric(positions[:, : self.count])
            found[:, : self.count, : self.count] = own
        return found

    def metric_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G), shape (n, dim), for A in ``matrices (n, dim, dim)``."""
        found = np.zeros_like(positions)
        if self.prior is not None:
            curved, first = cast(MetricDerivativePotential, self.prior), slice(0, self.count)
            own = curved.metric_trace_gradient(positions[:, first], matrices[:, first, first])
            found[:, first] = own
        return found


def _value(prior: Prior, positions: FloatArray) -> FloatArray:
    """Return -log prior, shape (n,), without its gradient where that saves something."""
    if isinstance(prior, Priors | WithScales):
        return prior.value(positions)
    return prior.value_and_gradient(positions)[0]


_AXES = {"forward": 0, "jacobian": 1, "hessian": 2}
"""Axes of a map's result, or of its derivatives, after that of the outputs."""


def join_maps(
    what: str, given: Any, parameters: Parameters, sizes: Mapping[str, int] | None
) -> Any:
    """Return a map or its derivatives as one function, whether it is one or one for each data set.

    ``what`` is ``forward``, ``jacobian``, ``hessian`` or ``vjp``; ``given`` is a function, a
    dictionary of functions by data set, or None. ``sizes`` counts the data of each set, None where
    they have no names.

    Raises
    ------
    ConfigurationError
        If there is not one function for each data set, or something is no function.
    """
    if not isinstance(given, Mapping):
        return called(what, given, parameters) if what in ("forward", "jacobian") else given
    if sizes is None:
        raise ConfigurationError(
            f"{what} holds functions by name, but data has no names; give data={{name: "
            "surrokit.observed(...)} by the same names"
        )
    if set(given) != set(sizes):
        raise ConfigurationError(
            f"{what} must hold one function for each of the data {', '.join(sizes)}, got "
            f"{', '.join(map(str, given)) or 'none'}"
        )
    check_functions(**{f"{what} of {name!r}": function for name, function in given.items()})
    if any(function is None for function in given.values()):
        raise ConfigurationError(
            f"{what} must hold one function for each of the data {', '.join(sizes)}, got None; "
            f"leave {what} out unless all maps have it"
        )
    by_name = what in ("forward", "jacobian")
    functions = tuple(
        called(f"{what} of {name!r}", given[name], parameters) if by_name else given[name]
        for name in sizes
    )
    return JoinedMaps(what, tuple(sizes), functions, tuple(sizes.values()))


@attrs.frozen(eq=False)
class JoinedMaps:
    """Maps, or their derivatives of one order, or their adjoints, one after another.

    ``names`` and ``what`` are for messages; ``counts`` says how many outputs each map has.
    """

    what: str
    names: tuple[str, ...]
    functions: tuple[Callable[..., Any], ...]
    counts: tuple[int, ...]

    def __call__(self, q: FloatArray, *weights: FloatArray) -> Any:
        """Return all outputs or their derivatives, joined along the axis of the outputs.

        Of adjoints, return the gradients of the outputs' weighted sum, of the shape of ``q``.
        """
        if self.what == "vjp":
            parts = np.split(weights[0], np.cumsum(self.counts)[:-1], axis=-1)
            pairs = zip(self.functions, parts, strict=True)
            return sum(np.array(unmasked(each(q.copy(), part.copy()))) for each, part in pairs)
        rows = q.ndim - 1
        parts = []
        for name, function, count in zip(self.names, self.functions, self.counts, strict=True):
            part = np.array(unmasked(function(q.copy())))
            if part.ndim == rows + _AXES[self.what]:  # a map with one output may leave that axis
                part = np.expand_dims(part, rows)
            if part.ndim <= rows or part.shape[rows] != count:
                raise ShapeError(
                    f"{self.what} of {name!r} must give {count} outputs, one for each datum, got "
                    f"shape {part.shape} for positions of shape {q.shape}"
                )
            parts.append(part)
        return np.concatenate(parts, axis=rows)


_SPREADS = 2.5
_DEGREES = 3.0


def estimated(
    groups: npt.ArrayLike | None = None,
    *,
    prior: Any = None,
    times: npt.ArrayLike = 1.0,
    name: str | None = None,
) -> Estimated:
    """Declare scales of errors that are not known.

    They become positive parameters of the target, with draws like all others.

    Parameters
    ----------
    groups : array_like of shape (m,), optional
        The group of each datum, each group with a scale of its own: whole numbers from 0 on for one
        parameter that is a vector, or texts for a parameter each. One scale for all data unless
        given.
    prior
        A frozen univariate distribution of ``scipy.stats``, of each scale. By default half of
        Student's t with 3 degrees of freedom, whose scale is 2.5 standard deviations of the
        group's data.
    times : float or array_like of shape (m,)
        Factors by which each datum's scale differs from that of its group: for errors that are
        known up to a factor.
    name
        Of the parameter; with groups that are texts, what stands before each. A positive parameter
        of this name that is declared already serves, and its prior stands beside it.

    Raises
    ------
    ConfigurationError
        If groups are neither texts nor whole numbers from 0 on, factors are not positive, or
        the prior or the name is none.
    """
    if prior is not None:
        Parameter((), lower=0.0, prior=prior)  # refuses what is no distribution
    if name is not None and (not isinstance(name, str) or not name):
        raise ConfigurationError(f"the name of an estimated scale must be text, got {name!r}")
    of_data, labels = (None, None) if groups is None else _read_groups(groups)
    return Estimated(
        groups=of_data,
        labels=labels,
        prior=prior,
        times=_read_factors(times),
        name=name,
    )


def _read_groups(given: npt.ArrayLike) -> tuple[IntArray, tuple[str, ...] | None]:
    """Return the group of each datum, and names of the groups that a user gave as texts."""
    array = np.asarray(given)
    if array.ndim == 1 and array.size and all(isinstance(each, str) for each in array.tolist()):
        labels = tuple(dict.fromkeys(array.tolist()))
        return np.array([labels.index(each) for each in array.tolist()]), labels
    whole = array.dtype.kind in "iu" and array.ndim == 1 and array.size > 0
    if not whole or not np.array_equal(np.unique(array), np.arange(int(array.max()) + 1)):
        raise ConfigurationError(
            "groups must be one whole number for each datum, from 0 on and none left out, or a "
            f"text for each, got {given!r}"
        )
    return array.astype(np.int64), None


@attrs.frozen(kw_only=True, eq=False)
class Estimated:
    """Scales that are not known; see :func:`estimated`."""

    groups: IntArray | None = None
    """The group of each datum, shape (m,)."""
    labels: tuple[str, ...] | None = None
    """Names of the groups; None where they are numbers."""
    prior: Any = None
    times: FloatArray = attrs.field(factory=lambda: np.ones(()))
    name: str | None = None
    declared: bool = False
    """Whether the parameter must be declared already."""

    def check(self, n_data: int) -> None:
        """Raise ShapeError unless there are a group and a factor for each datum."""
        if self.groups is not None and len(self.groups) != n_data:
            raise ShapeError(
                f"groups must be given for each of the {n_data} data, got {len(self.groups)}"
            )
        if self.times.shape not in ((), (n_data,)):
            raise ShapeError(
                f"times of an estimated scale must be one number or have shape ({n_data},), one "
                f"for each datum, got {self.times.shape}"
            )

    def declare(self, name: str, spread: FloatArray) -> dict[str, Parameter]:
        """Return the parameters that it takes, by name, for data in the units of the scale (m,)."""
        called = self.name or name
        if self.groups is None:
            alone = np.zeros(len(spread), dtype=np.int64)
            return {called: self._one((), _typical(spread, alone, self.times))}
        typical = _typical(spread, self.groups, self.times)
        if self.labels is None:
            return {called: self._one((len(typical),), typical)}
        return {
            f"{called}_{label}": self._one((), typical[[i]]) for i, label in enumerate(self.labels)
        }

    def _one(self, shape: tuple[int, ...], typical: FloatArray) -> Parameter:
        prior = HalfStudent(_SPREADS * typical) if self.prior is None else self.prior
        return Parameter(shape, lower=0.0, prior=prior)


@attrs.frozen(eq=False)
class HalfStudent:
    """Half of Student's t distribution with 3 degrees of freedom and scales (k,), for scales."""

    scale: FloatArray

    def support(self) -> tuple[float, float]:
        """Return that scales are positive."""
        return 0.0, np.inf

    def logpdf(self, x: FloatArray) -> FloatArray:
        """Return log densities, of the shape of ``x (..., k)``."""
        constant = math.log(4.0 / (math.pi * math.sqrt(_DEGREES)))
        square = np.square(x / self.scale) / _DEGREES
        density = constant - np.log(self.scale) - 2.0 * np.log1p(square)
        return np.where(x < 0.0, -np.inf, density)

    def ppf(self, part: npt.ArrayLike) -> FloatArray:
        """Return the quantiles of a probability, shape (k,)."""
        from scipy.special import stdtrit  # late: importing the package stays fast

        return np.asarray(self.scale * stdtrit(_DEGREES, 0.5 + 0.5 * np.asarray(part)))


def _typical(spread: FloatArray, groups: IntArray, times: FloatArray) -> FloatArray:
    """Return the standard deviation of each group's data, or else their size, shape (k,)."""
    factors = np.broadcast_to(times, spread.shape)
    found = np.ones(int(groups.max()) + 1)
    for group in range(len(found)):
        data, own = spread[groups == group], factors[groups == group]
        size = next((s for s in (data.std(), np.sqrt(np.square(data).mean())) if s > 0.0), 1.0)
        found[group] = size / np.sqrt(np.square(own).mean())
    return found


def _read_factors(times: npt.ArrayLike) -> FloatArray:
    array = numbers("times of an estimated scale", times)
    if not (np.isfinite(array).all() and (array > 0.0).all()):
        raise ConfigurationError(
            f"times of an estimated scale must be positive and finite, got {array}"
        )
    return array


FamilyName: TypeAlias = Literal["gaussian", "normal", "student", "cauchy", "lognormal", "poisson"]
"""Names of families of errors."""

Scale: TypeAlias = npt.ArrayLike | str | Estimated
"""A known scale, ``"estimate"``, a parameter's name, or :func:`estimated`."""

ESTIMATE = "estimate"
"""In place of a scale: it is not known."""

_FAMILIES = ("gaussian", "student", "lognormal", "poisson")
_USUAL_DEGREES = 4.0


def observed(
    data: npt.ArrayLike,
    scale: Scale | None = None,
    *,
    family: FamilyName = "gaussian",
    degrees: float | None = None,
    link: Link | None = None,
) -> Observed:
    """Say what was observed of a forward map, and how it scatters about the outputs.

    Parameters
    ----------
    data : array_like of shape (m,)
        What was observed, one number for each output.
    scale : float or array_like of shape (m,), or str, or Estimated
        Of the errors. ``"estimate"`` makes it a parameter; another text is the name of a positive
        parameter that is declared; :func:`estimated` says more. None for families without a scale.
    family
        ``"gaussian"``: the scale is the standard deviation; ``"student"``: it is that of Student's
        t; ``"lognormal"``: data and outputs are positive, and it is the standard deviation of
        log data about log outputs; ``"poisson"``: data are counts. ``"normal"`` is the first one,
        and ``"cauchy"`` Student's t with one degree of freedom.
    degrees
        Degrees of freedom of ``"student"``; 4 unless given.
    link
        Of ``"poisson"``: ``"identity"`` (default) where outputs are means of counts, ``"log"``
        where they are logarithms of means.

    Returns
    -------
    Observed
        To be given as ``data`` of :func:`surrokit.forward_potential`.

    Raises
    ------
    ConfigurationError
        If the data are none of the family's, or a setting is missing or makes no sense.
    ShapeError
        If an array is none, or does not fit the data.
    """
    array = numbers("data", data).copy()
    if array.ndim != 1 or not array.size:
        raise ShapeError(f"data must have shape (m,), got {array.shape}; flatten it")
    if not np.isfinite(array).all():
        place = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ConfigurationError(
            f"data must be finite, got {array[place]} at [{place}]; leave out unknown numbers"
        )
    kind = read_family(family, degrees, link)
    kind.check_data(array)
    array.setflags(write=False)
    return Observed(data=array, family=kind, scale=_read_scale(scale, kind, len(array)))


@attrs.frozen(kw_only=True, eq=False)
class Observed:
    """Data and their errors; see :func:`observed`. Scales are ones for a family without."""

    data: FloatArray
    family: ErrorFamily
    scale: FloatArray | Estimated


def read_family(given: object, degrees: Any = None, link: Any = None) -> ErrorFamily:
    """Return a family of errors by its name, with the settings that :func:`observed` takes."""
    family, settings = read_name(given, {} if degrees is None else {"degrees": degrees})
    degrees = settings.get("degrees")
    if family not in _FAMILIES:
        near = suggest(given, _FAMILIES) or "; for another, write an energy"
        raise ConfigurationError(
            f"family of errors must be one of {', '.join(_FAMILIES)}, got {given!r}{near}"
        )
    if degrees is not None and family != "student":
        raise ConfigurationError(f"degrees are of the family 'student', not of {family!r}")
    if link is not None and family != "poisson":
        raise ConfigurationError(f"link is of the family 'poisson', not of {family!r}")
    if family == "student":
        nu = _USUAL_DEGREES if degrees is None else degrees
        if not is_number(nu) or not 0.0 < nu < np.inf:
            raise ConfigurationError(f"degrees must be a positive, finite number, got {degrees!r}")
        return StudentErrors(float(nu))
    if family == "poisson":
        if link not in (None, "identity", "log"):
            raise ConfigurationError(f"link must be 'identity' or 'log', got {link!r}")
        return PoissonCounts(link or "identity")
    return NormalErrors() if family == "gaussian" else LognormalErrors()


def _read_scale(scale: Any, family: ErrorFamily, n_data: int) -> FloatArray | Estimated:
    if not family.has_scale:
        if scale is not None:
            raise ConfigurationError(
                f"scale is given, but the family {family.name!r} has none; leave it out"
            )
        return np.ones(n_data)
    if scale is None:
        raise ConfigurationError(
            f"the family {family.name!r} needs scale, that of the errors; give scale='estimate' if "
            "it is not known"
        )
    if isinstance(scale, str):
        scale = estimated() if scale == ESTIMATE else Estimated(name=scale, declared=True)
    if isinstance(scale, Estimated):
        scale.check(n_data)
        return scale
    array = numbers("scale", scale)
    if not (np.isfinite(array).all() and (array > 0.0).all()):
        raise ConfigurationError(f"scale must be positive and finite, got {array}")
    if array.shape not in ((), (n_data,)):
        raise ShapeError(
            f"scale must be one number or have the shape of data, ({n_data},), got {array.shape}"
        )
    return np.broadcast_to(array, (n_data,)).copy()


Data: TypeAlias = npt.ArrayLike | Observed | Mapping[str, Observed]
"""What was observed: numbers, with their errors, or several such by name."""

_USUAL_NAME = "scale"
_NAME_OF_NOISE = "noise_sd"


@attrs.frozen(kw_only=True, eq=False)
class ForwardModel:
    """Parameters and energy of a forward target.

    Parameters
    ----------
    parameters
        All, those of the errors included.
    of_map
        Those that the map takes.
    columns : ndarray of shape (of_map.dim,), optional
        Their places in a position; None where the map takes all.
    energy
        Of outputs and positions.
    sizes
        Count of the data of each set, by name; None where they have no names.
    """

    parameters: Parameters
    of_map: Parameters
    columns: IntArray | None
    energy: Energy
    sizes: Mapping[str, int] | None = None

    @classmethod
    def read(
        cls,
        data: Data | None,
        noise_sd: Scale | None,
        prior: Prior | None,
        energy: Energy | None,
        declared: Parameters,
    ) -> ForwardModel:
        """Return what a user gave :func:`surrokit.forward_potential`, of declared parameters."""
        beside = one_prior(prior, energy, declared)
        named = _read_sets(data, noise_sd)
        if named is None or energy is not None:
            numbers, sd = cast("npt.ArrayLike", data), cast("npt.ArrayLike", noise_sd)
            own = read_energy(numbers, sd, beside, energy)
            return cls(parameters=declared, of_map=declared, columns=None, energy=own)
        check_methods("prior", prior, *PRIOR_METHODS)
        scales = _Scales(declared)
        for name, each in named.items():
            scales.add(name, each)
        blocks = tuple(scales.block(each) for each in named.values())
        sizes = {name: len(each.data) for name, each in named.items()}
        return cls(
            parameters=scales.parameters,
            of_map=scales.of_map,
            columns=scales.columns,
            energy=ObservedEnergy(blocks=blocks, prior=scales.join(isolated_prior(beside))),
            sizes=sizes if isinstance(data, Mapping) else None,
        )

    def fill_plausible(self, ranges: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Return a user's plausible ranges, with those of scales that are added where missing."""
        if ranges is None or not isinstance(ranges, Mapping):
            return ranges
        added = {
            name: _plausible(spec)
            for name, spec in self.parameters.specs.items()
            if name not in self.of_map.specs and spec.prior is not None
        }
        return {**{name: each for name, each in added.items() if each is not None}, **ranges}


def names_of_scales(data: Data | None, noise_sd: Scale | None) -> frozenset[str]:
    """Return the names that a user gives scales of errors, which may be declared parameters."""
    sets = _read_sets(data, noise_sd) or {}
    given = (each.scale for each in sets.values())
    return frozenset(
        scale.name for scale in given if isinstance(scale, Estimated) and scale.name is not None
    )


def _read_sets(data: Data | None, noise_sd: Scale | None) -> Mapping[str, Observed] | None:
    """Return sets of data by name, or None where plain numbers have known normal errors."""
    if isinstance(data, Observed | Mapping) and noise_sd is not None:
        raise ConfigurationError(
            "noise_sd is given beside surrokit.observed, which holds the errors of its data; leave "
            "it out, and give scale there"
        )
    if isinstance(data, Observed):
        return {"": data}
    if not isinstance(data, Mapping):
        if data is None or not isinstance(noise_sd, str | Estimated):
            return None
        return {_NAME_OF_NOISE: observed(data, noise_sd)}
    if not data:
        raise ConfigurationError("data by name must hold at least one set, got none")
    for name, each in data.items():
        if not isinstance(name, str) or not isinstance(each, Observed):
            raise ConfigurationError(
                "data by name must be a dictionary of names and surrokit.observed(...), got "
                f"{name!r}: {each!r}"
            )
    return data


class _Scales:
    """Parameters of a target, as scales of errors join them."""

    def __init__(self, declared: Parameters) -> None:
        self._declared = declared
        self._added: dict[str, Parameter] = {}
        self._places: dict[int, list[tuple[str, int]]] = {}
        self._used: list[str] = []

    def add(self, set_name: str, each: Observed) -> None:
        """Declare the scales of a set of data, or find them among the parameters."""
        scale = each.scale
        if not isinstance(scale, Estimated):
            return
        if scale.declared or scale.name in self._declared.specs:
            self._places[id(each)] = self._find(str(scale.name), scale, len(each.data))
            return
        usual = _NAME_OF_NOISE if set_name == _NAME_OF_NOISE else _USUAL_NAME
        if set_name not in ("", _NAME_OF_NOISE):
            usual = f"{usual}_{set_name}"
        found = scale.declare(usual, each.family.spread(each.data))
        for name in found:
            self._refuse_twice(name)
        self._added |= found
        self._places[id(each)] = _places(found, scale, len(each.data))

    @property
    def parameters(self) -> Parameters:
        """All parameters."""
        return Parameters.declare({**self._declared.specs, **self._added})

    @property
    def of_map(self) -> Parameters:
        """Those that are no scales, of which there must be one."""
        kept = {k: v for k, v in self._declared.specs.items() if k not in self._used}
        if not kept:
            raise ConfigurationError(
                f"the parameters {', '.join(self._declared.specs)} are all scales of errors, so "
                "that none is left for the forward map; declare its parameters too"
            )
        return Parameters(kept)

    @property
    def columns(self) -> IntArray | None:
        """Their places in a position; None where there are no scales."""
        if not self._used and not self._added:
            return None
        slices = self.parameters.slices()
        return np.concatenate(
            [np.arange(slices[name].start, slices[name].stop) for name in self.of_map.specs]
        )

    def block(self, each: Observed) -> Block:
        """Return a set of data, with the places of its scales."""
        if not isinstance(each.scale, Estimated):
            return Block(data=each.data, family=each.family, factors=each.scale)
        slices = self.parameters.slices()
        columns = [slices[name].start + i for name, i in self._places[id(each)]]
        factors = np.broadcast_to(each.scale.times, each.data.shape)
        return Block(data=each.data, family=each.family, factors=factors, columns=np.array(columns))

    def join(self, prior: Prior | None) -> Prior | None:
        """Return a prior of all parameters, from that of the declared ones."""
        if not self._added:
            return prior
        n = self._declared.dim
        own = Priors.of(Parameters(self._added))
        assert own is not None
        moved = tuple((slice(w.start + n, w.stop + n), each) for w, each in own.by_slice)
        return WithScales(prior, n, attrs.evolve(own, by_slice=moved))

    def _find(self, name: str, scale: Estimated, n_data: int) -> list[tuple[str, int]]:
        spec = self._declared.specs.get(name)
        if spec is None:
            raise ConfigurationError(
                f"{name!r} is given for the scale of errors, but the parameters are "
                f"{', '.join(self._declared.specs)}; declare it, or say 'estimate'"
            )
        if spec.constraint is not None or not spec.bounds[0] >= 0.0:
            raise ConfigurationError(
                f"{name!r} is given for the scale of errors, but it may be negative, or its numbers"
                f" are tied together; declare it by {name!r}: surrokit.positive(...)"
            )
        if scale.prior is not None:
            raise ConfigurationError(
                f"the scale {name!r} is a declared parameter, and a prior is given for it by "
                "surrokit.estimated too; give that beside the parameter"
            )
        groups = scale.groups
        needed = n_data if groups is None else int(groups.max()) + 1
        alone = spec.shape == () and groups is None
        if not alone and spec.shape != (needed,):
            whose = "data" if groups is None else "groups"
            raise ShapeError(
                f"the scale {name!r} must have shape ({needed},), one number for each of the "
                f"{whose}{', or be one number' if groups is None else ''}, got {spec.shape}"
            )
        self._used.append(name)
        order = np.arange(n_data) if groups is None else groups
        return [(name, 0 if alone else int(i)) for i in order]

    def _refuse_twice(self, name: str) -> None:
        if name in self._declared.specs or name in self._added:
            raise ConfigurationError(
                f"the scale of errors would be the parameter {name!r}, which is declared already; "
                f"say {name!r} in place of 'estimate' to use it, or give another name by "
                "surrokit.estimated(name=...)"
            )


def _places(found: Mapping[str, Parameter], scale: Estimated, n_data: int) -> list[tuple[str, int]]:
    """Return parameter and index of each datum's scale."""
    names = list(found)
    if scale.groups is None:
        return [(names[0], 0)] * n_data
    if scale.labels is None:
        return [(names[0], int(i)) for i in scale.groups]
    return [(names[i], 0) for i in scale.groups]


def _plausible(spec: Parameter) -> tuple[FloatArray, FloatArray] | None:
    """Return the range of a scale to begin in: the middle half of its prior, or of its size.

    None where the prior has no quantiles.
    """
    if isinstance(spec.prior, HalfStudent):
        low, high = 0.1 * spec.prior.scale, 0.4 * spec.prior.scale
        return (low, high) if spec.shape else (low[0], high[0])
    found = quantiles(spec.prior, (0.25, 0.75), spec.bounds, spec.size)
    if found is None:
        return None
    return found[0].reshape(spec.shape), found[1].reshape(spec.shape)


KIND = "errors"
"""Says in a file that predictions are outputs with errors."""


def write_errors(energy: Any) -> dict[str, Any] | None:
    """Return data and their errors as plain data, without prior; None for an energy of a user's."""
    blocks: tuple[Block, ...]
    if isinstance(energy, GaussianEnergy):
        factors = np.broadcast_to(energy.noise_sd, energy.data.shape)
        blocks = (Block(data=energy.data, family=NormalErrors(), factors=factors),)
    elif isinstance(energy, ObservedEnergy):
        blocks = energy.blocks
    else:
        return None
    return {"kind": KIND, "blocks": [_to_plain(block) for block in blocks]}


def read_errors(plain: Mapping[str, Any], dim: int) -> ObservedEnergy:
    """Return data and their errors, without a prior, as :func:`write_errors` returned them.

    ``dim`` counts the numbers of a position.

    Raises
    ------
    KeyError, TypeError, ValueError, ConfigurationError, ShapeError
        If it is damaged.
    """
    return ObservedEnergy(blocks=tuple(_from_plain(each, dim) for each in plain["blocks"]))


def _to_plain(block: Block) -> dict[str, Any]:
    return {
        "family": block.family.name,
        "degrees": getattr(block.family, "degrees", None),
        "link": getattr(block.family, "link", None),
        "data": block.data.tolist(),
        "factors": block.factors.tolist(),
        "columns": None if block.columns is None else block.columns.tolist(),
    }


def _from_plain(plain: Mapping[str, Any], dim: int) -> Block:
    data, factors = (np.array(plain[name], dtype=np.float64) for name in ("data", "factors"))
    columns = None if plain["columns"] is None else np.array(plain["columns"], dtype=np.int64)
    if data.ndim != 1 or factors.shape != data.shape:
        raise ValueError("data and their errors do not fit one another")
    if columns is not None and (
        columns.shape != data.shape or (columns < 0).any() or (columns >= dim).any()
    ):
        raise ValueError("errors are of parameters that there are not")
    family = read_family(plain["family"], plain["degrees"], plain["link"])
    return Block(data=data, family=family, factors=factors, columns=columns)
