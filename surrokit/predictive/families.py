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


_ERRORS, _TWO, _POSITIVE = {"of_errors": True}, {"binary": True}, {"positive": True}
_LOG_MEAN = {"positive": True, "log_mean": 1.0}

_FAMILIES: Mapping[str, tuple[dict[str, float], dict[str, Any]]] = {
    "gaussian": ({"scale": 1.0}, _ERRORS),
    "student": ({"scale": 1.0, "degrees": 4.0}, _ERRORS),
    "logistic-errors": ({"scale": 1.0}, _ERRORS),
    "logistic": ({}, _TWO),
    "probit": ({}, _TWO),
    "poisson": ({}, _LOG_MEAN),
    "negative-binomial": ({"size": 1.0}, _LOG_MEAN),
    "gamma": ({"shape": 1.0}, _LOG_MEAN),
    "exponential": ({}, _POSITIVE),
    "weibull": ({"shape": 1.0}, _POSITIVE),
}
"""Name to known numbers, and to what is particular of a family."""

NAMES = tuple(_FAMILIES)
"""Families of one linear predictor."""


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
    if name not in NAMES:
        raise ConfigurationError(
            f"family must be one of {', '.join(NAMES)}, got {name!r}{suggest(name, NAMES)}"
        )
    (known, particular), numbers = _FAMILIES[name], dict(settings or {})
    odd = sorted(set(numbers) - set(known))
    if odd:
        raise ConfigurationError(
            f"the family {name!r} has no setting {' and no '.join(odd)}; it has "
            f"{', '.join(known) or 'none'}"
        )
    whole = {**known, **numbers}
    if particular is _POSITIVE:  # times
        particular = {**particular, "log_mean": -1.0 / whole.get("shape", 1.0)}
    return ResponseFamily(
        name=name,
        settings=whole,
        mean=partial(_mean, name, whole),
        draw=partial(_draw, name, whole),
        built_in=True,
        **particular,
    )


def _mean(name: str, known: Mapping[str, float], e: FloatArray) -> FloatArray:
    from scipy.special import expit, ndtr  # late: importing the package stays fast

    match name:
        case "logistic":
            return np.asarray(expit(e))
        case "probit":
            return np.asarray(ndtr(e))
        case "exponential" | "weibull":
            shape = known.get("shape", 1.0)
            return gamma(1.0 + 1.0 / shape) * _exp(-e / shape)
        case "poisson" | "negative-binomial" | "gamma":
            return _exp(e)
    return e  # with errors of mean zero


def _draw(
    name: str, known: Mapping[str, float], rng: np.random.Generator, e: FloatArray, scale: Any
) -> FloatArray:
    """Return responses to linear predictors; ``scale`` is that of normal errors."""
    drawn: Any
    match name:
        case "gaussian":
            drawn = rng.normal(e, scale)
        case "student":
            drawn = e + known["scale"] * rng.standard_t(known["degrees"], size=e.shape)
        case "logistic-errors":
            drawn = rng.logistic(e, known["scale"])
        case "logistic" | "probit":
            drawn = rng.random(e.shape) < _mean(name, known, e)
        case "poisson":
            drawn = rng.poisson(np.minimum(_exp(e), _MOST_COUNTED))
        case "negative-binomial":
            rates = rng.gamma(known["size"], np.minimum(_exp(e), _MOST_COUNTED) / known["size"])
            drawn = rng.poisson(np.minimum(rates, _MOST_COUNTED))
        case "gamma":
            drawn = rng.gamma(known["shape"], _exp(e) / known["shape"])
        case _:  # exponential and Weibull's times
            shape = known.get("shape", 1.0)
            drawn = _exp(-e / shape) * rng.weibull(shape, size=e.shape)
    return np.asarray(drawn, dtype=np.float64)


def _exp(e: FloatArray) -> FloatArray:
    return np.asarray(np.exp(np.minimum(e, _MOST)))
