"""What families say of responses: their means, and draws of them, from linear predictors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import gamma
from typing import Any, TypeAlias

import attrs
import numpy as np

from surrokit.errors import ConfigurationError
from surrokit.types import FloatArray

Mean: TypeAlias = Callable[[FloatArray], FloatArray]
"""From linear predictors to means of responses."""

Draw: TypeAlias = Callable[[np.random.Generator, FloatArray, FloatArray], FloatArray]
"""From a generator, linear predictors and scales of errors to responses."""

_MOST = 700.0  # exponent of a mean that is still a number
_MOST_COUNTED = 1e18


@attrs.frozen(kw_only=True)
class ResponseFamily:
    """A family, as far as predictions go.

    Parameters
    ----------
    mean, draw
        Of responses.
    of_errors
        Whether responses are real numbers about the predictor, in units of the response.
    positive
        Whether responses are not negative.
    log_mean
        How the logarithm of a mean grows with the predictor; 0 where means are the predictor.
    """

    mean: Mean
    draw: Draw
    of_errors: bool = False
    positive: bool = False
    log_mean: float = 0.0


def read_family(name: object, given: Mapping[str, Any] | None) -> ResponseFamily:
    """Return a family by its name.

    Parameters
    ----------
    name
        As in :func:`surrokit.rows_potential`.
    given
        Its settings.

    Raises
    ------
    ConfigurationError
        If there is no such family, or it has no such setting.
    """
    if not isinstance(name, str) or name not in _FAMILIES:
        raise ConfigurationError(f"family must be one of {', '.join(NAMES)}, got {name!r}")
    numbers = dict(given or {})
    known = _SETTINGS.get(name, {})
    odd = sorted(set(numbers) - set(known))
    if odd:
        raise ConfigurationError(
            f"the family {name!r} has no setting {' and no '.join(odd)}; it has "
            f"{', '.join(known) or 'none'}"
        )
    if name == "student" and numbers.get("scale") is None:
        raise ConfigurationError(
            f"the family {name!r} needs scale, that of its errors, which is not inferred; give "
            "settings={'scale': ...}, such as the residuals' standard deviation"
        )
    return _FAMILIES[name](**{**known, **numbers})


def _gaussian(scale: float | None) -> ResponseFamily:
    del scale
    return ResponseFamily(mean=_same, draw=_draw_normal, of_errors=True)


def _student(scale: float, degrees: float) -> ResponseFamily:
    draw = partial(_draw_student, scale, degrees)
    return ResponseFamily(mean=_same, draw=draw, of_errors=True)


def _poisson() -> ResponseFamily:
    return ResponseFamily(mean=_exp, draw=_draw_counts, positive=True, log_mean=1.0)


def _negative_binomial(size: float) -> ResponseFamily:
    draw = partial(_draw_mixed_counts, size)
    return ResponseFamily(mean=_exp, draw=draw, positive=True, log_mean=1.0)


def _gamma(shape: float) -> ResponseFamily:
    draw = partial(_draw_gamma, shape)
    return ResponseFamily(mean=_exp, draw=draw, positive=True, log_mean=1.0)


def _weibull(shape: float) -> ResponseFamily:
    mean, draw = partial(_mean_of_times, shape), partial(_draw_times, shape)
    return ResponseFamily(mean=mean, draw=draw, positive=True, log_mean=-1.0 / shape)


def _exponential() -> ResponseFamily:
    return _weibull(1.0)


def _draw_normal(rng: np.random.Generator, e: FloatArray, s: FloatArray) -> FloatArray:
    return np.asarray(rng.normal(e, s))


def _draw_student(
    scale: float,
    degrees: float,
    rng: np.random.Generator,
    e: FloatArray,
    _: FloatArray,
) -> FloatArray:
    return np.asarray(e + scale * rng.standard_t(degrees, size=e.shape))


def _draw_counts(rng: np.random.Generator, e: FloatArray, _: FloatArray) -> FloatArray:
    return np.asarray(rng.poisson(np.minimum(_exp(e), _MOST_COUNTED)), dtype=np.float64)


def _draw_mixed_counts(
    size: float, rng: np.random.Generator, e: FloatArray, _: FloatArray
) -> FloatArray:
    rates = rng.gamma(size, np.minimum(_exp(e), _MOST_COUNTED) / size)
    return np.asarray(rng.poisson(np.minimum(rates, _MOST_COUNTED)), dtype=np.float64)


def _draw_gamma(shape: float, rng: np.random.Generator, e: FloatArray, _: FloatArray) -> FloatArray:
    return np.asarray(rng.gamma(shape, _exp(e) / shape))


def _mean_of_times(shape: float, e: FloatArray) -> FloatArray:
    return gamma(1.0 + 1.0 / shape) * _exp(-e / shape)


def _draw_times(shape: float, rng: np.random.Generator, e: FloatArray, _: FloatArray) -> FloatArray:
    return np.asarray(_exp(-e / shape) * rng.weibull(shape, size=e.shape))


def _same(e: FloatArray) -> FloatArray:
    return e


def _exp(e: FloatArray) -> FloatArray:
    return np.asarray(np.exp(np.minimum(e, _MOST)))


_FAMILIES: Mapping[str, Callable[..., ResponseFamily]] = {
    "gaussian": _gaussian,
    "student": _student,
    "poisson": _poisson,
    "negative-binomial": _negative_binomial,
    "gamma": _gamma,
    "exponential": _exponential,
    "weibull": _weibull,
}

_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "gaussian": {"scale": None},
    "student": {"scale": None, "degrees": 4.0},
    "negative-binomial": {"size": 1.0},
    "gamma": {"shape": 1.0},
    "weibull": {"shape": 1.0},
}

NAMES = tuple(_FAMILIES)
"""Families that an estimator takes."""
