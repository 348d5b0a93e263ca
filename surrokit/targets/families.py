"""Families of errors: how data scatter about the outputs of a forward map."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal, TypeAlias

import attrs
import numpy as np

from surrokit.arguments import is_number
from surrokit.errors import ConfigurationError
from surrokit.predictive.families import read_name, suggest
from surrokit.types import BoolArray, FloatArray, Pair

FamilyName: TypeAlias = Literal["gaussian", "normal", "student", "cauchy", "lognormal", "poisson"]
"""Names of families of errors."""

Link: TypeAlias = Literal["identity", "log"]
"""Whether outputs are means, or logarithms of means."""

Three: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]


class ErrorFamily(ABC):
    """A family of errors.

    Outputs and scales have shape (n, m), data (m,); so have results (n, m), which are NaN outside
    of the support. Pairs are what belongs to outputs, and what belongs to scales. A family without
    a scale takes ones, and its derivatives in the scale are zero. Callers ignore overflows, and
    divisions by zero.
    """

    name: ClassVar[str]
    has_scale: ClassVar[bool] = True
    degrees: float | None = None
    link: Link | None = None

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
    def slopes(self, outputs: FloatArray, data: FloatArray, scale: FloatArray) -> Pair:
        """Return its derivatives."""

    @abstractmethod
    def information(self, outputs: FloatArray, scale: FloatArray) -> Pair:
        """Return the Fisher information."""

    @abstractmethod
    def information_slopes(self, outputs: FloatArray, scale: FloatArray) -> Three:
        """Return derivatives of the former in outputs and in scales, and of the latter in scales.

        The information of a scale does not change with the output.
        """

    @abstractmethod
    def draw(self, rng: np.random.Generator, outputs: FloatArray, scale: FloatArray) -> FloatArray:
        """Return data for these outputs."""


def _only(inside: BoolArray, array: FloatArray) -> FloatArray:
    return np.where(inside, array, np.nan)


class _Errors(ErrorFamily):
    """Errors of a location and a scale: -log p = log s + g((f - y) / s)."""

    information_of_unit: tuple[float, float]
    """The Fisher information of location and scale where the scale is 1."""

    @abstractmethod
    def _term(self, scaled: FloatArray) -> FloatArray:
        """Return g."""

    @abstractmethod
    def _slope(self, scaled: FloatArray) -> FloatArray:
        """Return g'."""

    def value(self, outputs: FloatArray, data: FloatArray, scale: FloatArray) -> FloatArray:
        value = np.log(scale) + self._term((outputs - data) / scale)
        return np.where((scale > 0.0) & (scale < np.inf), value, np.inf)

    def slopes(self, outputs: FloatArray, data: FloatArray, scale: FloatArray) -> Pair:
        scaled = (outputs - data) / scale
        slope = self._slope(scaled)
        inside = (scale > 0.0) & (scale < np.inf)
        return _only(inside, slope / scale), _only(inside, (1.0 - scaled * slope) / scale)

    def information(self, outputs: FloatArray, scale: FloatArray) -> Pair:
        precision = np.broadcast_to(1.0 / np.square(scale), outputs.shape)
        of_location, of_scale = self.information_of_unit
        return of_location * precision, of_scale * precision

    def information_slopes(self, outputs: FloatArray, scale: FloatArray) -> Three:
        slope = np.broadcast_to(-2.0 / scale**3, outputs.shape)
        of_location, of_scale = self.information_of_unit
        return np.zeros_like(outputs), of_location * slope, of_scale * slope


@attrs.frozen
class _Normal(_Errors):
    """Normal errors, whose standard deviation is the scale."""

    name = "gaussian"
    information_of_unit = (1.0, 2.0)

    def draw(self, rng: np.random.Generator, outputs: FloatArray, scale: FloatArray) -> FloatArray:
        return np.asarray(rng.normal(outputs, scale))

    def _term(self, scaled: FloatArray) -> FloatArray:
        return np.asarray(0.5 * np.square(scaled) + 0.5 * math.log(2.0 * math.pi))

    def _slope(self, scaled: FloatArray) -> FloatArray:
        return scaled


NORMAL = _Normal()
"""Normal errors, whose standard deviation is the scale."""


@attrs.frozen
class _Student(_Errors):
    """Errors with Student's t: (nu + 1) / 2 log(1 + r^2 / nu), and a constant of nu.

    Its Fisher information is that of Lange, Little and Taylor (1989), doi:10.2307/2290063. The
    standard deviation is the scale times sqrt(nu / (nu - 2)), for nu above 2.
    """

    name = "student"

    degrees: float

    @property
    def information_of_unit(self) -> tuple[float, float]:  # type: ignore[override]
        more = self.degrees + 3.0
        return (self.degrees + 1.0) / more, 2.0 * self.degrees / more

    def draw(self, rng: np.random.Generator, outputs: FloatArray, scale: FloatArray) -> FloatArray:
        return np.asarray(outputs + scale * rng.standard_t(self.degrees, size=outputs.shape))

    def _term(self, scaled: FloatArray) -> FloatArray:
        nu = self.degrees
        beta = math.lgamma(0.5 * nu) - math.lgamma(0.5 * (nu + 1.0))
        constant = beta + 0.5 * math.log(math.pi * nu)
        return np.asarray(0.5 * (nu + 1.0) * np.log1p(np.square(scaled) / nu) + constant)

    def _slope(self, scaled: FloatArray) -> FloatArray:
        return np.asarray((self.degrees + 1.0) * scaled / (self.degrees + np.square(scaled)))


