"""Broken surrogates and schedules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import attrs
import numpy as np

from mutants.passing import Passing
from surrokit.interfaces import Decision, Evaluations, Learner, LearningProblem, Moment, Surrogate
from surrokit.potentials import Potential, with_gradient


class _BrokenLearner(Passing):
    def restore(self, state: Mapping[str, Any]) -> Self:
        """Return a learner that goes on from a state."""
        return type(self)(self.inner.restore(state))


class _BrokenSurrogate(Passing):
    """Makes broken learners from sound ones."""

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


class _Live:
    def __init__(self, learner: Learner) -> None:
        self.learner = learner

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "learner":
            raise AttributeError(name)
        return getattr(self.learner.fit(), name)


class CallsExactTarget(_BrokenSurrogate):
    """Its learners ask the exact target for a gradient wherever it was not known."""

    def __init__(self, inner: Surrogate, target: Potential) -> None:
        super().__init__(inner)
        self.target = target

    def broken(self, learner: Learner) -> Learner:
        """Return a learner that makes exact calls."""
        calling = _CallingLearner(learner)
        calling.target = self.target
        return calling


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


class _BrokenSchedule(Passing):
    """Learns as a sound schedule does."""

    learns = True


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
