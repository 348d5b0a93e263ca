"""Exploration by the exact sampler's own burn-in: the first phase of Algorithm 3."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from surrokit.arguments import not_negative_integer, optional_positive_integer
from surrokit.capabilities import GRADIENT
from surrokit.contracts.explorer import Exploration, Explorer, Findings, Modes
from surrokit.errors import ConfigurationError
from surrokit.interfaces import (
    ChainState,
    Correction,
    Decider,
    Evaluations,
    LearnFrom,
    Sampler,
    StepInfo,
    check_learn_from,
)
from surrokit.kernel.kernel import caches_metric
from surrokit.kernel.tuning import Tuner, TunerState, has_to_approach
from surrokit.potentials import Potential
from surrokit.surrogate.training import training_rows
from surrokit.types import Capabilities, FloatArray

WITHIN = 2.0
"""Standard deviations, beside the root of the dimension, from a mode within which draws lie."""


@attrs.frozen(kw_only=True, eq=False)
class SamplerExplorerState:
    """Where a :class:`SamplerExploration` is.

    Parameters
    ----------
    chains
        The chains.
    info
        What the last iteration did to them; None before the first.
    tuner
        What tuning knows.
    retuned
        Whether the covariance has changed since the last proposals were made.
    iteration, n_iterations
        Iterations done, and to do at most.
    n_training
        Rows given to the learner so far.
    approach
        How far the way to the mass has come; None once chains are there.
    approached
        Iterations that it took.
    modes
        What was found on it.
    """

    chains: ChainState
    info: StepInfo | None
    tuner: TunerState
    retuned: bool
    iteration: int
    n_iterations: int
    n_training: int
    approach: Any = None
    approached: int = 0
    modes: Modes | None = None

    @property
    def believed(self) -> Modes | None:
        """The modes, if mass is about them."""
        return self.modes if self.modes is not None and self.modes.believed else None


@attrs.frozen(kw_only=True, eq=False)
class SamplerExplorer:
    """Run an exact sampler, tuned on the way, and learn from what it pays for.

    Parameters
    ----------
    sampler, correction
        The exact kernel.
    iterations
        How long to explore; None for half of the warm-up, or a quarter of it where gradients are
        paid for, of which a surrogate needs fewer.
    evaluations
        Stop as soon as there are so many rows to learn from.
    discard
        Iterations at the start that nothing is learnt from (the paper: 1000 of 5000).
    learn_from
        ``"all"`` evaluations, ``"accepted"`` proposals (Algorithm 3), or the ``"states"`` of the
        chains (the authors' code).
    approach
        How chains that move by gradients come to where the mass is, before the first transition,
        if the sampler leaves its step size or metric to be tuned.

    Raises
    ------
    ConfigurationError
        If a setting is out of range.
    """

    sampler: Sampler
    correction: Correction
    iterations: int | None = attrs.field(default=None, validator=optional_positive_integer)
    evaluations: int | None = attrs.field(default=None, validator=optional_positive_integer)
    discard: int = attrs.field(default=0, validator=not_negative_integer)
    learn_from: LearnFrom = attrs.field(default="all", converter=check_learn_from)
    approach: Explorer | None = None

    @property
    def needs(self) -> Capabilities:
        """What sampler and correction need."""
        return self.sampler.needs | self.correction.needs

    def bind(self, potential: Potential, calls: int | None = None) -> SamplerExploration:
        """Return the exploration of a potential; however many ``calls`` are left."""
        return SamplerExploration(
            settings=self,
            potential=potential,
            decider=self.correction.bind(potential),
            approach=None if self.approach is None else self.approach.bind(potential, calls),
        )

    def length(self, warmup: int) -> int:
        """Return how many iterations an exploration takes in a warm-up.

        Raises
        ------
        ConfigurationError
            If the warm-up is too short for what is asked for.
        """
        if self.iterations is not None:
            length = self.iterations
        elif self.evaluations is not None:
            length = warmup
        else:
            length = warmup // (4 if GRADIENT in self.sampler.needs else 2)
        if length > warmup:
            raise ConfigurationError(
                f"explorer asks for {length} iterations, but warmup is {warmup} and counts them; "
                "raise warmup or lower the explorer's iterations"
            )
        if length <= self.discard:
            raise ConfigurationError(
                f"explorer discards {self.discard} iterations of {length}, so nothing is left to "
                "learn from; raise warmup or lower discard"
            )
        return length


@attrs.frozen(kw_only=True, eq=False)
class SamplerExploration:
    """The chains of an exact sampler on one potential.

    Parameters
    ----------
    settings
        Which sampler, and how long.
    potential
        The exact one.
    decider
        The correction, bound to it.
    """

    settings: SamplerExplorer
    potential: Potential
    decider: Decider
    approach: Exploration | None = None

    def start(self, positions: FloatArray, warmup: int) -> SamplerExplorerState:
        """Return the state at starting ``positions (n, dim)``.

        Raises
        ------
        ConfigurationError
            If the warm-up is too short for the exploration asked for.
        """
        n_iterations = self.settings.length(warmup)
        tuner = Tuner.of(self.settings.sampler, n_iterations)
        begun = SamplerExplorerState(
            chains=ChainState(positions=positions, values=np.empty(0), cache={}),
            info=None,
            tuner=tuner.start(*positions.shape),
            retuned=False,
            iteration=0,
            n_iterations=n_iterations,
            n_training=0,
        )
        approaches = has_to_approach(self.settings.sampler, self.potential, n_iterations)
        if self.approach is None or not approaches:
            return self._begin(begun, positions)
        approach = self.approach.start(positions, n_iterations)
        return attrs.evolve(begun, chains=approach.chains, approach=approach)

    def _begin(self, state: SamplerExplorerState, positions: FloatArray) -> SamplerExplorerState:
        """Return the state of chains that move from positions (n, dim) on."""
        tuning = self._tuner(state).tuning(state.tuner)
        kernel = self.settings.sampler.bind(self.potential, tuning)
        chains = self.decider.start(positions, kernel.cache(positions), kernel.potential)
        return attrs.evolve(state, chains=chains, approach=None)

    def _approach(
        self, state: SamplerExplorerState, rng: np.random.Generator
    ) -> SamplerExplorerState:
        """Return the state nearer to the mass, or there."""
        assert self.approach is not None
        approach = self.approach.step(state.approach, rng)
        steps = state.iteration + 1
        state = attrs.evolve(
            state, approach=approach, info=approach.info, iteration=steps, approached=steps
        )
        if not self.approach.done(approach):
            return state
        found = self.approach.findings(approach)
        chains, dim = found.chains.positions.shape
        tuned = self._tuner(state).start(chains, dim, covariance=found.covariance)
        begun = attrs.evolve(state, tuner=tuned, modes=found.modes)
        return self._begin(begun, found.chains.positions)

    def step(self, state: SamplerExplorerState, rng: np.random.Generator) -> SamplerExplorerState:
        """Return the state after one transition of all chains, or a part of their way."""
        if state.approach is not None:
            return self._approach(state, rng)
        tuner, chains = self._tuner(state), state.chains
        kernel = self.settings.sampler.bind(self.potential, tuner.tuning(state.tuner))
        if state.retuned and caches_metric(self.settings.sampler):
            chains = attrs.evolve(chains, cache=kernel.cache(chains.positions))
        chains, info = self.decider.decide(chains, kernel.propose(chains, rng), rng)
        gradients = chains.cache.get("gradient")
        tuned = tuner.update(state.tuner, chains.positions, info, gradients)
        return attrs.evolve(
            state,
            chains=chains,
            info=info,
            tuner=tuned,
            retuned=tuned.covariance is not state.tuner.covariance,
            iteration=state.iteration + 1,
        )

    def learn(
        self, state: SamplerExplorerState, paid: Evaluations
    ) -> tuple[SamplerExplorerState, Evaluations]:
        """Return the rows to learn from among what the last iteration paid for."""
        if state.iteration <= state.approached:  # no transition yet
            dim = paid.positions.shape[1]
            modes = state.believed
            if modes is None or self.settings.learn_from != "all":
                return state, Evaluations.empty(dim)
            # searches begin far away, where heavy tails are no higher than the bulk
            near = modes.distances(paid.positions) <= WITHIN + np.sqrt(dim)
            rows = paid.take(near & np.isfinite(paid.values))
            return attrs.evolve(state, n_training=state.n_training + len(rows)), rows
        if state.info is None or state.iteration <= self.settings.discard:
            return state, Evaluations.empty(paid.positions.shape[1])
        rows = training_rows(self.settings.learn_from, paid, state.chains, state.info)
        return attrs.evolve(state, n_training=state.n_training + len(rows)), rows

    def wants_fit(self, state: SamplerExplorerState) -> bool:  # noqa: ARG002
        """Return False: it moves on the exact potential throughout."""
        return False

    def inform(
        self,
        state: SamplerExplorerState,
        surrogate: Potential | None,  # noqa: ARG002
    ) -> SamplerExplorerState:
        """Return the state as it is."""
        return state

    def done(self, state: SamplerExplorerState) -> bool:
        """Return whether iterations or evaluations have reached what was asked."""
        enough = (
            self.settings.evaluations is not None and state.n_training >= self.settings.evaluations
        )
        return enough or state.iteration >= state.n_iterations

    def findings(self, state: SamplerExplorerState) -> Findings:
        """Return where the chains are, and what tuning found."""
        return Findings(
            chains=state.chains,
            covariance=state.tuner.covariance,
            step_size=float(np.exp(state.tuner.averaged_log_step)),
            modes=state.modes,
        )

    def _tuner(self, state: SamplerExplorerState) -> Tuner:
        """Return the tuner of the transitions, which begin once chains have arrived."""
        n_iterations = state.n_iterations - state.approached
        return Tuner.of(self.settings.sampler, n_iterations, arrived=state.believed is not None)
