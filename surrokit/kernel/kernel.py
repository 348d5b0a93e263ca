"""The chains of a run, and the kernels that move them."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.contracts.explorer import Findings
from surrokit.contracts.potential import Potential
from surrokit.contracts.sampler import (
    ChainState,
    Correction,
    Decider,
    Proposal,
    Sampler,
    StepInfo,
    Tuning,
)
from surrokit.kernel.binding import Binding
from surrokit.kernel.foresight import Foresight
from surrokit.kernel.tuner import moves_by_gradients
from surrokit.kernel.tuner_state import TunerState
from surrokit.types import FloatArray


class Moves(Binding):
    """The run's own kernel, with the state of the chains.

    Parameters
    ----------
    sampler, correction
        The settings of the kernel.
    target
        The exact potential.
    chains
        Number of chains.
    surrogate
        A ready surrogate that the sampler moves on instead.

    Attributes
    ----------
    foresight
        Makes proposals ahead; None where none are to be made.
    """

    def __init__(
        self,
        sampler: Sampler,
        correction: Correction,
        target: Potential,
        chains: int,
        surrogate: Potential | None = None,
    ) -> None:
        super().__init__(sampler, surrogate or target, chains)
        self.target = target
        self.correction = correction
        self.decider = correction.bind(target)
        self.chains: ChainState | None = None
        self.covariance: FloatArray | None = None
        self.step_size: float | None = None
        self.foresight: Foresight | None = None

    @property
    def state(self) -> ChainState:
        """State of the chains, once they have begun."""
        assert self.chains is not None
        return self.chains

    @property
    def positions(self) -> FloatArray:
        """Positions of the chains, shape (n, dim)."""
        return self.state.positions

    @property
    def identity(self) -> tuple[object, ...]:
        """The objects that move the chains and decide; on any change one of them is another."""
        return *super().identity, self.decider

    def take_in(self, findings: Findings) -> None:
        """Take over the findings of an exploration so far."""
        self.chains, self.covariance = findings.chains, findings.covariance
        self.step_size = findings.step_size

    def hand_over(self, findings: Findings) -> Findings:
        """Return findings with the chains as they are, for another kernel to take over."""
        return attrs.evolve(
            findings,
            chains=self.state,
            covariance=self.covariance,
            step_size=None,
            tuning=None,
            acceptance=None,
        )

    def start_tuning(self, n_iterations: int, tuning: Tuning | None, *, arrived: bool) -> None:
        """Begin a warm-up of so many iterations, with all that is known."""
        self.tune(
            n_iterations,
            covariance=self.covariance,
            step_size=self.step_size,
            tuning=tuning,
            arrived=arrived,
        )

    def start(self, positions: FloatArray) -> ChainState:
        """Return the state of chains that begin at ``positions (n, dim)``."""
        return self.decider.start(positions, self.cache(positions), self.kernel.potential)

    def forgotten(self, positions: FloatArray) -> float:
        """Return 1 minus the correlation of successive positions, by the covariance in use.

        Parameters
        ----------
        positions : ndarray of shape (chains, n, dim)
            Positions of successive iterations.
        """
        if self.covariance is None:
            return 1.0
        steps = np.diff(positions, axis=1).reshape(-1, positions.shape[2])
        try:
            whitened = np.linalg.solve(np.linalg.cholesky(self.covariance), steps.T)
        except np.linalg.LinAlgError:  # no estimate from a singular covariance
            return 1.0
        return float(0.5 * np.square(whitened).mean())

    # --- moving ---

    def transition(self, rng: np.random.Generator, *, tune: bool) -> StepInfo:
        """Make one transition of all chains."""
        self.step_size = self.kernel.step
        state = self.renew(self.state)
        self.chains, info = self.decider.decide(state, self._propose(state, rng), rng)
        if tune:
            self.update(self.chains, info)
        return info

    def _propose(self, state: ChainState, rng: np.random.Generator) -> Proposal:
        if self.foresight is None:
            return self.kernel.propose(state, rng)
        return self.foresight.propose(self.kernel, state, rng)

    def move_to(self, state: ChainState, *, tune: bool) -> None:
        """Take over the state to which another kernel took the chains."""
        if tune:
            self.skip(state.positions)
        self.chains = self.look_up(state)

    def move_on(self, potential: Potential) -> None:
        """Move on another potential from here on."""
        self.bind_to(potential)
        self.chains = self.look_up(self.state)

    def take_over(self, findings: Findings) -> None:
        """Go on from where another kernel left the chains."""
        self.take_in(findings)
        self.chains = self.look_up(self.state)
        self._begin_deciding()

    def prepare(self, near: FloatArray) -> bool:
        """Let the correction pay for what it must know; return whether that changed it."""
        prepared = self.decider.prepare(near)
        if prepared is self.decider:
            return False
        self.decider = prepared
        if not np.isfinite(self.state.values).all():
            self._begin_deciding()
        return True

    def _begin_deciding(self) -> None:
        state = self.state
        self.chains = self.decider.start(state.positions, state.cache, self.kernel.potential)

    def _use(self, state: TunerState) -> None:
        super()._use(state)
        self.covariance = self.tuning.covariance


class ExactMoves(Binding):
    """An exact kernel beside the run's own, tuned separately.

    Parameters
    ----------
    sampler
        Makes the moves.
    decider
        Decides on the moves by the exact potential.
    target
        The exact potential.
    chains
        Number of chains.
    """

    def __init__(self, sampler: Sampler, decider: Decider, target: Potential, chains: int) -> None:
        super().__init__(sampler, target, chains)
        self._decider = decider
        self._last: ChainState | None = None

    @property
    def step(self) -> float | None:
        """The step size in use."""
        return self.kernel.step

    @property
    def moves_by_gradients(self) -> bool:
        """Whether its transitions follow gradients."""
        return moves_by_gradients(self.sampler)

    @property
    def identity(self) -> tuple[object, ...]:
        """The objects that move the chains and decide; on any change one of them is another."""
        return *super().identity, self._decider

    def decide_by(self, decider: Decider) -> None:
        """Use another decider from here on, bound to the exact potential."""
        self._decider = decider
        self._last = None

    def transition(
        self, state: ChainState, rng: np.random.Generator, *, tune: bool
    ) -> tuple[ChainState, StepInfo]:
        """Make one exact transition of all chains.

        Parameters
        ----------
        state
            State of the chains; its cache may be of any potential.
        rng
            Random generator.
        tune
            Whether the transition tunes the kernel.

        Returns
        -------
        state
            The new state; its cache is of the exact potential.
        info
            What happened.
        """
        last = self._last
        if last is None or last.positions is not state.positions:
            state = self.look_up(state)
        else:  # the cache of the last transition, so that nothing is paid twice
            state = self.renew(attrs.evolve(state, cache=last.cache))
        self._last, info = self._decider.decide(state, self.kernel.propose(state, rng), rng)
        if tune:
            self.update(self._last, info)
        return self._last, info
