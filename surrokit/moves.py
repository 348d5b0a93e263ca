"""The chains of a run, and the kernel that moves them."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.protocols import Correction, Potential, Sampler
from surrokit.records import ChainState, Findings, StepInfo, Tuning
from surrokit.tuning import Tuner, TunerState
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
            self._tuned = attrs.evolve(tuned, iteration=tuner.n_iterations, searching=-1)
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

    def switched(self, sampler: Sampler, correction: Correction) -> None:
        """Go on with another kernel; nothing that was tuned but the covariance is kept."""
        self.sampler, self.correction = sampler, correction
        self.step_size = None
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