@attrs.frozen
class _Lognormal(ErrorFamily):
    """Positive data whose logarithms are normal about those of positive outputs.

    The scale is the standard deviation of the logarithms.
    """

    name = "lognormal"

    def check_data(self, data: FloatArray) -> None:
        if not (data > 0.0).all():
            place = int(np.flatnonzero(~(data > 0.0))[0])
            raise ConfigurationError(
                f"data of the family 'lognormal' must be positive, got {data[place]:g} at "
                f"[{place}]; leave such data out, or take the family 'gaussian'"
            )

    def spread(self, data: FloatArray) -> FloatArray:
        return np.log(data)

    def draw(self, rng: np.random.Generator, outputs: FloatArray, scale: FloatArray) -> FloatArray:
        return np.asarray(np.exp(rng.normal(np.log(outputs), scale)))

    def value(self, outputs: FloatArray, data: FloatArray, scale: FloatArray) -> FloatArray:
        value = NORMAL.value(np.log(outputs), np.log(data), scale) + np.log(data)
        return np.where(outputs <= 0.0, np.inf, value)

    def slopes(self, outputs: FloatArray, data: FloatArray, scale: FloatArray) -> Pair:
        by_logs, by_scale = NORMAL.slopes(np.log(outputs), np.log(data), scale)
        return _only(outputs > 0.0, by_logs / outputs), _only(outputs > 0.0, by_scale)

    def information(self, outputs: FloatArray, scale: FloatArray) -> Pair:
        of_logs, of_scale = NORMAL.information(outputs, scale)
        return _only(outputs > 0.0, of_logs / np.square(outputs)), _only(outputs > 0.0, of_scale)

    def information_slopes(self, outputs: FloatArray, scale: FloatArray) -> Three:
        inside, (of_logs, _) = outputs > 0.0, NORMAL.information(outputs, scale)
        _, by_scale, twice = NORMAL.information_slopes(outputs, scale)
        by_outputs = _only(inside, -2.0 * of_logs / outputs**3)
        return by_outputs, _only(inside, by_scale / np.square(outputs)), _only(inside, twice)


@attrs.frozen
class _Poisson(ErrorFamily):
    """Counts with a Poisson distribution."""

    name = "poisson"
    has_scale = False

    link: Link

    def check_data(self, data: FloatArray) -> None:
        wrong = (data < 0.0) | (data != np.round(data))
        if wrong.any():
            place = int(np.flatnonzero(wrong)[0])
            raise ConfigurationError(
                f"data of the family 'poisson' must be counts 0, 1, 2, ..., got {data[place]:g} at "
                f"[{place}]; give counts before any scaling, or take another family"
            )

    def draw(self, rng: np.random.Generator, outputs: FloatArray, scale: FloatArray) -> FloatArray:
        del scale
        means = np.exp(outputs) if self.link == "log" else outputs
        return np.asarray(rng.poisson(means), dtype=np.float64)

    def value(self, outputs: FloatArray, data: FloatArray, scale: FloatArray) -> FloatArray:
        del scale
        from scipy.special import gammaln  # late: importing stays fast

        means = np.exp(outputs) if self.link == "log" else outputs
        logs = outputs if self.link == "log" else np.log(outputs)
        value = means - np.where(data > 0.0, data * logs, 0.0) + gammaln(data + 1.0)
        # of an infinite mean, no difference is known
        return np.where((means < 0.0) | (means == np.inf), np.inf, value)

    def slopes(self, outputs: FloatArray, data: FloatArray, scale: FloatArray) -> Pair:
        del scale
        if self.link == "log":
            return np.exp(outputs) - data, np.zeros_like(outputs)
        slope = 1.0 - np.where(data > 0.0, data / outputs, 0.0)
        return _only(outputs >= 0.0, slope), _only(outputs >= 0.0, np.zeros_like(outputs))

    def information(self, outputs: FloatArray, scale: FloatArray) -> Pair:
        del scale
        if self.link == "log":
            return np.exp(outputs), np.zeros_like(outputs)
        inside = outputs > 0.0
        return _only(inside, 1.0 / outputs), _only(inside, np.zeros_like(outputs))

    def information_slopes(self, outputs: FloatArray, scale: FloatArray) -> Three:
        del scale
        if self.link == "log":
            return np.exp(outputs), np.zeros_like(outputs), np.zeros_like(outputs)
        nothing = _only(outputs > 0.0, np.zeros_like(outputs))
        return _only(outputs > 0.0, -1.0 / np.square(outputs)), nothing, nothing


def read_family(given: object, degrees: Any = None, link: Any = None) -> ErrorFamily:
    """Return a family of errors by its name, with the settings that :func:`observed` takes."""
    family, settings = read_name(given, {} if degrees is None else {"degrees": degrees})
    degrees, names = settings.get("degrees"), ("gaussian", "student", "lognormal", "poisson")
    if family not in names:
        near = suggest(given, names) or "; for another, write an energy"
        raise ConfigurationError(
            f"family of errors must be one of {', '.join(names)}, got {given!r}{near}"
        )
    if degrees is not None and family != "student":
        raise ConfigurationError(f"degrees are of the family 'student', not of {family!r}")
    if link is not None and family != "poisson":
        raise ConfigurationError(f"link is of the family 'poisson', not of {family!r}")
    if family == "student":
        nu = 4.0 if degrees is None else degrees
        if not is_number(nu) or not 0.0 < nu < np.inf:
            raise ConfigurationError(f"degrees must be a positive, finite number, got {degrees!r}")
        return _Student(float(nu))
    if family == "poisson":
        if link not in (None, "identity", "log"):
            raise ConfigurationError(f"link must be 'identity' or 'log', got {link!r}")
        return _Poisson(link or "identity")
    return NORMAL if family == "gaussian" else _Lognormal()
