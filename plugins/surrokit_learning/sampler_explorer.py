"""Exploration by the exact sampler's own burn-in: the first phase of Algorithm 3."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.capabilities import GRADIENT
from surrokit.contracts.explorer import Findings
from surrokit.contracts.learner import Evaluations
from surrokit.contracts.potential import Potential
from surrokit.contracts.sampler import ChainState, Correction, Sampler, StepInfo
from surrokit.contracts.schedule import LearnFrom, checked_learn_from
from surrokit.errors import ConfigurationError
from surrokit.kernel.tuner import Tuner
from surrokit.kernel.tuner_state import TunerState
from surrokit.settings import not_negative_integer, optional_positive_integer
from surrokit.surrogate.rows import training_rows
from surrokit.types import Capabilities, FloatArray


@attrs.frozen(kw_only=True, eq=False)
class SamplerExplorerState:
    """Where a :class:`SamplerExplorer` is.

    Parameters
    ----------
    chains
        The chains.
    info
        What the last iteration did to them; None before the first.
    tuner
        What tuning knows.
    iteration, n_iterations
        Iterations done, and to do at most.
    n_training
        Rows given to the learner so far.
    """

    chains: ChainState
    info: StepInfo | None
    tuner: TunerState
    iteration: int
    n_iterations: int
    n_training: int


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
    learn_from: LearnFrom = attrs.field(default="all", converter=checked_learn_from)

    @property
    def needs(self) -> Capabilities:
        """What sampler and correction need."""
        return self.sampler.needs | self.correction.needs

    def with_potential(self, potential: Potential) -> SamplerExplorer:
        """Return a copy that explores a potential."""
        return attrs.evolve(
            self,
            sampler=self.sampler.with_potential(potential),
            correction=self.correction.with_potential(potential),
        )

    def start(self, positions: FloatArray, warmup: int) -> SamplerExplorerState:
        """Return the state at starting ``positions (n, dim)``.

        Raises
        ------
        ConfigurationError
            If the warm-up is too short for the exploration asked for.
        """
        n_iterations = self._length(warmup)
        chains, dim = positions.shape
        cache = self.sampler.cache(positions)
        return SamplerExplorerState(
            chains=self.correction.start(positions, cache, self.sampler.potential),
            info=None,
            tuner=self._tuner(n_iterations).start(chains, dim),
            iteration=0,
            n_iterations=n_iterations,
            n_training=0,
        )

    def step(self, state: SamplerExplorerState, rng: np.random.Generator) -> SamplerExplorerState:
        """Return the state after one transition of all chains."""
        tuner = self._tuner(state.n_iterations)
        proposal = tuner.tuned(state.tuner, self.sampler).propose(state.chains, rng)
        chains, info = self.correction.decide(state.chains, proposal, rng)
        return attrs.evolve(
            state,
            chains=chains,
            info=info,
            tuner=tuner.update(state.tuner, chains.positions, info),
            iteration=state.iteration + 1,
        )

    def learn(
        self, state: SamplerExplorerState, paid: Evaluations
    ) -> tuple[SamplerExplorerState, Evaluations]:
        """Return the rows to learn from among what the last iteration paid for."""
        if state.info is None or state.iteration <= self.discard:
            return state, Evaluations.empty(paid.positions.shape[1])
        rows = training_rows(self.learn_from, paid, state.chains, state.info)
        return attrs.evolve(state, n_training=state.n_training + len(rows)), rows

    def wants_fit(self, state: SamplerExplorerState) -> bool:  # noqa: ARG002
        """Return False: it moves on the exact potential throughout."""
        return False

    def informed(
        self,
        state: SamplerExplorerState,
        surrogate: Potential | None,  # noqa: ARG002
    ) -> SamplerExplorerState:
        """Return the state as it is."""
        return state

    def done(self, state: SamplerExplorerState) -> bool:
        """Return whether iterations or evaluations have reached what was asked."""
        enough = self.evaluations is not None and state.n_training >= self.evaluations
        return enough or state.iteration >= state.n_iterations

    def findings(self, state: SamplerExplorerState) -> Findings:
        """Return where the chains are, and what tuning found."""
        return Findings(
            chains=state.chains,
            covariance=state.tuner.covariance,
            step_size=float(np.exp(state.tuner.averaged_log_step)),
        )

    def _tuner(self, n_iterations: int) -> Tuner:
        return Tuner.of(self.sampler, n_iterations)

    def _length(self, warmup: int) -> int:
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
