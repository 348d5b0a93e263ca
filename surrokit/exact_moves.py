"""Transitions on the exact potential in a run whose sampler moves on a surrogate."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.protocols import Correction, Potential, Sampler
from surrokit.records import ChainState, StepInfo
from surrokit.tuning import Tuner, TunerState
from surrokit.types import FloatArray


class ExactMoves:
    """An exact kernel beside the run's own, tuned on its own.

    Parameters
    ----------
    sampler
        Makes the moves; not bound to a potential yet.
    correction
        Decides on them; bound to the exact potential.
    target
        The exact potential.
    """

    def __init__(self, sampler: Sampler, correction: Correction, target: Potential) -> None:
        self._sampler = sampler.with_potential(target)
        self._correction = correction
        self._tuner = Tuner.of(self._sampler, 0)
        self._tuned: TunerState | None = None
        self._last: ChainState | None = None

    @property
    def step(self) -> float | None:
        """The step size in use."""
        return self._sampler.step

    @property
    def kernel(self) -> tuple[object, ...]:
        """What moves the chains and decides: other objects wherever anything in them changes."""
        return self._sampler, self._correction

    def start(
        self,
        chains: int,
        dim: int,
        n_iterations: int,
        *,
        covariance: FloatArray | None,
        step_size: float | None,
    ) -> None:
        """Begin a warm-up with what an exploration found."""
        self._tuner = Tuner.of(self._sampler, n_iterations)
        self._tuned = self._tuner.start(chains, dim, covariance=covariance, step_size=step_size)
        self._sampler = self._tuner.tuned(self._tuned, self._sampler)

    def decide_by(self, correction: Correction) -> None:
        """Have another correction decide, bound to the exact potential."""
        self._correction = correction
        self._last = None

    def learn(self, covariance: FloatArray | None) -> None:
        """Use a covariance that was estimated elsewhere, if there is one."""
        assert self._tuned is not None
        if covariance is not None:
            self._tuned = attrs.evolve(self._tuned, covariance=covariance)
            self._sampler = self._tuner.tuned(self._tuned, self._sampler)

    def freeze(self) -> None:
        """Settle what was tuned; nothing changes from here on."""
        assert self._tuned is not None
        over = attrs.evolve(self._tuned, iteration=self._tuner.n_iterations, searching=-1)
        self._sampler = self._tuner.tuned(over, self._sampler)

    def transition(
        self, state: ChainState, rng: np.random.Generator, *, tune: bool
    ) -> tuple[ChainState, StepInfo]:
        """Make one exact transition of all chains.

        Parameters
        ----------
        state
            Where they are; whatever its cache is of.
        rng
            Generator.
        tune
            Whether the kernel may be tuned by what happens.

        Returns
        -------
        state
            Where they are now; its cache is of the exact potential.
        info
            What happened.
        """
        if self._last is None or self._last.positions is not state.positions:
            cache = self._sampler.cache(state.positions)
            state = attrs.evolve(state, cache=cache)
        else:  # what the last transition left behind; nothing is paid for twice
            state = attrs.evolve(state, cache=self._last.cache)
        proposal = self._sampler.propose(state, rng)
        self._last, info = self._correction.decide(state, proposal, rng)
        if tune:
            assert self._tuned is not None
            self._tuned = self._tuner.update(self._tuned, self._last.positions, info)
            self._sampler = self._tuner.tuned(self._tuned, self._sampler)
        return self._last, info
