"""Schedules: learn never, once, or all along and deploy ever more rarely (Algorithm 4).

The last deploys at iteration t after the exploration with a probability a_t that vanishes, but not
too fast. With (1 + t)^-kappa the surrogate in use is about t^kappa iterations old, a part
t^(kappa - 1) of what has been learnt, and some T^(1 - kappa) / (1 - kappa) have been deployed in T
iterations. At 0.6 that is 6 % at t = 1000 after 38 deployments; at 0.5, 3 % after 61; at 1, all of
it after 7.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Literal, TypeAlias

import attrs
import numpy as np

from surrokit.arguments import Limits, is_number, is_whole, one_of
from surrokit.errors import ConfigurationError
from surrokit.interfaces import Decision, LearnFrom, Moment, check_learn_from

Rate: TypeAlias = Callable[[float], float]
"""From iterations since the exploration ended, at least 1, to a probability."""


@attrs.frozen
class Never:
    """Nothing is learnt: the sampler stays on the potential it was given."""

    learns = False
    """Never."""

    deployment_rate = 0.0
    """Nothing is deployed."""

    def exploration(self, gradients: bool) -> None:
        """Leave the length of the exploration to the explorer."""

    def decide(self, moment: Moment, rng: np.random.Generator) -> Decision:  # noqa: ARG002
        """Return that nothing is to be done."""
        return Decision(observe=False, deploy=False, frozen=True)


@attrs.frozen
class Once:
    """Learn while exploring, deploy once when the exploration ends, then freeze.

    Algorithm 3 of Zhang, Shahbaba and Zhao (2017). The kernel of the kept draws does not depend
    on their past.
    """

    learns = True
    """Always."""

    deployment_rate = 0.0
    """Nothing is deployed after the first fit."""

    def exploration(self, gradients: bool) -> None:
        """Leave the length of the exploration to the explorer."""

    def decide(self, moment: Moment, rng: np.random.Generator) -> Decision:  # noqa: ARG002
        """Return what to do after an iteration."""
        exploring = moment.stage == "exploration"
        frozen = moment.explored or not exploring
        return Decision(observe=exploring, deploy=moment.explored, frozen=frozen)


def _rate(rate: object, kappa: float) -> Rate:
    """Return the function a_t that a setting names, or that it is."""
    if not is_number(kappa) or not 0 < kappa <= 1:
        raise ConfigurationError(
            f"kappa must be a number above 0 and at most 1, got {kappa!r}; else (1 + t)^-kappa "
            "does not vanish, or its sum is finite"
        )
    if rate == "power":
        return lambda t: float((1.0 + t) ** -kappa)
    if rate == "logarithmic":
        return lambda t: 1.0 / (1.0 + math.log1p(t))
    if not callable(rate):
        raise ConfigurationError(
            f"rate must be 'power', 'logarithmic' or a function of the iterations t since the "
            f"exploration ended, got {rate!r}"
        )
    _demand_vanishing(rate)
    return lambda t: _probability(rate, t)


def _demand_vanishing(rate: Rate) -> None:
    """Check that a_t falls to zero, and by Cauchy condensation that its sum is infinite.

    For a falling a_t the sum of a_t is infinite exactly if that of c_k = 2^k a(2^k) is. Where c_k
    behaves as k^-p, doubling k multiplies it by 2^-p, and the sum is infinite for p <= 1.
    """
    probes = (30, 60), (200, 400)  # the square of 2^400 is still inside double precision
    points = sorted([0, *range(60), *(k for pair in probes for k in pair)])
    values = [_probability(rate, 2.0**k) for k in points]
    example = "lambda t: (1 + t) ** -0.6"
    if any(later > earlier for earlier, later in pairwise(values)):
        raise ConfigurationError(
            f"rate rises somewhere; give a function that falls to zero, such as {example}"
        )
    for near, far in probes:
        first, second = _probability(rate, 2.0**near), _probability(rate, 2.0**far)
        seen = f"it is {first:.3g} at t = 2^{near} and {second:.3g} at t = 2^{far}"
        # log2 of the arguments doubles between probes: even 1 / log log t falls by more
        if second > 0.95 * first:
            raise ConfigurationError(
                f"rate does not vanish: {seen}, so that the adaptation would never end. Give one "
                f"that falls to zero, such as {example}"
            )
        fallen = far - near + math.log2(second / first) if second > 0 else -math.inf
        # 1 / (t log t) gives 0.5, and 1 / (t log^2 t), whose sum is finite, 0.25
        if fallen < math.log2(0.45):
            raise ConfigurationError(
                f"rate vanishes too fast for its sum to be infinite: {seen}. Give a slower one, at "
                f"least 1 / t, such as {example}; or pass freeze_after=..."
            )


def _probability(rate: Rate, t: float) -> float:
    try:
        value = rate(t)
    except ZeroDivisionError:  # 1 / (t log t) at t = 1
        return 1.0
    except Exception as error:
        raise ConfigurationError(
            f"rate could not be evaluated at t = {t:g} ({type(error).__name__}: {error}); it must "
            "be a function of one number, a float of at least 1"
        ) from error
    if not is_number(value) or math.isnan(value) or value < 0:
        raise ConfigurationError(
            f"rate must return a number of at least 0 for every t of at least 1, got {value!r} at "
            f"t = {t:g}"
        )
    return min(float(value), 1.0)


_FREEZE_AFTER = Limits(
    "'warmup', a whole number of iterations since the exploration, or None for never",
    lambda value: value is None or value == "warmup" or is_whole(value, 0),
)


@attrs.frozen(kw_only=True)
class Greville:
    """Observe every iteration; deploy at iteration t after the exploration with probability a_t.

    Algorithm 4 of Zhang, Shahbaba and Zhao (2017). The first surrogate is deployed when the
    exploration ends. Whether draws are exact depends on ``freeze_after``: an adaptation that ends
    before they are kept leaves their kernel fixed; one that goes on but vanishes is exact only in
    the limit, and if the adapted kernels stay well behaved (containment; Roberts and Rosenthal
    2007, theorem 5, which the paper cites). The sum of a_t must be infinite, so that learning never
    stops short of what it could reach.

    Parameters
    ----------
    rate
        a_t: ``"power"``, (1 + t)^-kappa; ``"logarithmic"``, 1 / (1 + log(1 + t)); or a function of
        t that falls to zero with an infinite sum. Values above 1 count as 1.
    kappa
        The power, above 0 and at most 1.
    freeze_after
        ``"warmup"`` freezes before the kept draws; a number does so many iterations after the
        exploration; None never does. What was learnt last is deployed at the freeze.
    derivatives
        ``"warmup"`` evaluates proposals of the warm-up with their gradients (or Jacobians), where
        the target offers and the surrogate uses them; ``"never"`` evaluates values alone, as the
        paper does.
    learn_from
        ``"all"`` evaluations after the exploration, ``"accepted"`` proposals, or the ``"states"``
        of the chains (Algorithm 4).

    Raises
    ------
    ConfigurationError
        If a setting is out of range, or the rate does not vanish, or vanishes too fast.
    """

    rate: Literal["power", "logarithmic"] | Rate = "power"
    kappa: float = 0.6
    freeze_after: Literal["warmup"] | int | None = attrs.field(
        default="warmup", validator=_FREEZE_AFTER
    )
    derivatives: Literal["warmup", "never"] = attrs.field(
        default="warmup", validator=one_of("warmup", "never")
    )
    learn_from: LearnFrom = attrs.field(default="all", converter=check_learn_from)
    _probability: Rate = attrs.field(init=False, eq=False, repr=False)

    @_probability.default
    def _checked(self) -> Rate:
        return _rate(self.rate, self.kappa)

    learns = True
    """Always."""

    @property
    def deployment_rate(self) -> float:
        """Deployments expected per iteration, up to the freeze or over a warm-up of 1000."""
        after = self.freeze_after
        length = 1000 if after is None or after == "warmup" else min(1000, after)
        rates = (self._probability(float(t)) for t in range(1, length + 1))
        return sum(rates) / max(length, 1)

    def exploration(self, gradients: bool) -> int:
        """Return how many rows the short exact phase should bring.

        A row with its gradient brings 1 + dim equations, a value one; 500 values are what the paper
        starts from (section 4).
        """
        return 50 if gradients else 500

    def decide(self, moment: Moment, rng: np.random.Generator) -> Decision:
        """Return what to do after an iteration."""
        wants = self.derivatives == "warmup"
        after, since = self.freeze_after, moment.since_explored
        if since <= 0:
            ends = moment.explored
            return Decision(observe=True, deploy=ends, frozen=False, derivatives=ends and wants)
        if after == "warmup":
            frozen, freezes = moment.stage == "sampling", moment.draws_follow
        else:
            frozen, freezes = after is not None and since > after, since == after
        if frozen:
            return Decision(observe=False, deploy=False, frozen=True)
        due = bool(rng.random() < self._probability(float(since)))
        return Decision(
            observe=True,
            deploy=freezes or due,
            frozen=False,
            derivatives=wants and moment.stage == "warmup",
            learn_from=self.learn_from,
        )
