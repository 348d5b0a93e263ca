"""What happened at each iteration, gathered as it happens."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np

from surrokit.exact_calls import CALL_KINDS
from surrokit.records import ChainState, StepInfo
from surrokit.transforms import Transform
from surrokit.types import BoolArray, FloatArray, IntArray


@attrs.frozen(kw_only=True, eq=False)
class Trace:
    """Iterations of one phase of a run; arrays have shape (chains, iterations) at first.

    Parameters
    ----------
    draws : ndarray of shape (chains, iterations, dim)
        In the user's coordinates.
    positions : ndarray of shape (chains, iterations, dim)
        The same in the sampling coordinates.
    values : ndarray
        Exact U in the sampling coordinates, Jacobian included.
    accepted, divergent : ndarray of bool
        What happened to the proposals.
    acceptance, path_acceptance : ndarray
        Exact acceptance probability, and the same if the potential that the sampler moved on were
        the target.
    n_steps : ndarray of int
        Integrator steps.
    step_size : ndarray of shape (iterations,)
        In use at each iteration; NaN for samplers without.
    seconds : ndarray of shape (iterations,)
        Since the run began.
    calls : dict of str to ndarray of shape (iterations,)
        Exact calls of each kind since the run began.
    outputs : ndarray of shape (chains, iterations, m), optional
        Forward outputs, where the target has them.
    """

    draws: FloatArray
    positions: FloatArray
    values: FloatArray
    accepted: BoolArray
    divergent: BoolArray
    acceptance: FloatArray
    path_acceptance: FloatArray
    n_steps: IntArray
    step_size: FloatArray
    seconds: FloatArray
    calls: Mapping[str, IntArray]
    outputs: FloatArray | None

    def __len__(self) -> int:
        return len(self.seconds)


class History:
    """Gathers a :class:`Trace`; room for all iterations is set aside at once.

    Parameters
    ----------
    chains, iterations, dim
        Sizes; fewer iterations may come.
    """

    def __init__(self, chains: int, iterations: int, dim: int) -> None:
        self.count = 0
        self._positions = np.empty((iterations, chains, dim))
        self._reals = np.empty((3, iterations, chains))
        self._flags = np.empty((2, iterations, chains), dtype=bool)
        self._n_steps = np.empty((iterations, chains), dtype=np.int64)
        self._times = np.empty((2, iterations))
        self._calls = np.empty((len(CALL_KINDS), iterations), dtype=np.int64)
        self._outputs: list[FloatArray] = []

    def add(
        self,
        state: ChainState,
        info: StepInfo,
        *,
        step_size: float,
        seconds: float,
        calls: Mapping[str, int],
        outputs: FloatArray | None,
    ) -> None:
        """Take in one iteration."""
        i = self.count
        self._positions[i] = state.positions
        self._reals[:, i] = state.values, info.acceptance, info.path_acceptance
        self._flags[:, i] = info.accepted, info.divergent
        self._n_steps[i] = info.n_steps
        self._times[:, i] = step_size, seconds
        self._calls[:, i] = [calls[kind] for kind in CALL_KINDS]
        if outputs is not None:
            self._outputs.append(outputs)
        self.count += 1

    def trace(self, transform: Transform) -> Trace:
        """Return what was gathered, draws taken back to the user's coordinates."""
        n = self.count
        positions = np.ascontiguousarray(self._positions[:n].swapaxes(0, 1))
        values, acceptance, path_acceptance = self._reals[:, :n].swapaxes(1, 2)
        accepted, divergent = self._flags[:, :n].swapaxes(1, 2)
        step_size, seconds = self._times[:, :n]
        return Trace(
            draws=transform.to_bounded(positions),
            positions=positions,
            values=values,
            accepted=accepted,
            divergent=divergent,
            acceptance=acceptance,
            path_acceptance=path_acceptance,
            n_steps=self._n_steps[:n].T,
            step_size=step_size,
            seconds=seconds,
            calls=dict(zip(CALL_KINDS, self._calls[:, :n], strict=True)),
            outputs=np.stack(self._outputs, axis=1) if self._outputs else None,
        )
