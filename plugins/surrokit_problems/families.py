"""Families of terms for generalised linear models: functions of one linear predictor.

To give one's own, make a :class:`Family` of three functions and a bound; the posterior is right if
the functions are each other's derivatives and the bound holds. :func:`family` makes the ones that
have names. None of theirs is a difference of numbers that are nearly equal, so all keep their
digits at every predictor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Literal, TypeAlias

import attrs
import numpy as np
from scipy.special import erfcx, expit, gammaln, log_ndtr

from surrokit.errors import ConfigurationError
from surrokit.potentials import USUAL_ORDER
from surrokit.predictive.families import ResponseFamily, response_family
from surrokit.types import FloatArray

Responses: TypeAlias = Literal["real", "binary", "count", "positive", "time"]
"""Any numbers; zeros and ones; whole numbers from 0; positive ones; and times to an event.

Times are positive where the event came, and minus the time of censoring where it was to come.
"""

Function: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]
"""Of linear predictors and responses, entry by entry with broadcasting."""

Remainder: TypeAlias = Callable[..., FloatArray]
"""Of predictors e, responses and steps t: f(e + t) less its expansion.

To second order; of a family that has ``third``, to the ``order`` of that keyword, 2 or 3.
"""

Bound: TypeAlias = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]
"""Of predictors e, responses and reaches s: the largest absolute derivative from e - s to e + s."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Family:
    """The terms f(e) = -log p(response | linear predictor e) of a generalised linear model.

    Functions take predictors and responses as arrays that broadcast, and return an array of the
    broadcast shape; they must be defined, finite or ``inf``, for every finite predictor. Give
    functions of a module's own, rather than lambdas, where a potential shall travel to other
    processes.

    Parameters
    ----------
    value
        f, in nats; any constant, which may be a function of the response, may be left out.
    first, second
        f' and f'', derivatives in the predictor.
    third_bound
        B with abs(f''') <= B at every predictor, for every response; or a function of predictors
        e, responses and reaches s, arrays of one shape, that gives B for predictors from e - s to
        e + s. The subsampled correction relies on it: draws are biased, without any sign of it, if
        it is too small, and more rows are touched than need be if it is too large.
    local
        Whether bounds depend on the reach, or there is none at every predictor: ``third_bound`` is
        then a function of it, and never given an infinite one.
    convex
        Whether f'' > 0 everywhere.
    canonical
        Whether f'' does not depend on the response: the Hessian is then the Fisher information.
    responses
        What responses can be; others are rejected.
    remainder
        The error of the expansion, where f is so large that rounding it would show in a difference
        of values, which is taken otherwise. With ``third`` it is given an ``order`` too, of 2 or 3.
    third
        f''', where it is known: expansions may then be of third order.
    fourth_bound
        As ``third_bound``, of fourth derivatives; it goes with ``third``, and as much rests on it.
    constant
        What ``value`` leaves out of minus the log density or probability, a function of responses;
        it counts in the evidence alone. None where that is not known.
    predicts
        Means and draws of responses, for predictions of new rows; None for no predictions.

    Raises
    ------
    ConfigurationError
        If a bound is negative or not finite, a family without a bound everywhere gives a number,
        or one of ``third`` and ``fourth_bound`` is missing.
    """

    name: str
    value: Function
    first: Function
    second: Function
    third_bound: float | Bound
    local: bool = False
    convex: bool = False
    canonical: bool = False
    responses: Responses = "real"
    remainder: Remainder | None = None
    third: Function | None = None
    fourth_bound: float | Bound | None = None
    constant: Callable[[FloatArray], FloatArray] | None = None
    predicts: ResponseFamily | None = None

    n_predictors: ClassVar[int] = 1
    """Of a row."""

    several: ClassVar[bool] = False
    """Whether arrays of predictors have an axis for those of a row."""

    def __attrs_post_init__(self) -> None:
        if (self.third is None) != (self.fourth_bound is None):
            raise ConfigurationError(
                f"third and fourth_bound of the family {self.name!r} go together; give both, or "
                "neither"
            )
        for which, bound in (("third", self.third_bound), ("fourth", self.fourth_bound)):
            if bound is None or callable(bound):
                continue
            if not 0.0 <= bound < np.inf:
                raise ConfigurationError(
                    f"{which}_bound of the family {self.name!r} must not be negative, and be "
                    f"finite, got {bound}; give the largest absolute {which} derivative"
                )
            if self.local:
                raise ConfigurationError(
                    f"{which}_bound of the family {self.name!r}, which is local, must be a "
                    f"function of predictors, responses and reaches, got {bound}; leave out "
                    "local=True if the number holds at every predictor"
                )

    def __repr__(self) -> str:
        return f"Family({self.name!r})"

    def bounds(
        self, predictor: FloatArray, response: FloatArray, reach: FloatArray, order: int
    ) -> FloatArray:
        """Return bounds of the derivative after an order, from e - s to e + s, all shape (n,)."""
        bound = self.third_bound if order == USUAL_ORDER else self.fourth_bound
        if callable(bound):
            return np.asarray(bound(predictor, response, reach), dtype=np.float64)
        assert bound is not None
        return np.full(len(predictor), bound)

    def remaining(
        self, e: FloatArray, y: FloatArray, step: FloatArray, order: int = USUAL_ORDER
    ) -> FloatArray:
        """Return what expansions at e leave out at e + t, of the shape of the steps t.

        To second order that is f(e + t) - f(e) - f'(e) t - f''(e) t^2 / 2; with an order of 3,
        which needs ``third``, the term of third order is taken off too.
        """
        if self.remainder is not None:
            orders = {} if self.third is None else {"order": order}
            return self.remainder(e, y, step, **orders)
        slopes = self.first(e, y) + 0.5 * step * self.second(e, y)
        if order != USUAL_ORDER:
            assert self.third is not None
            slopes += self.third(e, y) / 6.0 * step * step
        return np.asarray(self.value(e + step, y) - self.value(e, y) - step * slopes)

    def check_responses(self, y: FloatArray) -> None:
        """Raise a ConfigurationError unless all responses (n_rows,) are of the family's kind."""
        fine, expected = {
            "real": (np.ones(len(y), dtype=bool), ""),
            "binary": (
                np.isin(y, (0.0, 1.0)),
                "zeros and ones, got {}; recode the two classes as 0 and 1",
            ),
            "count": (
                (y >= 0.0) & (y == np.floor(y)),
                "whole numbers of at least 0, got {}; give counts",
            ),
            "positive": (
                y > 0.0,
                "positive, got {}; drop zeros, or shift them, knowing what that means",
            ),
            "time": (
                y != 0.0,
                "times other than 0, got {}; give the time of each event, and minus the time where "
                "there was none until then",
            ),
        }[self.responses]
        if not fine.all():
            row = int(np.flatnonzero(~fine)[0])
            raise ConfigurationError(
                f"response must be {expected.format(f'{y[row]:g} in row {row}')}"
            )


