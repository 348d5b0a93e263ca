"""Learning all along, deploying ever more rarely: Algorithm 4."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs
import numpy as np

from surrokit.arguments import Limits, is_whole, one_of
from surrokit.interfaces import Decision, LearnFrom, Moment, check_learn_from
from surrokit_learning.rates import DEFAULT_KAPPA, Rate, check_kappa, check_rate, mean_rate

FreezeAfter: TypeAlias = Literal["warmup"] | int | None
"""``"warmup"``; so many iterations after the exploration; or never."""

HORIZON = 1000
"""Iterations over which deployments are counted when a learner asks how often to expect one: the
default length of a warm-up."""

ROWS_WITH_GRADIENTS = 50
ROWS_OF_VALUES = 500
"""How long the exact phase is unless an explorer is named. A row with its gradient brings 1 + dim
equations, a value one; 500 values are what the paper starts from (section 4)."""


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
    2007, theorem 5, which the paper cites). Its sum must be infinite, so that learning never
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
        the target offers and the surrogate uses them; ``"never"`` pays for values alone, as the
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
    kappa: float = attrs.field(default=DEFAULT_KAPPA, converter=check_kappa)
    freeze_after: FreezeAfter = attrs.field(default="warmup", validator=_FREEZE_AFTER)
    derivatives: Literal["warmup", "never"] = attrs.field(
        default="warmup", validator=one_of("warmup", "never")
    )
    learn_from: LearnFrom = attrs.field(default="all", converter=check_learn_from)
    _probability: Rate = attrs.field(init=False, eq=False, repr=False)

    @_probability.default
    def _checked(self) -> Rate:
        return check_rate(self.rate, self.kappa)

    @property
    def learns(self) -> bool:
        """Always."""
        return True

    @property
    def deployment_rate(self) -> float:
        """Deployments expected per iteration, up to the freeze or over a warm-up of 1000."""
        length = HORIZON
        if self.freeze_after is not None and self.freeze_after != "warmup":
            length = min(length, self.freeze_after)
        return mean_rate(self._probability, length)

    def exploration(self, gradients: bool) -> int:
        """Return how many rows the short exact phase should bring."""
        return ROWS_WITH_GRADIENTS if gradients else ROWS_OF_VALUES

    def decide(self, moment: Moment, rng: np.random.Generator) -> Decision:
        """Return what to do after an iteration."""
        if moment.since_explored <= 0:
            return Decision(
                observe=True,
                deploy=moment.explored,
                frozen=False,
                derivatives=moment.explored and self.derivatives == "warmup",
            )
        if self._frozen(moment):
            return Decision(observe=False, deploy=False, frozen=True)
        due = bool(rng.random() < self._probability(float(moment.since_explored)))
        return Decision(
            observe=True,
            deploy=self._freezes(moment) or due,
            frozen=False,
            derivatives=self.derivatives == "warmup" and moment.stage == "warmup",
            learn_from=self.learn_from,
        )

    def _frozen(self, moment: Moment) -> bool:
        if self.freeze_after is None:
            return False
        if self.freeze_after == "warmup":
            return moment.stage == "sampling"
        return moment.since_explored > self.freeze_after

    def _freezes(self, moment: Moment) -> bool:
        if self.freeze_after == "warmup":
            return moment.draws_follow
        return moment.since_explored == self.freeze_after
