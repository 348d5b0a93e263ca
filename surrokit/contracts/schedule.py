"""Schedules: when a run learns, and from what."""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias, get_args

import attrs
import numpy as np

from surrokit.errors import ConfigurationError

LearnFrom: TypeAlias = Literal["all", "accepted", "states"]
"""Which evaluations to learn from: ``all``; ``accepted`` proposals (Algorithm 3 of the paper); or
``states`` of the chains after each iteration, with repeats (Algorithm 4, and the authors' code)."""


def check_learn_from(value: str) -> LearnFrom:
    """Return a valid choice.

    Raises
    ------
    ConfigurationError
        If the choice is invalid.
    """
    if value not in get_args(LearnFrom):
        raise ConfigurationError(
            f"learn_from must be one of {', '.join(get_args(LearnFrom))}, got {value!r}"
        )
    return value  # type: ignore[return-value]


Stage: TypeAlias = Literal["exploration", "warmup", "sampling"]
"""Where in a run an iteration lies."""


@attrs.frozen(kw_only=True)
class Moment:
    """The point of a run at which a schedule decides.

    Parameters
    ----------
    stage
        The stage of the iteration just done.
    iteration
        Iterations done in the whole run, exploration included.
    explored
        True once, at the iteration that ends the exploration.
    since_explored
        Iterations done since the exploration ended: 0 at the iteration that ends it, -1 before.
    draws_follow
        True at the last iteration of the warm-up.
    """

    stage: Stage
    iteration: int
    explored: bool
    since_explored: int = -1
    draws_follow: bool = False


@attrs.frozen(kw_only=True)
class Decision:
    """A schedule's decision after an iteration.

    Parameters
    ----------
    observe
        The learner takes the training rows of this iteration.
    deploy
        The sampler gets a new snapshot of the learner.
    frozen
        Nothing will be deployed from here on.
    derivatives
        From here on proposals are evaluated with gradients, or Jacobians of a forward map, where
        the target offers them: they cost more and teach more. Kept iterations ignore this.
    learn_from
        Which rows of this iteration are observed; during exploration the explorer chooses.
    """

    observe: bool
    deploy: bool
    frozen: bool
    derivatives: bool = False
    learn_from: LearnFrom = "all"


class Schedule(Protocol):
    """Says when a run learns and when it deploys what it has learnt."""

    @property
    def learns(self) -> bool:
        """Whether it ever deploys a surrogate."""

    @property
    def deployment_rate(self) -> float:
        """Deployments expected per iteration after the first deployment; 0 for at most one."""

    def exploration(self, gradients: bool) -> int | None:
        """Return how many rows, with gradients or without, it wants from the exploration.

        None leaves the number to the explorer. A run asks only where the user names no explorer.
        """

    def decide(self, moment: Moment, rng: np.random.Generator) -> Decision:
        """Return what to do after an iteration."""
