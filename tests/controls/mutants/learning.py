"""Broken surrogates and schedules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import attrs
import numpy as np

from surrokit.interfaces import (
    Decision,
    Evaluations,
    Learner,
    LearningProblem,
    Moment,
    Schedule,
    Surrogate,
)
from surrokit.potentials import Potential, with_gradient
from surrokit.types import Capabilities, FloatArray


@attrs.define(eq=False)
class _BrokenLearner:
    """Passes everything on to a sound learner.

    Parameters
    ----------
    inner
        The sound learner.
    """

    inner: Learner

    @property
    def needs(self) -> frozenset[str]:
        """What the sound one needs."""
        return self.inner.needs

    @property
    def uses(self) -> frozenset[str]:
        """What the sound one uses."""
        return self.inner.uses

    @property
    def provides(self) -> Capabilities:
        """What the sound one provides."""
        return self.inner.provides

    def observe(self, evaluations: Evaluations) -> None:
        """Observe as the sound one does."""
        self.inner.observe(evaluations)

    def fit(self) -> Potential:
        """Fit as the sound one does."""
        return self.inner.fit()

    def state(self) -> dict[str, Any]:
        """Return the sound one's state."""
        return self.inner.state()

    def restore(self, state: Mapping[str, Any]) -> Self:
        """Return a learner that goes on from a state."""
        return attrs.evolve(self, inner=self.inner.restore(state))


@attrs.frozen(eq=False)
class _BrokenSurrogate:
    """Makes broken learners from sound ones.

    Parameters
    ----------
    inner
        The sound surrogate.
    """

    inner: Surrogate

    def learner(self, problem: LearningProblem, rng: np.random.Generator) -> Learner:
        """Return a broken learner."""
        return self.broken(self.inner.learner(problem, rng))

    def broken(self, learner: Learner) -> Learner:
        """Return a learner with something wrong; subclasses say what."""
        return learner


class LiveSnapshot(_BrokenSurrogate):
    """Fitted potentials go on learning with their learner."""

    def broken(self, learner: Learner) -> Learner:
        """Return a learner of live snapshots."""
        return _LiveLearner(learner)


class _LiveLearner(_BrokenLearner):
    def fit(self) -> Potential:
        self.inner.fit()  # raises where there is nothing to fit
        return _Live(self.inner)


@attrs.frozen(eq=False)
class _Live:
    learner: Learner

    @property
    def dim(self) -> int:
        return self.learner.fit().dim

    @property
    def capabilities(self) -> Capabilities:
        return self.learner.fit().capabilities

    def value(self, positions: FloatArray) -> FloatArray:
        return self.learner.fit().value(positions)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "learner":
            raise AttributeError(name)
        return getattr(self.learner.fit(), name)


@attrs.frozen(eq=False)
class CallsExactTarget(_BrokenSurrogate):
    """Its learners ask the exact target for a gradient wherever it was not paid for.

    Parameters
    ----------
    inner
        The sound surrogate.
    target
        The exact target, which no learner may know.
    """

    target: Potential

    def broken(self, learner: Learner) -> Learner:
        """Return a learner that makes exact calls."""
        return _CallingLearner(learner, self.target)


@attrs.define(eq=False)
class _CallingLearner(_BrokenLearner):
    target: Potential

    def observe(self, evaluations: Evaluations) -> None:
        if len(evaluations):
            _, gradients = with_gradient(self.target).value_and_gradient(evaluations.positions)
            evaluations = attrs.evolve(evaluations, gradients=gradients)
        self.inner.observe(evaluations)


class OnlyFirstRows(_BrokenSurrogate):
    """Learners take in only the first half of each block, as if rows came in order of worth."""

    def broken(self, learner: Learner) -> Learner:
        """Return a learner that forgets."""
        return _HalfLearner(learner)


class _HalfLearner(_BrokenLearner):
    def observe(self, evaluations: Evaluations) -> None:
        self.inner.observe(evaluations.take(slice(0, (len(evaluations) + 1) // 2)))


@attrs.frozen
class _BrokenSchedule:
    """Learns as a sound schedule does.

    Parameters
    ----------
    inner
        The sound schedule.
    """

    inner: Schedule

    @property
    def learns(self) -> bool:
        """Always."""
        return True

    @property
    def deployment_rate(self) -> float:
        """As the sound one's."""
        return self.inner.deployment_rate

    def exploration(self, gradients: bool) -> int | None:
        """As the sound one's."""
        return self.inner.exploration(gradients)


class NeverFreezes(_BrokenSchedule):
    """Deploys every tenth iteration, kept draws included, for ever."""

    def decide(self, moment: Moment, rng: np.random.Generator) -> Decision:
        """Return the sound decision, never frozen, and a deployment every tenth time."""
        sound = self.inner.decide(moment, rng)
        again = moment.iteration % 10 == 0
        return Decision(observe=True, deploy=sound.deploy or again, frozen=False)


class NeverVanishes(_BrokenSchedule):
    """Deploys at random, at a rate that falls at first and then stays where it is."""

    def decide(self, moment: Moment, rng: np.random.Generator) -> Decision:
        """Return the sound decision, and a deployment with probability 1 / 50 at least."""
        sound = self.inner.decide(moment, rng)
        rate = 0.02 + 1.0 / (1.0 + max(moment.since_explored, 0))
        again = moment.since_explored > 0 and bool(rng.random() < rate)
        return Decision(observe=True, deploy=sound.deploy or again, frozen=False)


class DeploysAfterFreezing(_BrokenSchedule):
    """Says that it is frozen, and deploys once more among the kept draws."""

    def decide(self, moment: Moment, rng: np.random.Generator) -> Decision:
        """Return the sound decision, with one deployment too many."""
        sound = self.inner.decide(moment, rng)
        late = moment.stage == "sampling" and moment.iteration % 4000 == 150
        return attrs.evolve(sound, deploy=sound.deploy or late)


class RefitsNowAndThen(_BrokenSchedule):
    """Says that it is frozen, and deploys once more every ten thousand iterations."""

    def decide(self, moment: Moment, rng: np.random.Generator) -> Decision:
        """Return the sound decision, with a deployment at each round number."""
        sound = self.inner.decide(moment, rng)
        return attrs.evolve(sound, deploy=sound.deploy or moment.iteration % 10_000 == 0)
