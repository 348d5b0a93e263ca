"""Families of terms for generalised linear models: functions of one linear predictor.

To give one's own, make a :class:`Family` of three functions and a bound; the posterior is right if
the functions are each other's derivatives and the bound holds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import attrs
import numpy as np
from scipy.special import erfcx, expit, log_ndtr

from surrokit.errors import ConfigurationError
from surrokit.types import FloatArray

Function: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]
"""Of linear predictors and responses, entry by entry with broadcasting."""

Remainder: TypeAlias = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]
"""Of linear predictors e, responses and steps t: f(e + t) - f(e) - f'(e) t - f''(e) t^2 / 2."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Family:
    """The terms f(e) = -log p(response | linear predictor e) of a generalised linear model.

    Functions take predictors and responses as arrays that broadcast, and return an array of the
    broadcast shape; they must be defined, finite or ``inf``, for every finite predictor. Give
    functions of a module's own, rather than lambdas, where a potential shall travel to other
    processes.

    Parameters
    ----------
    name
        For messages.
    value
        f, in nats; any constant may be left out.
    first, second
        f' and f'', derivatives in the predictor.
    third_bound
        B with abs(f''') <= B at every predictor, for every response. The subsampled correction
        relies on it: draws are biased, without any sign of it, if it is too small, and more rows
        are touched than need be if it is too large.
    convex
        Whether f'' > 0 everywhere.
    binary
        Whether responses are zeros and ones.
    remainder
        The error of the second-order expansion, where it can be had without cancellation; else
        it is made of the functions above.
    third
        f''', where it is to be had: expansions may then be of third order.
    fourth_bound
        The largest absolute fourth derivative, at every predictor and for every response; it goes
        with ``third``, and as much rests on it as on ``third_bound``.

    Raises
    ------
    ConfigurationError
        If a bound is not positive and finite, or one of ``third`` and ``fourth_bound`` is missing.
    """

    name: str
    value: Function
    first: Function
    second: Function
    third_bound: float
    convex: bool = False
    binary: bool = False
    remainder: Remainder | None = None
    third: Function | None = None
    fourth_bound: float | None = None

    def __attrs_post_init__(self) -> None:
        if not 0.0 < self.third_bound < np.inf:
            raise ConfigurationError(
                f"third_bound of the family {self.name!r} must be positive and finite, got "
                f"{self.third_bound}; give the largest absolute third derivative"
            )
        if (self.third is None) != (self.fourth_bound is None):
            raise ConfigurationError(
                f"third and fourth_bound of the family {self.name!r} go together; give both, or "
                "neither"
            )
        if self.fourth_bound is not None and not 0.0 < self.fourth_bound < np.inf:
            raise ConfigurationError(
                f"fourth_bound of the family {self.name!r} must be positive and finite, got "
                f"{self.fourth_bound}; give the largest absolute fourth derivative"
            )

    def __repr__(self) -> str:
        return f"Family({self.name!r})"

    def remaining(
        self, predictor: FloatArray, response: FloatArray, step: FloatArray
    ) -> FloatArray:
        """Return f(e + t) - f(e) - f'(e) t - f''(e) t^2 / 2 for steps t, all of one shape."""
        if self.remainder is not None:
            return self.remainder(predictor, response, step)
        change = self.value(predictor + step, response) - self.value(predictor, response)
        slope, bend = self.first(predictor, response), self.second(predictor, response)
        return np.asarray(change - step * (slope + 0.5 * step * bend))


def _density(u: FloatArray) -> FloatArray:
    """Return p (1 - p) with p = 1 / (1 + exp(-u)), positive as far out as numbers go."""
    t = np.exp(-np.abs(u))
    return np.asarray(t / np.square(1.0 + t))


def _logistic_value(e: FloatArray, y: FloatArray) -> FloatArray:
    """log(1 + exp(e)) - y e."""
    return np.asarray(np.log1p(np.exp(-np.abs(e))) + np.maximum(e, 0.0) - y * e)


def _logistic_first(e: FloatArray, y: FloatArray) -> FloatArray:
    return np.asarray(expit(e) - y)


def _logistic_third(e: FloatArray, y: FloatArray) -> FloatArray:
    """P (1 - p) (1 - 2 p), and 1 - 2 p = -tanh(e / 2)."""
    return np.asarray(-_density(e) * np.tanh(0.5 * e) + 0.0 * y)


def _logistic_second(e: FloatArray, y: FloatArray) -> FloatArray:
    return _density(e) + 0.0 * y


_LARGEST_STEP = 500.0  # exp of more overflows soon


def _logistic_remainder(e: FloatArray, y: FloatArray, t: FloatArray) -> FloatArray:
    """Use log(1 + exp(e + t)) - log(1 + exp(e)) = log(1 + p (exp(t) - 1)), p at e; y drops out."""
    p = expit(e)
    if t.size and t.max() > _LARGEST_STEP:
        growth = _logistic_value(e + t, y) - _logistic_value(e, y) + y * t
    else:
        growth = np.log1p(p * np.expm1(t))
    # -p t (1 + (1 - p) t / 2), with as few temporaries as there can be
    bend = (0.5 - 0.5 * p) * t
    bend += 1.0
    bend *= t
    bend *= p
    return np.asarray(growth - bend)