# --- terms of families with names; the fields of a Family stand as attributes ---


class _Terms:
    convex: ClassVar[bool] = True
    canonical: Any = False
    local: ClassVar[bool] = False
    responses: Any = "real"
    third_bound: Any
    remainder: ClassVar[Any] = None
    third: ClassVar[Any] = None
    fourth_bound: ClassVar[Any] = None

    def constant(self, y: FloatArray) -> FloatArray:
        return np.zeros_like(y)


_LARGE = 700.0  # exp of which is still a number

THIRD_BOUND = 1.0 / (6.0 * np.sqrt(3.0))
"""Of logistic terms, p (1 - p) (1 - 2 p): largest where its derivative 1 - 6 p + 6 p^2 in the
predictor is 0, at p = 1/2 - 1/sqrt(12), and there it is (1/6) (2 / sqrt(12))."""

FOURTH_BOUND = 0.125
"""With v = p (1 - p) fourth derivatives are v (1 - 6 v), from 1/24 at v = 1/12 to -1/8 at 1/4."""

_THIRD_PEAK, _FOURTH_PEAK = (float(np.log(a + np.sqrt(a * a - 1.0))) for a in (2.0, 5.0))
"""Predictors above 0 where they are 1/(6 sqrt(3)) and 1/24. Absolute values only grow smaller on
both sides of these, and from 0 on, until they are 0."""


def _softplus(u: FloatArray) -> FloatArray:
    return np.asarray(np.log1p(np.exp(-np.abs(u))) + np.maximum(u, 0.0))


def _density(u: FloatArray) -> FloatArray:
    """Return p (1 - p) with p = 1 / (1 + exp(-u)), positive as far out as numbers go."""
    q = np.exp(-np.abs(u))
    return np.asarray(q / np.square(1.0 + q))


