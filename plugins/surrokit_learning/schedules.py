"""Schedules: learn never, once, or all along and deploy ever more rarely (Algorithm 4).

The last deploys at iteration t after the exploration with a probability a_t that vanishes, but not
too fast. With (1 + t)^-kappa the surrogate in use is about t^kappa iterations old, a part
t^(kappa - 1) of what has been learnt, and some T^(1 - kappa) / (1 - kappa) have been deployed in T
iterations. At 0.6 that is 6 % at t = 1000 after 38 deployments; at 0.5, 3 % after 61; at 1, all of
it after 7.
"""

from __future__ import annotations

import math
from typing import Literal

import attrs
import numpy as np

from surrokit.arguments import Limits, is_number, is_whole, one_of
from surrokit.interfaces import Decision, LearnFrom, Moment, check_learn_from


@attrs.frozen
class Never:
    """Nothing is learnt: the sampler stays on the potential it was given."""

    learns, deployment_rate = False, 0.0

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

    learns, deployment_rate = True, 0.0

    def exploration(self, gradients: bool) -> None:
        """Leave the length of the exploration to the explorer."""

    def decide(self, moment: Moment, rng: np.random.Generator) -> Decision:  # noqa: ARG002
        """Return what to do after an iteration."""
        exploring = moment.stage == "exploration"
        frozen = moment.explored or not exploring
        return Decision(observe=exploring, deploy=moment.explored, frozen=frozen)


_FREEZE_AFTER = Limits(
    "'warmup', a whole number of iterations since the exploration, or None for never",
    lambda value: value is None or value == "warmup" or is_whole(value, 0),
)
_KAPPA = Limits(
    "a number above 0 and at most 1, or else rates do not vanish, or their sum is finite",
    lambda value: is_number(value) and 0 < value <= 1,
)


@attrs.frozen(kw_only=True)
class Greville:
    """Observe every iteration; deploy at iteration t after the exploration with probability a_t.

    Algorithm 4 of Zhang, Shahbaba and Zhao (2017). The first surrogate is deployed when the
    exploration ends. Whether draws are exact depends on ``freeze_after``: an adaptation that ends
    before they are kept leaves their kernel fixed; one that goes on but vanishes is exact only in
    the limit, and if the adapted kernels stay well behaved (containment; Roberts and Rosenthal
    2007, theorem 5, which the paper cites). The sum of a_t is infinite, so that learning never
    stops short of what it could reach.

    Parameters
    ----------
    rate
        a_t: ``"power"``, (1 + t)^-kappa, or ``"logarithmic"``, 1 / (1 + log(1 + t)).
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
        If a setting is out of range.
    """

    rate: Literal["power", "logarithmic"] = attrs.field(
        default="power", validator=one_of("power", "logarithmic")
    )
    kappa: float = attrs.field(default=0.6, validator=_KAPPA)
    freeze_after: Literal["warmup"] | int | None = attrs.field(
        default="warmup", validator=_FREEZE_AFTER
    )
    derivatives: Literal["warmup", "never"] = attrs.field(
        default="warmup", validator=one_of("warmup", "never")
    )
    learn_from: LearnFrom = attrs.field(default="all", converter=check_learn_from)
    learns = True

    @property
    def deployment_rate(self) -> float:
        """Deployments expected per iteration, up to the freeze or over a warm-up of 1000."""
        after = self.freeze_after
        length = 1000 if after is None or after == "warmup" else min(1000, after)
        return sum(map(self._probability, range(1, length + 1))) / max(length, 1)

    def _probability(self, t: int) -> float:
        if self.rate == "logarithmic":
            return 1.0 / (1.0 + math.log1p(float(t)))
        return float((1.0 + float(t)) ** -self.kappa)

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
        due = bool(rng.random() < self._probability(since))
        return Decision(
            observe=True,
            deploy=freezes or due,
            frozen=False,
            derivatives=wants and moment.stage == "warmup",
            learn_from=self.learn_from,
        )