LOGISTIC = Family(
    name="logistic",
    value=_logistic_value,
    first=_logistic_first,
    second=_logistic_second,
    # f''' = p (1 - p) (1 - 2 p), largest where its derivative 1 - 6 p + 6 p^2 vanishes:
    # p = 1/2 - 1/sqrt(12), and there f''' = (1/6) (2 / sqrt(12)) = 1 / (6 sqrt(3))
    third_bound=1.0 / (6.0 * np.sqrt(3.0)),
    convex=True,
    binary=True,
    remainder=_logistic_remainder,
    third=_logistic_third,
    # with v = p (1 - p): f'''' = v (1 - 6 v), from 1/24 at v = 1/12 to -1/8 at v = 1/4
    fourth_bound=0.125,
)
"""Responses 0 and 1 with probability 1 / (1 + exp(-e)) of 1."""


def _side(y: FloatArray) -> FloatArray:
    return 2.0 * y - 1.0


def _mills(t: FloatArray) -> FloatArray:
    """Return phi(t) / Phi(t); erfcx keeps its digits far out on both sides."""
    with np.errstate(over="ignore"):
        return np.asarray(np.sqrt(2.0 / np.pi) / erfcx(-t / np.sqrt(2.0)))


def _probit_value(e: FloatArray, y: FloatArray) -> FloatArray:
    """-log Phi(e) for a response of 1, -log Phi(-e) for one of 0."""
    return np.asarray(-log_ndtr(_side(y) * e))


def _probit_first(e: FloatArray, y: FloatArray) -> FloatArray:
    side = _side(y)
    return np.asarray(-side * _mills(side * e))


def _probit_second(e: FloatArray, y: FloatArray) -> FloatArray:
    t = _side(y) * e
    ratio = _mills(t)
    with np.errstate(invalid="ignore"):  # 0 times infinity
        bend = ratio * (ratio + t)
    return np.asarray(np.clip(np.where(np.isnan(bend), 0.0, bend), 0.0, 1.0))


PROBIT = Family(
    name="probit",
    value=_probit_value,
    first=_probit_first,
    second=_probit_second,
    # with m = phi / Phi: f'' = m (m + t) and -f''' = m ((m + t) (2 m + t) - 1), which is the third
    # central moment of a standard normal cut off below -t. It is positive, vanishes far out on both
    # sides (where nothing is cut off, and where what is left has no width), and is largest where
    # t = 1.0024 and it is 0.2957188...; found by Brent's method, and rounded up
    third_bound=0.29572,
    convex=True,
    binary=True,
)
"""Responses 0 and 1 with probability Phi(e) of 1."""


@attrs.frozen
class _StudentErrors:
    """Terms of errors u = (y - e) / scale with Student's t: (nu + 1) / 2 log(1 + u^2 / nu)."""

    degrees: float
    scale: float

    def value(self, e: FloatArray, y: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            square = np.square((y - e) / self.scale) / self.degrees
        return np.asarray(0.5 * (self.degrees + 1.0) * np.log1p(square))

    def first(self, e: FloatArray, y: FloatArray) -> FloatArray:
        u = (y - e) / self.scale
        return np.asarray(-(self.degrees + 1.0) / self.scale * u / (self.degrees + u * u))

    def second(self, e: FloatArray, y: FloatArray) -> FloatArray:
        square = np.square((y - e) / self.scale)
        # in this form nothing overflows before it is 0
        share = (self.degrees - square) / (self.degrees + square)
        return np.asarray((self.degrees + 1.0) / self.scale**2 * share / (self.degrees + square))


@attrs.frozen
class _LogisticErrors:
    """Terms of errors u = (y - e) / scale with the logistic distribution: 2 log(1 + e^u) - u."""

    scale: float

    def value(self, e: FloatArray, y: FloatArray) -> FloatArray:
        size = np.abs(y - e) / self.scale
        return np.asarray(size + 2.0 * np.log1p(np.exp(-size)))

    def first(self, e: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(-np.tanh(0.5 * (y - e) / self.scale) / self.scale)

    def second(self, e: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(2.0 / self.scale**2 * _density((y - e) / self.scale))


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
    errors = _StudentErrors(degrees, scale)
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
    errors = _LogisticErrors(scale)
    return Family(
        name=f"logistic errors, scale {scale:g}",
        value=errors.value,
        first=errors.first,
        second=errors.second,
        # two terms log(1 + exp(u)), each with the bound of the logistic family
        third_bound=2.0 * LOGISTIC.third_bound / scale**3,
        convex=True,
    )


def _check_positive(**numbers: float) -> None:
    for name, number in numbers.items():
        if not 0.0 < number < np.inf:
            raise ConfigurationError(f"{name} must be positive and finite, got {number}")