def _skew(u: FloatArray) -> FloatArray:
    """Return p (1 - p) (1 - 2 p), and 1 - 2 p = -tanh(u / 2)."""
    return np.asarray(-_density(u) * np.tanh(0.5 * u))


def _bound_third(u: FloatArray, reach: FloatArray) -> FloatArray:
    """Return the largest third derivative of logistic terms from u - s to u + s, as it is."""
    size = np.abs(u)
    q = np.exp(-np.clip(_THIRD_PEAK, size - reach, size + reach))
    return np.asarray(q * (1.0 - q) / (1.0 + q) ** 3)


def _bound_fourth(u: FloatArray, reach: FloatArray) -> FloatArray:
    """Return the largest absolute fourth derivative of logistic terms from u - s to u + s."""
    size = np.abs(u)
    low = np.maximum(size - reach, 0.0)
    ends = (_density(each) for each in (low, np.clip(_FOURTH_PEAK, low, size + reach)))
    first, second = (np.abs(v * (1.0 - 6.0 * v)) for v in ends)
    return np.asarray(np.maximum(first, second))


def _logistic_remainder(e: FloatArray, t: FloatArray, order: int = 2) -> FloatArray:
    """Return R(e, t) = R(-e, -t) of log(1 + exp(e)): for e <= 0 growth is not lost beside it."""
    level, step = np.copysign(e, -1.0), np.copysign(1.0, -e) * t
    p = expit(level)
    expansion = p * step * (1.0 + (0.5 - 0.5 * p) * step)
    if order == 3:
        expansion += _skew(level) / 6.0 * step * step * step
    if np.max(step, initial=0.0) < _LARGE:
        return np.asarray(np.log1p(p * np.expm1(step)) - expansion)  # p is at most a half
    return np.asarray(_softplus(level + step) - _softplus(level) - expansion)


@attrs.frozen
class _Softplus(_Terms):
    """a log(1 + exp(-u)) + b log(1 + exp(u)), which is a + b logistic terms and a linear one.

    Zeros and ones have a = y, b = 1 - y and u = e, counts of a size r a = y, b = r and
    u = e - log r, and logistic errors a = b = 1 and u = (e - y) / scale; their standard deviation
    is 1.81 scales.
    """

    responses: str
    scale: float = 1.0
    size: float = 1.0
    local = True

    @property
    def canonical(self) -> bool:
        return self.responses == "binary"

    def _parts(self, e: FloatArray, y: FloatArray) -> tuple[Any, Any, FloatArray]:
        if self.responses == "binary":
            return y, 1.0 - y, e
        if self.responses == "count":
            return y, self.size, np.asarray(e - np.log(self.size))
        return 1.0, np.ones(np.shape(y)), np.asarray((e - y) / self.scale)

    def constant(self, y: FloatArray) -> FloatArray:
        if self.responses == "count":
            return np.asarray(gammaln(y + 1.0) + gammaln(self.size) - gammaln(y + self.size))
        return np.full(np.shape(y), np.log(self.scale))

    def value(self, e: FloatArray, y: FloatArray) -> FloatArray:
        a, b, u = self._parts(e, y)
        far = a * np.maximum(-u, 0.0) + b * np.maximum(u, 0.0)
        return np.asarray((a + b) * np.log1p(np.exp(-np.abs(u))) + far)

    def first(self, e: FloatArray, y: FloatArray) -> FloatArray:
        a, b, u = self._parts(e, y)
        return np.asarray((b * expit(u) - a * expit(-u)) / self.scale)

    def second(self, e: FloatArray, y: FloatArray) -> FloatArray:
        a, b, u = self._parts(e, y)
        return np.asarray((a + b) * _density(u) / self.scale**2)

    def third(self, e: FloatArray, y: FloatArray) -> FloatArray:
        a, b, u = self._parts(e, y)
        return np.asarray((a + b) * _skew(u) / self.scale**3)

    def third_bound(self, e: FloatArray, y: FloatArray, reach: FloatArray) -> FloatArray:
        a, b, u = self._parts(e, y)
        return np.asarray((a + b) * _bound_third(u, reach / self.scale) / self.scale**3)

    def fourth_bound(self, e: FloatArray, y: FloatArray, reach: FloatArray) -> FloatArray:
        a, b, u = self._parts(e, y)
        return np.asarray((a + b) * _bound_fourth(u, reach / self.scale) / self.scale**4)

    def remainder(self, e: FloatArray, y: FloatArray, t: FloatArray, order: int = 2) -> FloatArray:
        a, b, u = self._parts(e, y)
        return np.asarray((a + b) * _logistic_remainder(u, t / self.scale, order))


