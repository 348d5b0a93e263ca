"""The trace of a run: iterations, gathered as they happen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from surrokit.contracts.dynamics import Status
from surrokit.contracts.methods import CALL_KINDS
from surrokit.contracts.sampler import ChainState, StepInfo
from surrokit.coordinates.transforms import Transform
from surrokit.types import BoolArray, FloatArray, IntArray

_UNDISTURBED = 0.1  # quantile of iterations' times that other work on the machine does not disturb


@attrs.frozen(kw_only=True, eq=False)
class Trace:
    """Iterations of one phase of a run; arrays have shape (chains, iterations) unless told.

    Parameters
    ----------
    draws : ndarray of shape (chains, iterations, dim)
        In the user's coordinates.
    positions : ndarray of shape (chains, iterations, dim)
        The same in the sampling coordinates.
    values : ndarray
        Exact U in the sampling coordinates, Jacobian included; NaN where the correction did not
        evaluate it.
    accepted, divergent : ndarray of bool
        Whether the chain moved, and whether its path failed.
    acceptance, path_acceptance : ndarray
        Exact acceptance probability, or an unbiased estimate of it, and the same if the potential
        that the sampler moved on were the target. NaN where there was nothing to decide, since
        the proposal did not leave the chain's position.
    n_steps : ndarray of int
        Integrator steps.
    status : ndarray of int
        :class:`~surrokit.contracts.dynamics.Status` of each path.
    step_size : ndarray of shape (iterations,)
        In use at each iteration; NaN for samplers without one.
    seconds : ndarray of shape (iterations,)
        Since the run began.
    energy : ndarray
        V + K with which each path began; NaN of samplers without momenta.
    failures : ndarray of shape (iterations,)
        Positions rejected, as the target failed there, since the run began.
    calls : dict of str to ndarray of shape (iterations,)
        Exact calls of each kind since the run began.
    outputs : ndarray of shape (chains, iterations, m), optional
        Forward outputs, where the target has them.
    transform
        The map from the sampling coordinates to the user's.
    ends : ndarray of shape (chains, iterations, dim), optional
        Where moves ended, accepted or not, in the user's coordinates; NaN of moves that do not keep
        a surrogate's density, None if none does or they were not kept.
    """

    draws: FloatArray
    positions: FloatArray
    values: FloatArray
    accepted: BoolArray
    divergent: BoolArray
    acceptance: FloatArray
    path_acceptance: FloatArray
    n_steps: IntArray
    status: IntArray
    energy: FloatArray
    step_size: FloatArray
    seconds: FloatArray
    failures: IntArray
    calls: Mapping[str, IntArray]
    outputs: FloatArray | None
    transform: Transform
    ends: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.seconds)

    def path_failures(self) -> dict[str, int]:
        """Return the number of paths that failed, all chains together, by kind of failure.

        The kinds are ``not-finite``, ``not-converged`` and ``not-reversible``, as in
        :class:`~surrokit.contracts.dynamics.Status`. Each failed path was rejected.
        """
        return {
            failure.name.lower().replace("_", "-"): int((self.status == failure).sum())
            for failure in Status
            if failure is not Status.OK
        }

    def statistics(self, log_weights: FloatArray | None = None) -> dict[str, npt.NDArray[Any]]:
        """Return the statistics of the sampler by ArviZ's names, each (chains, iterations).

        ``lp`` is left out where a correction did not evaluate the target at every draw, and
        ``energy`` where not every draw is from a path.

        Parameters
        ----------
        log_weights : ndarray of shape (chains, draws), optional
            Of weighted draws.
        """
        known = {"lp": -self.values, "energy": self.energy}
        return {
            **{name: array for name, array in known.items() if not np.isnan(array).any()},
            "acceptance_rate": self.acceptance,
            "diverging": self.divergent,
            "n_steps": self.n_steps,
            "step_size": np.tile(self.step_size, (len(self.draws), 1)),
            **({} if log_weights is None else {"log_weight": log_weights}),
        }


DTYPES = {
    "values": np.float64,
    "accepted": np.bool_,
    "divergent": np.bool_,
    "acceptance": np.float64,
    "path_acceptance": np.float64,
    "n_steps": np.int64,
    "status": np.int64,
    "energy": np.float64,
}
"""Name to type of the columns that have a number for each chain."""

_GATHERED = ("_positions", "_values", "_infos", "_numbers", "_outputs")


class History:
    """Gathers a :class:`Trace`.

    Parameters
    ----------
    chains, dim
        Sizes.
    """

    def __init__(self, chains: int, dim: int) -> None:
        self._chains = chains
        self._dim = dim
        self._positions: list[FloatArray] = []
        self._values: list[FloatArray] = []
        self._infos: list[StepInfo] = []
        self._numbers: list[tuple[float, ...]] = []
        self._outputs: list[FloatArray] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def add(
        self,
        state: ChainState,
        info: StepInfo,
        *,
        step_size: float,
        seconds: float,
        failures: int,
        calls: Mapping[str, int],
        outputs: FloatArray | None,
    ) -> None:
        """Take in one iteration."""
        if outputs is not None:
            self._outputs.append(outputs)
        self._positions.append(state.positions)
        self._values.append(state.values)
        self._infos.append(info)
        counts = (calls[kind] for kind in CALL_KINDS)
        self._numbers.append((step_size, seconds, failures, *counts))

    def extend(self, later: History) -> None:
        """Take in all iterations of a later history."""
        for name in _GATHERED:
            getattr(self, name).extend(getattr(later, name))

    def split(self, n: int) -> tuple[History, History]:
        """Return the first n iterations, and the later ones."""
        first, later = (History(self._chains, self._dim) for _ in range(2))
        for name in _GATHERED:
            setattr(first, name, getattr(self, name)[:n])
            setattr(later, name, getattr(self, name)[n:])
        return first, later

    def positions(self) -> FloatArray:
        """Return the positions of the chains, shape (chains, iterations, dim)."""
        positions = np.empty((self._chains, len(self), self._dim))
        for i, row in enumerate(self._positions):
            positions[:, i] = row
        return positions

    def last(self, n: int) -> tuple[float, float, float]:
        """Return mean move probability, seconds and mean steps of the last n iterations.

        The seconds are those of one iteration that other work on the machine does not disturb.
        """
        acceptance = float(np.mean([info.move_probability for info in self._infos[-n:]]))
        seconds = np.diff([row[1] for row in self._numbers[-n - 1 :]])
        steps = float(np.mean([info.n_steps for info in self._infos[-n:]]))
        return acceptance, float(np.quantile(seconds, _UNDISTURBED)), steps

    def columns(self, start: int = 0) -> dict[str, npt.NDArray[Any]]:
        """Return iterations from ``start`` on as arrays of shape (iterations, chains, ...).

        ``numbers`` has shape (iterations, 3 + kinds of calls): step size, seconds, failures, calls.
        """
        infos, n = self._infos[start:], len(self) - start
        by_chain = {
            "values": self._values[start:],
            "accepted": [info.accepted for info in infos],
            "divergent": [info.divergent for info in infos],
            "acceptance": [info.acceptance for info in infos],
            "path_acceptance": [info.path_acceptance for info in infos],
            "n_steps": [info.n_steps for info in infos],
            "status": [info.status for info in infos],
            "energy": [_energy_of(info) for info in infos],
        }
        found: dict[str, npt.NDArray[Any]] = {
            "positions": np.array(self._positions[start:]).reshape(n, self._chains, self._dim),
            "numbers": np.array(self._numbers[start:]).reshape(n, 3 + len(CALL_KINDS)),
        }
        for name, rows in by_chain.items():
            found[name] = np.array(rows, dtype=DTYPES[name]).reshape(n, self._chains)
        if self._outputs[start:]:
            found["outputs"] = np.stack(self._outputs[start:])
        return found

    def trace(self, transform: Transform) -> Trace:
        """Return the trace, with draws in the user's coordinates."""
        trace = trace_of(self.columns(), transform)
        if all(info.ends is None for info in self._infos):
            return trace
        ends = np.full(trace.positions.shape, np.nan)
        for i, info in enumerate(self._infos):
            if info.ends is not None:
                ends[:, i] = info.ends
        return attrs.evolve(trace, ends=transform.to_bounded(ends))


def trace_of(columns: Mapping[str, npt.NDArray[Any]], transform: Transform) -> Trace:
    """Return the trace of columns as :meth:`History.columns` returns them.

    Parameters
    ----------
    columns
        Name to array.
    transform
        The map to the user's coordinates.
    """
    arrays = {name: np.swapaxes(array, 0, 1) for name, array in columns.items()}
    numbers = columns["numbers"]
    calls = numbers[:, 3:].astype(np.int64)
    # in the order of chains, since sums over arrays round by how these lie in memory
    positions = np.ascontiguousarray(arrays["positions"])
    return Trace(
        draws=transform.to_bounded(positions),
        positions=positions,
        **{name: arrays[name] for name in DTYPES},
        step_size=numbers[:, 0],
        seconds=numbers[:, 1],
        failures=numbers[:, 2].astype(np.int64),
        calls=dict(zip(CALL_KINDS, calls.T, strict=True)),
        outputs=np.ascontiguousarray(arrays["outputs"]) if "outputs" in arrays else None,
        transform=transform,
    )


def _energy_of(info: StepInfo) -> FloatArray:
    """Return the energies of paths (n,); NaN where there are none."""
    return np.full(len(info.accepted), np.nan) if info.energy is None else info.energy
