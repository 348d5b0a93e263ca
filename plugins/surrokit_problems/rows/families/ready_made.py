"""The families that have names."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.special import gammaln

from surrokit.errors import ConfigurationError
from surrokit.predictive.families import ResponseFamily, response_family
from surrokit.types import FloatArray
from surrokit_problems.rows.families import logistic_terms, probit_terms
from surrokit_problems.rows.families.error_terms import LogisticErrors, StudentErrors
from surrokit_problems.rows.families.exponential_terms import ExponentialTerms, OfResponses
from surrokit_problems.rows.families.family import Family
from surrokit_problems.rows.families.gaussian_terms import NormalErrors
from surrokit_problems.rows.families.negative_binomial_terms import NegativeBinomialTerms
from surrokit_problems.rows.families.responses import Responses

LOGISTIC = Family(
    name="logistic",
    value=logistic_terms.value,
    first=logistic_terms.first,
    second=logistic_terms.second,
    third_bound=logistic_terms.THIRD_BOUND,
    convex=True,
    responses="binary",
    remainder=logistic_terms.remainder,
    third_order_remainder=partial(logistic_terms.remainder, order=3),
    prepare=logistic_terms.slope_and_bend,
    third=logistic_terms.third,
    fourth_bound=logistic_terms.FOURTH_BOUND,
    constant=np.zeros_like,
    predicts=response_family("logistic"),
)
"""Responses 0 and 1 with probability 1 / (1 + exp(-e)) of 1."""


PROBIT = Family(
    name="probit",
    value=probit_terms.value,
    first=probit_terms.first,
    second=probit_terms.second,
    # with m = phi / Phi: f'' = m (m + t) and -f''' = m ((m + t) (2 m + t) - 1), which is the third
    # central moment of a standard normal cut off below -t. It is positive, vanishes far out on both
    # sides (where nothing is cut off, and where what is left has no width), and is largest where
    # t = 1.0024 and it is 0.2957188...; found by Brent's method, and rounded up
    third_bound=0.29572,
    convex=True,
    responses="binary",
    remainder=probit_terms.remainder,
    constant=np.zeros_like,
    predicts=response_family("probit"),
)
"""Responses 0 and 1 with probability Phi(e) of 1."""


def student_errors(degrees: float = 4.0, scale: float = 1.0) -> Family:
    """Return the family of responses that miss their predictor by Student's t.

    It is not convex: f'' < 0 where an error is more than sqrt(degrees) scales, so that a
    posterior may have several modes.

    Parameters
    ----------
    degrees
        Degrees of freedom.
    scale
        Of the errors, in units of the response.

    Raises
    ------
    ConfigurationError
        If either is not positive.
    """
    _check_positive(degrees=degrees, scale=scale)
    errors = StudentErrors(degrees, scale)
    # with u = sqrt(nu) tan(a): f''' = 2 (nu + 1) nu^(-3/2) sin(3 a) cos(a)^3 / scale^3, up to its
    # sign; the derivative of sin(3 a) cos(a)^3 is 3 cos(a)^2 cos(4 a), so the maximum is where
    # a = pi / 8: sin(3 pi / 8) cos(pi / 8)^3 = cos(pi / 8)^4 = (3 + 2 sqrt(2)) / 8
    bound = 2.0 * (degrees + 1.0) * degrees**-1.5 * (3.0 + 2.0 * np.sqrt(2.0)) / 8.0
    return Family(
        name=f"Student errors, {degrees:g} degrees of freedom, scale {scale:g}",
        value=errors.value,
        first=errors.first,
        second=errors.second,
        third_bound=bound / scale**3,
        remainder=errors.remainder,
        constant=errors.constant,
        predicts=response_family("student", {"scale": scale, "degrees": degrees}),
    )


def logistic_errors(scale: float = 1.0) -> Family:
    """Return the family of responses that miss their predictor by the logistic distribution.

    Tails are exponential, and the terms are convex.

    Parameters
    ----------
    scale
        Of the errors, in units of the response; their standard deviation is 1.81 times that.

    Raises
    ------
    ConfigurationError
        If it is not positive.
    """
    _check_positive(scale=scale)
    errors = LogisticErrors(scale)
    return Family(
        name=f"logistic errors, scale {scale:g}",
        value=errors.value,
        first=errors.first,
        second=errors.second,
        # two terms log(1 + exp(u)), each with the bound of the logistic family
        third_bound=2.0 * logistic_terms.THIRD_BOUND / scale**3,
        convex=True,
        remainder=errors.remainder,
        constant=errors.constant,
        predicts=response_family("logistic-errors", {"scale": scale}),
    )


def gaussian(scale: float = 1.0) -> Family:
    """Return the family of responses that miss their predictor by a normal error.

    Terms are quadratics: no row is ever touched by the subsampled correction.

    Parameters
    ----------
    scale
        Standard deviation of the errors.

    Raises
    ------
    ConfigurationError
        If it is not positive.
    """
    _check_positive(scale=scale)
    errors = NormalErrors(scale)
    return Family(
        name=f"gaussian, scale {scale:g}",
        value=errors.value,
        first=errors.first,
        second=errors.second,
        third_bound=0.0,
        convex=True,
        remainder=errors.remainder,
        third=errors.third,
        fourth_bound=0.0,
        third_order_remainder=errors.remainder,
        constant=errors.constant,
        predicts=response_family("gaussian", {"scale": scale}),
    )


def poisson() -> Family:
    """Return the family of counts with a Poisson distribution of mean exp(e)."""
    terms = ExponentialTerms(_ones, _response)
    return _exponential("poisson", terms, "count", response_family("poisson"), _log_factorial)


def negative_binomial(size: float = 1.0) -> Family:
    """Return the family of counts with mean m = exp(e) and variance m + m^2 / size.

    Parameters
    ----------
    size
        Known; counts are Poisson's as it grows, and geometric where it is 1.

    Raises
    ------
    ConfigurationError
        If it is not positive.
    """
    _check_positive(size=size)
    terms = NegativeBinomialTerms(size)
    return Family(
        name=f"negative-binomial, size {size:g}",
        value=terms.value,
        first=terms.first,
        second=terms.second,
        third_bound=terms.third_bound,
        convex=True,
        responses="count",
        remainder=terms.remainder,
        third=terms.third,
        fourth_bound=terms.fourth_bound,
        third_order_remainder=terms.third_order_remainder,
        prepare=terms.prepare,
        constant=terms.constant,
        predicts=response_family("negative-binomial", {"size": size}),
    )


def gamma(shape: float = 1.0) -> Family:
    """Return the family of positive responses with a gamma distribution of mean exp(e).

    Parameters
    ----------
    shape
        Known; the standard deviation is the mean / sqrt(shape).

    Raises
    ------
    ConfigurationError
        If it is not positive.
    """
    _check_positive(shape=shape)
    terms = ExponentialTerms(partial(_multiple, shape), partial(_constant, -shape), sign=-1.0)
    constant = partial(_constant_of_gamma, shape)
    predicts = response_family("gamma", {"shape": shape})
    return _exponential(f"gamma, shape {shape:g}", terms, "positive", predicts, constant)


def exponential() -> Family:
    """Return the family of times to an event with the hazard exp(e).

    A time that was censored is given as minus itself.
    """
    terms = ExponentialTerms(np.abs, _came)
    predicts = response_family("exponential")
    return _exponential("exponential", terms, "time", predicts, np.zeros_like)


def weibull(shape: float = 1.0) -> Family:
    """Return the family of times to an event with the hazard shape t^(shape - 1) exp(e).

    Hazards are proportional: where times are modelled with a scale exp(x . b), e is -shape times
    that x . b. A time that was censored is given as minus itself.

    Parameters
    ----------
    shape
        Known.

    Raises
    ------
    ConfigurationError
        If it is not positive.
    """
    _check_positive(shape=shape)
    terms = ExponentialTerms(partial(_power, shape), _came)
    constant = partial(_constant_of_weibull, shape)
    predicts = response_family("weibull", {"shape": shape})
    return _exponential(f"weibull, shape {shape:g}", terms, "time", predicts, constant)


def _exponential(
    name: str,
    terms: ExponentialTerms,
    responses: Responses,
    predicts: ResponseFamily,
    constant: OfResponses,
) -> Family:
    return Family(
        name=name,
        predicts=predicts,
        value=terms.value,
        first=terms.first,
        second=terms.second,
        third_bound=terms.bound,
        local=True,
        convex=True,
        responses=responses,
        remainder=terms.remainder,
        third=terms.third,
        fourth_bound=terms.bound,
        third_order_remainder=terms.third_order_remainder,
        constant=constant,
    )


def _log_factorial(y: FloatArray) -> FloatArray:
    return np.asarray(gammaln(y + 1.0))


def _constant_of_gamma(shape: float, y: FloatArray) -> FloatArray:
    """Return log Gamma(a) - a log a - (a - 1) log y, with a the shape."""
    return np.asarray(gammaln(shape) - shape * np.log(shape) - (shape - 1.0) * np.log(y))


def _constant_of_weibull(shape: float, y: FloatArray) -> FloatArray:
    """Return -log(k t^(k - 1)) where the event came, with k the shape; else nothing is left out."""
    return np.asarray(-_came(y) * (np.log(shape) + (shape - 1.0) * np.log(np.abs(y))))


def _ones(y: FloatArray) -> FloatArray:
    return np.ones(np.shape(y))


def _response(y: FloatArray) -> FloatArray:
    return y


def _multiple(factor: float, y: FloatArray) -> FloatArray:
    return np.asarray(factor * y)


def _constant(number: float, y: FloatArray) -> FloatArray:
    return np.full(np.shape(y), number)


def _power(exponent: float, y: FloatArray) -> FloatArray:
    return np.asarray(np.abs(y) ** exponent)


def _came(y: FloatArray) -> FloatArray:
    return np.asarray(np.asarray(y) > 0.0, dtype=np.float64)


def _check_positive(**numbers: float) -> None:
    for name, number in numbers.items():
        if not 0.0 < number < np.inf:
            raise ConfigurationError(f"{name} must be positive and finite, got {number}")
