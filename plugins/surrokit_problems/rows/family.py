"""Families of terms for generalised linear models: functions of one linear predictor.

To give one's own, make a :class:`Family` of three functions and a bound; the posterior is right if
the functions are each other's derivatives and the bound holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import attrs
import numpy as np

from surrokit.contracts.rows import USUAL_ORDER
from surrokit.errors import ConfigurationError
from surrokit.types import FloatArray
from surrokit_problems.rows import logistic_terms, probit_terms
from surrokit_problems.rows.error_terms import LogisticErrors, StudentErrors

Function: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]
"""Of linear predictors and responses, entry by entry with broadcasting."""

Remainder: TypeAlias = Callable[..., FloatArray]
"""Of predictors e, responses, steps t (and what was prepared): f(e + t) less its expansion."""

Preparation: TypeAlias = Callable[[FloatArray, FloatArray], tuple[FloatArray, ...]]
"""Of linear predictors and responses: more arrays of their shape."""


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
        it is made of the functions above, with the rounding errors of these: some 1e-16 times f,
        however small the remainder is.
    third
        f''', where it is to be had: expansions may then be of third order.
    fourth_bound
        The largest absolute fourth derivative, at every predictor and for every response; it goes
        with ``third``, and as much rests on it as on ``third_bound``.
    third_order_remainder
        As ``remainder``, of the third-order expansion.
    prepare
        Makes of e and y what remainders need besides, once for all steps from there.

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
    third_order_remainder: Remainder | None = None
    prepare: Preparation | None = None

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

    def prepare_rows(self, predictor: FloatArray, response: FloatArray) -> tuple[FloatArray, ...]:
        """Return what :meth:`remaining_of` needs of each row: arrays of the shape of these."""
        more = () if self.prepare is None else self.prepare(predictor, response)
        return predictor, response, *more

    def remaining_of(
        self, prepared: Sequence[FloatArray], step: FloatArray, order: int = USUAL_ORDER
    ) -> FloatArray:
        """Return what expansions at e leave out at e + t, of the shape of the steps t.

        To second order that is f(e + t) - f(e) - f'(e) t - f''(e) t^2 / 2; with an order of 3,
        which needs ``third``, the term of third order is taken off too. ``prepared`` is what
        :meth:`prepare_rows` returns, or some rows of it.
        """
        if order == USUAL_ORDER:
            return self._second_order(prepared, step)
        if self.third_order_remainder is not None:
            return self.third_order_remainder(*prepared[:2], step, *prepared[2:])
        assert self.third is not None
        cubic = self.third(*prepared[:2]) / 6.0 * step * step * step
        return np.asarray(self._second_order(prepared, step) - cubic)

    def _second_order(self, prepared: Sequence[FloatArray], t: FloatArray) -> FloatArray:
        e, y, *more = prepared
        if self.remainder is not None:
            return self.remainder(e, y, t, *more)
        change = self.value(e + t, y) - self.value(e, y)
        return np.asarray(change - t * (self.first(e, y) + 0.5 * t * self.second(e, y)))


LOGISTIC = Family(
    name="logistic",
    value=logistic_terms.value,
    first=logistic_terms.first,
    second=logistic_terms.second,
    # f''' = p (1 - p) (1 - 2 p), largest where its derivative 1 - 6 p + 6 p^2 vanishes:
    # p = 1/2 - 1/sqrt(12), and there f''' = (1/6) (2 / sqrt(12)) = 1 / (6 sqrt(3))
    third_bound=1.0 / (6.0 * np.sqrt(3.0)),
    convex=True,
    binary=True,
    remainder=logistic_terms.remainder,
    third_order_remainder=partial(logistic_terms.remainder, order=3),
    prepare=logistic_terms.slope_and_bend,
    third=logistic_terms.third,
    # with v = p (1 - p): f'''' = v (1 - 6 v), from 1/24 at v = 1/12 to -1/8 at v = 1/4
    fourth_bound=0.125,
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
    binary=True,
    remainder=probit_terms.remainder,
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
        third_bound=2.0 * LOGISTIC.third_bound / scale**3,
        convex=True,
        remainder=errors.remainder,
    )


def _check_positive(**numbers: float) -> None:
    for name, number in numbers.items():
        if not 0.0 < number < np.inf:
            raise ConfigurationError(f"{name} must be positive and finite, got {number}")
