"""The chains of a run, and the kernels that move them."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.contracts.explorer import Findings
from surrokit.contracts.potential import Potential
from surrokit.contracts.sampler import ChainState, Correction, Sampler, StepInfo, Tuning
from surrokit.kernel.tuner import Tuner
from surrokit.kernel.tuner_state import TunerState
from surrokit.types import FloatArray


class Moves:
    """The run's own kernel, and where it has taken the chains.

    Parameters
    ----------
    sampler, correction
        The kernel, bound to the potentials that it moves on and decides by.
    """

    def __init__(self, sampler: Sampler, correction: Correction) -> None:
        self.sampler = sampler
        self.correction = correction
        self.chains: ChainState | None = None
        self.covariance: FloatArray | None = None
        self.step_size: float | None = None
        self._tuner: Tuner | None = None
        self._tuned: TunerState | None = None

    @property
    def state(self) -> ChainState:
        """Where the chains are, once they have begun."""
        assert self.chains is not None
        return self.chains

    @property
    def positions(self) -> FloatArray:
        """Positions of the chains, shape (n, dim)."""
        return self.state.positions

    @property
    def kernel(self) -> tuple[object, ...]:
        """What moves the chains and decides: other objects wherever anything in them changes."""
        return self.sampler, self.correction

    def found(self, findings: Findings) -> None:
        """Take over what an exploration has found so far."""
        self.chains, self.covariance = findings.chains, findings.covariance
        self.step_size = findings.step_size

    # --- tuning ---

    def start_tuning(
        self, n_chains: int, dim: int, n_iterations: int, tuning: Tuning | None
    ) -> None:
        """Begin a warm-up of so many iterations, with all that is known."""
        self._tuner = Tuner.of(self.sampler, n_iterations)
        self._tuned = self._tuner.start(
            n_chains, dim, covariance=self.covariance, step_size=self.step_size, tuning=tuning
        )

    def use_tuned(self) -> None:
        """Set in the sampler what has been tuned so far."""
        tuner, tuned = self._tuning()
        self.sampler = tuner.tuned(tuned, self.sampler)
        self.covariance = tuned.covariance

    def tune_afresh(self) -> None:
        """Go on tuning, on a potential that is quite another."""
        tuner, tuned = self._tuning()
        self._tuned = tuner.restarted(tuned)
        self.use_tuned()

    def settle(self) -> None:
        """Keep what was tuned from here on, though the warm-up may have ended early."""
        tuner, tuned = self._tuning()
        if tuned.iteration < tuner.n_iterations:
            self._tuned = tuner.settled(tuned)
            self.use_tuned()

    def forgotten(self, positions: FloatArray) -> float:
        """Return 1 less the correlation of successive positions, by the covariance in use.

        Parameters
        ----------
        positions : ndarray of shape (chains, n, dim)
            Of successive iterations.
        """
        if self.covariance is None:
            return 1.0
        steps = np.diff(positions, axis=1).reshape(-1, positions.shape[2])
        try:
            whitened = np.linalg.solve(np.linalg.cholesky(self.covariance), steps.T)
        except np.linalg.LinAlgError:  # nothing can be said by it
            return 1.0
        return float(0.5 * np.square(whitened).mean())

    # --- moving ---

    def transition(self, rng: np.random.Generator, *, tune: bool) -> StepInfo:
        """Make one transition of all chains."""
        self.step_size = self.sampler.step
        proposal = self.sampler.propose(self.state, rng)
        self.chains, info = self.correction.decide(self.state, proposal, rng)
        if tune:
            tuner, tuned = self._tuning()
            self._tuned = tuner.update(tuned, self.positions, info)
            self.use_tuned()
        return info

    def moved_to(self, state: ChainState, *, tune: bool) -> None:
        """Take over where another kernel has taken the chains."""
        self.chains = state
        if tune:
            tuner, tuned = self._tuning()
            self._tuned = tuner.passed(tuned, self.positions)
            self.use_tuned()
        self._look_up()

    def move_on(self, potential: Potential) -> None:
        """Move on another potential from here on."""
        self.sampler = self.sampler.with_potential(potential)
        self._look_up()

    def take_over(self, findings: Findings) -> None:
        """Go on where another kernel has left the chains."""
        self.found(findings)
        self._look_up()
        self._begin_deciding()

    def prepare(self, near: FloatArray) -> bool:
        """Let the correction find out what it must know; return whether that has changed it."""
        prepared = self.correction.prepared(near)
        if prepared is self.correction:
            return False
        self.correction = prepared
        self._begin_deciding()
        return True

    def _look_up(self) -> None:
        cache = self.sampler.cache(self.positions)
        self.chains = attrs.evolve(self.state, cache=cache)

    def _begin_deciding(self) -> None:
        state = self.state
        self.chains = self.correction.start(state.positions, state.cache, self.sampler.potential)

    def _tuning(self) -> tuple[Tuner, TunerState]:
        assert self._tuner is not None and self._tuned is not None  # noqa: PT018
        return self._tuner, self._tuned


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
