"""Families of terms for generalised linear models: functions of one linear predictor.

To give one's own, make a :class:`Family` of three functions and a bound; the posterior is right if
the functions are each other's derivatives and the bound holds.

Remainders of expansions keep nearly all digits however short the step is. Written as a difference,
f(x + t) - f(x) - f'(x) t - f''(x) t^2 / 2, a remainder loses them. Its integral form does not:

    R(x, t) = t^3 / 2 * the integral over s from 0 to 1 of (1 - s)^2 f'''(x + s t).

Where the next singularity of f is far away for the step, a few nodes of the Gauss-Jacobi rule for
the weight (1 - s)^2 integrate to the last digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Literal, TypeAlias

import attrs
import numpy as np
from scipy.special import roots_jacobi

from surrokit.errors import ConfigurationError
from surrokit.potentials import USUAL_ORDER
from surrokit.predictive.families import ResponseFamily
from surrokit.types import BoolArray, FloatArray

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
"""Of predictors e, responses, steps t (and what was prepared): f(e + t) less its expansion.

To second order; of a family that has ``third``, to the ``order`` of that keyword, 2 or 3.
"""

Preparation: TypeAlias = Callable[[FloatArray, FloatArray], tuple[FloatArray, ...]]
"""Of linear predictors and responses: more arrays of their shape."""

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
    name
        For messages.
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
        The error of the expansion, where it is known without cancellation; else
        it is made of the functions above, with the rounding errors of these: some 1e-16 times f,
        however small the remainder is. With ``third`` it is given an ``order`` too, of 2 or 3.
    third
        f''', where it is known: expansions may then be of third order.
    fourth_bound
        As ``third_bound``, of fourth derivatives; it goes with ``third``, and as much rests on it.
    constant
        What ``value`` leaves out of minus the log density or probability, a function of responses;
        it counts in the evidence alone. None where that is not known.
    prepare
        Makes of e and y what remainders need besides, once for all steps from there.
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
    prepare: Preparation | None = None
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
        e, y, *more = prepared
        if self.remainder is not None:
            orders = {} if self.third is None else {"order": order}
            return self.remainder(e, y, step, *more, **orders)
        slopes = self.first(e, y) + 0.5 * step * self.second(e, y)
        if order != USUAL_ORDER:
            assert self.third is not None
            slopes += self.third(e, y) / 6.0 * step * step
        return np.asarray(self.value(e + step, y) - self.value(e, y) - step * slopes)

    def check_responses(self, response: FloatArray) -> None:
        """Raise unless all responses, finite numbers of shape (n_rows,), are of the family's kind.

        Raises
        ------
        ConfigurationError
            If one is not.
        """
        y = response
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
                f"predictors, responses and reaches, got {bound}; give that function, or leave out "
                "local=True if the number holds at every predictor"
            )


# Largest step, by the radius of convergence, and how many nodes do there. Relatively to R, x dR/dx
# and t dR/dt the error is below 1e-13 with each, for logarithms (whose singularity is the nearest
# that can be, at the radius) and for the families here.
_NODES = ((0.016, 3), (0.06, 4), (0.12, 5), (0.24, 6), (0.36, 8), (0.48, 10))
_LONGEST = _NODES[-1][0]
_DIGITS = 1e-17


def second_order_remainders(
    steps: FloatArray,
    sizes: FloatArray,
    third: Callable[[FloatArray], FloatArray],
    difference: Callable[[BoolArray], FloatArray],
) -> FloatArray:
    """Return R, of the shape of the steps.

    Parameters
    ----------
    steps : ndarray
        t.
    sizes : ndarray
        abs(t) in units of the distance from x to the nearest singularity of f in the complex plane,
        or of something shorter; of the same shape.
    third
        f''' at x and moves of shape (n, *shape of the steps), which it may overwrite.
    difference
        R as a difference for a mask of steps: where they are longer than half of that distance.
    """
    largest = sizes.max(initial=0.0)
    if largest <= _LONGEST:
        return _integral(steps, third, largest)
    far = sizes > _LONGEST  # not where sizes are NaN
    found = _integral(np.where(far, 0.0, steps), third, sizes[~far].max(initial=0.0))
    found[far] = difference(far)
    return found


def _integral(
    steps: FloatArray, third: Callable[[FloatArray], FloatArray], largest: float
) -> FloatArray:
    n = next((n for size, n in _NODES if largest <= size), _NODES[-1][1])
    nodes, weights = unit_rule(n, 2, 0)
    total = (weights @ third(np.multiply.outer(nodes, steps)).reshape(n, -1)).reshape(steps.shape)
    total *= 0.5
    for _ in range(3):
        total *= steps
    return np.asarray(total)


@cache
def unit_rule(n: int, down: int, up: int) -> tuple[FloatArray, FloatArray]:
    """Return n nodes and weights, shape (n,), for (1 - s)^down s^up on the unit interval."""
    nodes, weights = roots_jacobi(n, down, up)  # for (1 - u)^down (1 + u)^up from -1 to 1
    return 0.5 * (1.0 + nodes), weights / 2.0 ** (down + up + 1)


def exponential_remainder(u: FloatArray, order: int, largest: float) -> FloatArray:
    """Return exp(u) less its terms up to u^order, 2 or 3.

    ``largest`` is the largest abs(u), and best below about 1.
    """
    last = order + 2
    while largest ** (last - order - 1) * math.factorial(order + 1) > _DIGITS * math.factorial(
        last
    ):
        last += 1
    total = np.full(u.shape, 1.0 / math.factorial(last))
    for k in range(last - 1, order, -1):
        total *= u
        total += 1.0 / math.factorial(k)
    for _ in range(order + 1):
        total *= u
    return total
