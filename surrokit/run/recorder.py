"""The recorder of a run: its iterations, with their calls and times."""

from __future__ import annotations

import numpy as np

from surrokit.capabilities import FORWARD
from surrokit.cost.budget import Clock
from surrokit.cost.recording import RecordingPotential
from surrokit.history import History
from surrokit.interfaces import ChainState, Evaluations, Stage, StepInfo
from surrokit.progress import IterationInfo
from surrokit.types import FloatArray, IntArray


class Recorder:
    """The record of a run's iterations, as it grows.

    Parameters
    ----------
    target
        The exact potential, recorded.
    chains
        Number of chains.
    clock
        The run's.
    """

    def __init__(
        self,
        target: RecordingPotential,
        chains: int,
        clock: Clock,
    ) -> None:
        self.clock = clock
        self.iteration = 0
        self.deployments: list[int] = []
        self.warmup = History(chains, target.dim)
        self.kept = History(chains, target.dim)
        self.has_outputs = FORWARD in target.capabilities
        self._target = target
        self._chains = chains
        self._outputs: FloatArray | None = None

    def take_outputs(self, paid: Evaluations, state: ChainState) -> None:
        """Remember the forward outputs of chains whose position was just paid for."""
        if self.has_outputs and paid.outputs is not None:
            self._remember(paid.outputs, paid.find(state.positions))

    def add(
        self, stage: Stage, state: ChainState, step: StepInfo | None, step_size: float | None
    ) -> IterationInfo:
        """Take in one iteration; one that moved no chain leaves no row in the histories."""
        self.iteration += 1
        seconds, calls = self.clock.elapsed(), self._target.calls
        if step is not None:
            history = self.kept if stage == "sampling" else self.warmup
            history.add(
                state,
                step,
                step_size=step_size if step_size is not None else float("nan"),
                seconds=seconds,
                failures=self._target.failures,
                calls=calls,
                outputs=self._outputs,
            )
        return IterationInfo(
            stage=stage, iteration=self.iteration, step=step, calls=calls, seconds=seconds
        )

    def places(self) -> tuple[FloatArray, FloatArray]:
        """Return the positions of kept iterations, and of all before, each of shape (n, dim)."""
        dim = self._target.dim
        kept, before = self.kept.positions(), self.warmup.positions()
        return kept.reshape(-1, dim), before.reshape(-1, dim)

    def lately(self) -> FloatArray:
        """Return the positions of the second half of the warm-up, shape (n, dim)."""
        before = self.warmup.positions()
        return before[:, before.shape[1] // 2 :].reshape(-1, self._target.dim)

    def begin_again(self) -> None:
        """Turn the draws so far into warm-up."""
        self.warmup.extend(self.kept)
        self.kept = History(self._chains, self._target.dim)

    def keep_first(self, n: int) -> None:
        """Turn draws after the first n of each chain into warm-up."""
        self.kept, later = self.kept.split(n)
        self.warmup.extend(later)

    def _remember(self, paid: FloatArray, found: IntArray) -> None:
        if self._outputs is None:
            self._outputs = np.full((self._chains, paid.shape[1]), np.nan)
        fresh = found >= 0
        self._outputs = np.where(fresh[:, None], paid[found], self._outputs)
