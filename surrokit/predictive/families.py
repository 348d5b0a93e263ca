"""Families of responses: their means, and draws of them, from linear predictors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import gamma
from typing import Any, TypeAlias

import attrs
import numpy as np

from surrokit.errors import ConfigurationError
from surrokit.predictive.names import suggest
from surrokit.types import FloatArray

Mean: TypeAlias = Callable[[FloatArray], FloatArray]
"""From linear predictors to means of responses."""

Draw: TypeAlias = Callable[[np.random.Generator, FloatArray, Any], FloatArray]
"""From a generator, linear predictors and scales of errors to responses."""

_MOST = 700.0  # exponent of a mean that is still a number
_MOST_COUNTED = 1e18


@attrs.frozen(kw_only=True, eq=False)
class ResponseFamily:
    """A family of responses to one linear predictor, as far as predictions go.

    Parameters
    ----------
    name
        Its own.
    settings
        Numbers by which it was made.
    mean, draw
        Of responses. Scales are those of normal errors; other families pay no heed to them.
    of_errors
        Whether responses are real numbers about the predictor, in units of the response.
    binary
        Whether responses are zeros and ones.
    positive
        Whether responses are not negative.
    log_mean
        How the logarithm of a mean grows with the predictor; 0 where means are the predictor.
    built_in
        Whether name and settings suffice to make it again.
    """

    name: str
    settings: Mapping[str, float] = attrs.field(factory=dict)
    mean: Mean
    draw: Draw
    of_errors: bool = False
    binary: bool = False
    positive: bool = False
    log_mean: float = 0.0
    built_in: bool = False

    @property
    def scale(self) -> float:
        """The known scale of errors; 1 where there is none."""
        return float(self.settings.get("scale", 1.0))


def response_family(name: str, settings: Mapping[str, float] | None = None) -> ResponseFamily:
    """Return a family by its name.

    Parameters
    ----------
    name
        As in :func:`surrokit.rows_potential`, but for ``"multinomial"`` and ``"ordinal"``.
    settings
        Its known numbers; others are as usual.

    Raises
    ------
    ConfigurationError
        If there is no such family, or it has no such setting.
    """
    if name not in _FAMILIES:
        raise ConfigurationError(
            f"family must be one of {', '.join(NAMES)}, got {name!r}{suggest(name, NAMES)}"
        )
    numbers, known = dict(settings or {}), _SETTINGS.get(name, {})
    odd = sorted(set(numbers) - set(known))
    if odd:
        raise ConfigurationError(
            f"the family {name!r} has no setting {' and no '.join(odd)}; it has "
            f"{', '.join(known) or 'none'}"
        )
    whole = {**known, **numbers}
    return attrs.evolve(_FAMILIES[name](**whole), settings=whole, built_in=True)


def _errors(name: str, draw: Draw) -> ResponseFamily:
    return ResponseFamily(name=name, mean=_same, draw=draw, of_errors=True)


def _gaussian(scale: float) -> ResponseFamily:
    del scale
    return _errors("gaussian", _draw_normal)


def _student(scale: float, degrees: float) -> ResponseFamily:
    return _errors("student", partial(_draw_student, scale, degrees))


def _logistic_errors(scale: float) -> ResponseFamily:
    return _errors("logistic-errors", partial(_draw_logistic, scale))


def _logistic() -> ResponseFamily:
    return ResponseFamily(name="logistic", mean=_expit, draw=_draw_logits, binary=True)


def _probit() -> ResponseFamily:
    return ResponseFamily(name="probit", mean=_ndtr, draw=_draw_probits, binary=True)


def _with_log_mean(name: str, mean: Mean, draw: Draw, log_mean: float = 1.0) -> ResponseFamily:
    return ResponseFamily(name=name, mean=mean, draw=draw, positive=True, log_mean=log_mean)


def _poisson() -> ResponseFamily:
    return _with_log_mean("poisson", _exp, _draw_counts)


def _negative_binomial(size: float) -> ResponseFamily:
    return _with_log_mean("negative-binomial", _exp, partial(_draw_mixed_counts, size))


def _gamma(shape: float) -> ResponseFamily:
    return _with_log_mean("gamma", _exp, partial(_draw_gamma, shape))


def _weibull(shape: float, name: str = "weibull") -> ResponseFamily:
    mean, draw = partial(_mean_of_times, shape), partial(_draw_times, shape)
    return _with_log_mean(name, mean, draw, log_mean=-1.0 / shape)


def _exponential() -> ResponseFamily:
    return _weibull(1.0, "exponential")


def _draw_normal(rng: np.random.Generator, e: FloatArray, s: Any) -> FloatArray:
    return np.asarray(rng.normal(e, s))


def _draw_student(
    scale: float, degrees: float, rng: np.random.Generator, e: FloatArray, _: Any
) -> FloatArray:
    return np.asarray(e + scale * rng.standard_t(degrees, size=e.shape))


def _draw_logistic(scale: float, rng: np.random.Generator, e: FloatArray, _: Any) -> FloatArray:
    return np.asarray(rng.logistic(e, scale))


def _draw_logits(rng: np.random.Generator, e: FloatArray, _: Any) -> FloatArray:
    return np.asarray(rng.random(e.shape) < _expit(e), dtype=np.float64)


def _draw_probits(rng: np.random.Generator, e: FloatArray, _: Any) -> FloatArray:
    return np.asarray(rng.random(e.shape) < _ndtr(e), dtype=np.float64)


def _draw_counts(rng: np.random.Generator, e: FloatArray, _: Any) -> FloatArray:
    return np.asarray(rng.poisson(np.minimum(_exp(e), _MOST_COUNTED)), dtype=np.float64)


def _draw_mixed_counts(size: float, rng: np.random.Generator, e: FloatArray, _: Any) -> FloatArray:
    rates = rng.gamma(size, np.minimum(_exp(e), _MOST_COUNTED) / size)
    return np.asarray(rng.poisson(np.minimum(rates, _MOST_COUNTED)), dtype=np.float64)


def _draw_gamma(shape: float, rng: np.random.Generator, e: FloatArray, _: Any) -> FloatArray:
    return np.asarray(rng.gamma(shape, _exp(e) / shape))


def _mean_of_times(shape: float, e: FloatArray) -> FloatArray:
    return gamma(1.0 + 1.0 / shape) * _exp(-e / shape)


def _draw_times(shape: float, rng: np.random.Generator, e: FloatArray, _: Any) -> FloatArray:
    return np.asarray(_exp(-e / shape) * rng.weibull(shape, size=e.shape))


def _same(e: FloatArray) -> FloatArray:
    return e


def _exp(e: FloatArray) -> FloatArray:
    return np.asarray(np.exp(np.minimum(e, _MOST)))


def _expit(e: FloatArray) -> FloatArray:
    from scipy.special import expit  # late: importing the package stays fast

    return np.asarray(expit(e))


def _ndtr(e: FloatArray) -> FloatArray:
    from scipy.special import ndtr  # late: importing the package stays fast

    return np.asarray(ndtr(e))


_FAMILIES: Mapping[str, Callable[..., ResponseFamily]] = {
    "gaussian": _gaussian,
    "student": _student,
    "logistic-errors": _logistic_errors,
    "logistic": _logistic,
    "probit": _probit,
    "poisson": _poisson,
    "negative-binomial": _negative_binomial,
    "gamma": _gamma,
    "exponential": _exponential,
    "weibull": _weibull,
}

_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "gaussian": {"scale": 1.0},
    "student": {"scale": 1.0, "degrees": 4.0},
    "logistic-errors": {"scale": 1.0},
    "negative-binomial": {"size": 1.0},
    "gamma": {"shape": 1.0},
    "weibull": {"shape": 1.0},
}

NAMES = tuple(_FAMILIES)
"""Families of one linear predictor."""
