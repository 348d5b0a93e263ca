"""Families of terms for generalised linear models: functions of one linear predictor.

To give one's own, make a :class:`Family` of three functions and a bound; the posterior is right if
the functions are each other's derivatives and the bound holds. :func:`family` makes the ones that
have names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import attrs
import numpy as np

from surrokit.errors import ConfigurationError
from surrokit.potentials import USUAL_ORDER
from surrokit.predictive.families import ResponseFamily, response_family
from surrokit.types import FloatArray
from surrokit_problems.family_terms import TERMS

Responses: TypeAlias = Literal["real", "binary", "count", "positive", "time"]
"""Any numbers; zeros and ones; whole numbers from 0; positive ones; and times to an event.

Times are positive where the event came, and negative where it was still to come: minus the time of
censoring.
"""

_EXPECTED: dict[Responses, tuple[str, str]] = {
    "binary": ("zeros and ones", "recode the two classes as 0 and 1"),
    "count": ("whole numbers of at least 0", "give counts"),
    "positive": ("positive", "drop zeros, or shift them, knowing what that means"),
    "time": (
        "times other than 0",
        "give the time of each event, and minus the time where there was none until then",
    ),
}

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
        Whether abs(f''') has no bound at every predictor: then ``third_bound`` is a function of the
        reach, and never given an infinite one.
    convex
        Whether f'' > 0 everywhere.
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
    responses: Responses = "real"
    remainder: Remainder | None = None
    third: Function | None = None
    fourth_bound: float | Bound | None = None
    constant: Callable[[FloatArray], FloatArray] | None = None
    predicts: ResponseFamily | None = None

    def __attrs_post_init__(self) -> None:
        self._check_bound("third", self.third_bound)
        if (self.third is None) != (self.fourth_bound is None):
            raise ConfigurationError(
                f"third and fourth_bound of the family {self.name!r} go together; give both, or "
                "neither"
            )
        if self.fourth_bound is not None:
            self._check_bound("fourth", self.fourth_bound)

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
        """Raise unless all responses, finite numbers of shape (n_rows,), are of the family's kind.

        Raises
        ------
        ConfigurationError
            If one is not.
        """
        fine = {
            "real": np.ones(len(y), dtype=bool),
            "binary": np.isin(y, (0.0, 1.0)),
            "count": (y >= 0.0) & (y == np.floor(y)),
            "positive": y > 0.0,
            "time": y != 0.0,
        }[self.responses]
        if not fine.all():
            expected, remedy = _EXPECTED[self.responses]
            row = int(np.flatnonzero(~fine)[0])
            raise ConfigurationError(
                f"response must be {expected}, got {y[row]:g} in row {row}; {remedy}"
            )

    def _check_bound(self, which: str, bound: float | Bound) -> None:
        if callable(bound):
            return
        if not 0.0 <= bound < np.inf:
            raise ConfigurationError(
                f"{which}_bound of the family {self.name!r} must not be negative, and be finite, "
                f"got {bound}; give the largest absolute {which} derivative"
            )
        if self.local:
            raise ConfigurationError(
                f"{which}_bound of the family {self.name!r}, which is local, must be a function of "
                f"predictors, responses and reaches, got {bound}; leave out local=True if the "
                "number holds at every predictor"
            )


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
    return Family(
        name=", ".join([name, *shown]),
        value=terms.value,
        first=terms.first,
        second=terms.second,
        constant=terms.constant,
        predicts=predicts,
        **terms.more,
    )


LOGISTIC = family("logistic")
"""Responses 0 and 1 with probability 1 / (1 + exp(-e)) of 1."""