@attrs.frozen
class _Probit(_Terms):
    """-log Phi(x) with x = e for y = 1 and x = -e for y = 0.

    With m = phi / Phi the derivatives in x are -m, m (m + x) and -m ((m + x) (2 m + x) - 1).
    """

    responses = "binary"
    # -f''' is the third central moment of a standard normal cut off below -x. It is positive,
    # vanishes far out on both sides (where nothing is cut off, and where what is left has no
    # width), and is largest where x = 1.0024 and it is 0.2957188...; by Brent's method
    third_bound = 0.29572

    def value(self, e: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(-log_ndtr((2.0 * y - 1.0) * e))

    def first(self, e: FloatArray, y: FloatArray) -> FloatArray:
        side = 2.0 * y - 1.0
        return np.asarray(-side * _mills(side * e))

    def second(self, e: FloatArray, y: FloatArray) -> FloatArray:
        far = -100.0  # below it is an asymptotic series
        x = np.asarray((2.0 * y - 1.0) * e)
        m = _mills(np.maximum(x, far))
        inverse = np.square(1.0 / np.minimum(x, far))
        series = 1.0 - inverse * (1.0 - inverse * (6.0 - 50.0 * inverse))
        return np.where(x < far, series, m * (m + np.maximum(x, far)))


def _mills(x: FloatArray) -> FloatArray:
    """Return phi / Phi; erfcx keeps its digits far out on both sides."""
    with np.errstate(over="ignore"):
        return np.asarray(np.sqrt(2.0 / np.pi) / erfcx(-x / np.sqrt(2.0)))


@attrs.frozen
class _Gaussian(_Terms):
    """u^2 / 2 with u = (y - e) / scale: no expansion leaves anything out."""

    scale: float
    canonical = True
    third_bound = fourth_bound = 0.0

    def constant(self, y: FloatArray) -> FloatArray:
        return np.full(np.shape(y), np.log(self.scale) + 0.5 * np.log(2.0 * np.pi))

    def value(self, e: FloatArray, y: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.asarray(0.5 * np.square((y - e) / self.scale))

    def first(self, e: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray((e - y) / self.scale**2)

    def second(self, e: FloatArray, y: FloatArray) -> FloatArray:
        return self.third(e, y) + 1.0 / self.scale**2

    def third(self, e: FloatArray, y: FloatArray) -> FloatArray:
        return np.zeros(np.broadcast_shapes(np.shape(e), np.shape(y)))

    def remainder(self, _e: FloatArray, _y: FloatArray, t: FloatArray, **_: int) -> FloatArray:
        return np.zeros(np.shape(t))


@attrs.frozen
class _Student(_Terms):
    """(nu + 1) / 2 log(1 + u^2 / nu), with nu the degrees of freedom and u = (y - e) / scale.

    It is not convex: f'' < 0 where an error is more than sqrt(nu) scales, so that a posterior may
    have several modes. With u = sqrt(nu) tan(a), f''' is 2 (nu + 1) nu^(-3/2) sin(3 a) cos(a)^3 /
    scale^3, up to its sign; the derivative of sin(3 a) cos(a)^3 is 3 cos(a)^2 cos(4 a), so the
    maximum is where a = pi / 8: sin(3 pi / 8) cos(pi / 8)^3 = cos(pi / 8)^4 = (3 + 2 sqrt(2)) / 8.
    """

    scale: float
    degrees: float
    convex = False

    @property
    def third_bound(self) -> float:
        bound = 2.0 * (self.degrees + 1.0) * self.degrees**-1.5 * (3.0 + 2.0 * np.sqrt(2.0)) / 8.0
        return float(bound / self.scale**3)

    def constant(self, y: FloatArray) -> FloatArray:
        half = 0.5 * self.degrees
        beta = gammaln(half) - gammaln(half + 0.5) + 0.5 * np.log(self.degrees * np.pi)
        return np.full(np.shape(y), beta + np.log(self.scale))

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
class _Exponential(_Terms):
    """c(y) exp(s e) - b(y) e. All derivatives from the second on are, up to sign, c exp(s e).

    Counts have c = 1, b = y and s = 1, gamma responses of shape k c = k y, b = -k and s = -1. A
    time to an event with cumulated hazard |y|^k exp(e) has c = |y|^k, s = 1, and b = 1 where the
    event came, else 0.
    """

    responses: str
    shape: float = 1.0
    local = True

    @property
    def canonical(self) -> bool:
        return self.responses == "count"

    @property
    def _sign(self) -> float:
        return -1.0 if self.responses == "positive" else 1.0

    def _size(self, y: FloatArray) -> FloatArray:
        if self.responses == "count":
            return np.ones(np.shape(y))
        return np.asarray(self.shape * y if self.responses == "positive" else abs(y) ** self.shape)

    def _slope(self, y: FloatArray) -> FloatArray:
        if self.responses == "count":
            return y
        if self.responses == "positive":
            return np.full(np.shape(y), -self.shape)
        return np.asarray(np.asarray(y) > 0.0, dtype=np.float64)

    def constant(self, y: FloatArray) -> FloatArray:
        k = self.shape
        if self.responses == "count":
            return np.asarray(gammaln(y + 1.0))
        if self.responses == "positive":
            return np.asarray(gammaln(k) - k * np.log(k) - (k - 1.0) * np.log(y))
        return np.asarray(-self._slope(y) * (np.log(k) + (k - 1.0) * np.log(np.abs(y))))

    def value(self, e: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(self.second(e, y) - self._slope(y) * e)

    def first(self, e: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(self._sign * self.second(e, y) - self._slope(y))

    def second(self, e: FloatArray, y: FloatArray) -> FloatArray:
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(self._size(y) * np.exp(self._sign * e))

    def third(self, e: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(self._sign * self.second(e, y))

    def third_bound(self, e: FloatArray, y: FloatArray, reach: FloatArray) -> FloatArray:
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(self._size(y) * np.exp(self._sign * e + reach))

    fourth_bound = third_bound

    def remainder(self, e: FloatArray, y: FloatArray, t: FloatArray, order: int = 2) -> FloatArray:
        u, base = self._sign * t, self.second(e, y)
        left_out = u * (1.0 + u * (0.5 if order == 2 else 0.5 + u / 6.0))
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            found = base * (np.expm1(u) - left_out)
            # as two exponentials: that at the centre may underflow where the other does not
            apart = self._size(y) * np.exp(self._sign * e + u) - base * (1.0 + left_out)
        return np.where(np.abs(u) <= 30.0, found, apart)


TERMS: Mapping[str, Callable[..., Any]] = {
    "gaussian": _Gaussian,
    "student": _Student,
    "logistic-errors": partial(_Softplus, "real"),
    "logistic": partial(_Softplus, "binary"),
    "probit": _Probit,
    "poisson": partial(_Exponential, "count"),
    "negative-binomial": partial(_Softplus, "count"),
    "gamma": partial(_Exponential, "positive"),
    "exponential": partial(_Exponential, "time"),
    "weibull": partial(_Exponential, "time"),
}
"""Of families with names, by their known numbers."""


def family(name: str, **settings: float) -> Family:
    """Return a family by its name and known numbers, which are positive.

    Those are ``scale`` of ``"gaussian"``, ``"logistic-errors"`` and ``"student"``, which has
    ``degrees`` too; ``size`` of ``"negative-binomial"``; and ``shape`` of ``"gamma"`` and
    ``"weibull"``. ``"logistic"``, ``"probit"``, ``"poisson"`` and ``"exponential"`` have none.

    Raises
    ------
    ConfigurationError
        If there is no such family or setting, or one is not positive.
    """
    predicts = response_family(name, settings)
    for key, number in predicts.settings.items():
        if not 0.0 < number < np.inf:
            raise ConfigurationError(f"{key} must be positive and finite, got {number}")
    terms = TERMS[name](**predicts.settings)
    shown = (f"{key} {number:g}" for key, number in predicts.settings.items())
    same = (field.name for field in attrs.fields(Family) if field.name not in ("name", "predicts"))
    return Family(
        name=", ".join([name, *shown]),
        predicts=predicts,
        **{each: getattr(terms, each) for each in same},
    )


LOGISTIC = family("logistic")
"""Responses 0 and 1 with probability 1 / (1 + exp(-e)) of 1."""
