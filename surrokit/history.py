"""Iterations as a run records them: growing histories, and finished traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from surrokit.capabilities import CALL_KINDS
from surrokit.coordinates.constraints import CoordinateMap
from surrokit.coordinates.parameters import Parameter, Parameters
from surrokit.errors import NumericalError
from surrokit.interfaces import ChainState, Status, StepInfo
from surrokit.model.quantities import NAMED
from surrokit.types import BoolArray, FloatArray, IntArray


@attrs.frozen(kw_only=True, eq=False)
class Trace:
    """Iterations of one phase of a run; arrays have shape (chains, iterations) unless stated.

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
        :class:`~surrokit.interfaces.Status` of each path.
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
    quantities : dict of str to ndarray of shape (chains, iterations, ...)
        What the user's function returned beside its results.
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
    transform: CoordinateMap
    ends: FloatArray | None = None
    quantities: Mapping[str, FloatArray] = attrs.field(factory=dict)

    def __len__(self) -> int:
        return len(self.seconds)

    def quantity_columns(self) -> tuple[list[str], FloatArray]:
        """Return a name for each number of quantities, and these (chains, iterations, k)."""
        given = self.quantities
        named = Parameters({name: Parameter(array.shape[2:]) for name, array in given.items()})
        none = np.empty((*self.draws.shape[:2], 0))
        return named.labels, named.position(given) if given else none

    def chosen(self, places: IntArray) -> Trace:
        """Return iterations at places (n,), counted chain after chain, as those of one chain."""
        when = places % max(1, len(self))
        found: dict[str, Any] = {
            **{name: _flat(getattr(self, name))[places][None] for name in (*_PLACES, *DTYPES)},
            **{name: getattr(self, name)[when] for name in ("step_size", "seconds", "failures")},
            "outputs": None if self.outputs is None else _flat(self.outputs)[places][None],
            "quantities": {n: _flat(of)[places][None] for n, of in self.quantities.items()},
            "calls": {kind: counts[when] for kind, counts in self.calls.items()},
            "ends": None,
        }
        return attrs.evolve(self, **found)

    def demand_evidence(self) -> None:
        """Raise if draws do not give an evidence: the moves went on where the target ends.

        Raises
        ------
        NumericalError
            If more than :data:`LOST` of them did.
        """
        lost = lost_part(self.acceptance, self.path_acceptance, self.status)
        if lost > LOST:
            raise NumericalError(
                f"{lost:.0%} of the moves ended where the target has no density, and the draws "
                "cannot tell how much lies there. Declare bounds, or pass the target, which is "
                "then evaluated: run.log_evidence(target)"
            )

    def path_failures(self) -> dict[str, int]:
        """Return the number of paths that failed, all chains together, by kind of failure.

        The kinds are ``not-finite``, ``not-converged``, ``not-reversible`` and ``no-density``, as
        in :class:`~surrokit.interfaces.Status`. Each failed path was rejected.
        """
        return {
            failure.name.lower().replace("_", "-"): int((self.status == failure).sum())
            for failure in Status
            if failure is not Status.OK
        }

    def statistics(self) -> dict[str, npt.NDArray[Any]]:
        """Return the statistics of the sampler by ArviZ's names, each (chains, iterations).

        ``lp`` is left out where a correction did not evaluate the target at every draw, and
        ``energy`` where not every draw is from a path.
        """
        known = {"lp": -self.values, "energy": self.energy}
        return {
            **{name: array for name, array in known.items() if not np.isnan(array).any()},
            "acceptance_rate": self.acceptance,
            "diverging": self.divergent,
            "n_steps": self.n_steps,
            "step_size": np.tile(self.step_size, (len(self.draws), 1)),
        }


LOST = 0.02
"""Part of the moves that end where the target has no density, up to which draws give evidences: a
surrogate, or a normal distribution about the draws, may have as much of its mass there."""


def lost_part(acceptance: FloatArray, on_path: FloatArray, status: IntArray) -> float:
    """Return the part of the moves that ended where a target has next to no density.

    A path went on to there, or a surrogate did. How much lies beyond, draws cannot tell.

    Parameters
    ----------
    acceptance, on_path : ndarrays of any shape
        Exact acceptance probability, and that on the potential that the sampler moved on.
    status : ndarray of the same shape
        Of each path.
    """
    ended = acceptance < 1e-3 * on_path
    return float(np.mean(ended | (status == Status.NO_DENSITY)))


_PLACES = ("draws", "positions")

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

_OF_STEPS = [name for name in DTYPES if name not in ("values", "energy")]


def trace_of(columns: Mapping[str, npt.NDArray[Any]], transform: CoordinateMap) -> Trace:
    """Return the trace of columns as :meth:`History.columns` returns them."""
    arrays = {name: np.swapaxes(array, 0, 1) for name, array in columns.items()}
    numbers = columns["numbers"]
    calls = numbers[:, 3:].astype(np.int64)
    places = {
        name: arrays[name].copy()  # in the order of chains: sums round by how arrays lie
        for name in arrays
        if name in ("positions", "outputs", "ends") or name.startswith(NAMED)
    }
    positions, ends = places["positions"], places.get("ends")
    return Trace(
        draws=transform.to_bounded(positions),
        positions=positions,
        **{name: arrays[name] for name in DTYPES},
        step_size=numbers[:, 0],
        seconds=numbers[:, 1],
        failures=numbers[:, 2].astype(np.int64),
        calls=dict(zip(CALL_KINDS, calls.T, strict=True)),
        outputs=places.get("outputs"),
        quantities={n[len(NAMED) :]: of for n, of in places.items() if n.startswith(NAMED)},
        transform=transform,
        ends=None if ends is None else transform.to_bounded(ends),
    )


def _flat(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array (chains, iterations, ...) with chains one after another."""
    return array.reshape(-1, *array.shape[2:])


Columns: TypeAlias = dict[str, npt.NDArray[Any]]

BLOCK = 256
"""Iterations that are put together as arrays, which take less room than an object for each."""

_UNDISTURBED = 0.1  # quantile of iterations' times that other work on the machine does not disturb


_Row: TypeAlias = tuple[ChainState, StepInfo, tuple[float, ...], Mapping[str, FloatArray | None]]
"""One iteration, with its numbers, and outputs, ends and quantities as far as there are any."""


class History:
    """Gathers a :class:`~surrokit.history.Trace` of so many chains and dimensions."""

    def __init__(self, chains: int, dim: int) -> None:
        self._chains = chains
        self._dim = dim
        self._blocks: list[Columns] = []
        self._rows: list[_Row] = []
        self._in_blocks = 0

    def __len__(self) -> int:
        return self._in_blocks + len(self._rows)

    def add(
        self,
        state: ChainState,
        info: StepInfo,
        *,
        step_size: float,
        seconds: float,
        failures: int,
        calls: Mapping[str, int],
        beside: Mapping[str, FloatArray],
    ) -> None:
        """Take in one iteration, with what was evaluated beside U: outputs and quantities."""
        counts = map(calls.__getitem__, CALL_KINDS)
        all_beside = {**beside, "ends": info.ends}
        self._rows.append((state, info, (step_size, seconds, failures, *counts), all_beside))
        if len(self._rows) == BLOCK:
            self._join()

    def extend(self, later: History) -> None:
        """Take in all iterations of a later history."""
        self._join()
        later._join()
        for block in later._blocks:
            self._append(block)

    def split(self, n: int) -> tuple[History, History]:
        """Return the first n iterations, and the later ones."""
        self._join()
        parts = History(self._chains, self._dim), History(self._chains, self._dim)
        before = 0
        for block in self._blocks:
            size = len(block["numbers"])
            cut = min(max(n - before, 0), size)
            for part, rows in zip(parts, (slice(0, cut), slice(cut, size)), strict=True):
                part._append({name: array[rows] for name, array in block.items()})
            before += size
        return parts

    def positions(self) -> FloatArray:
        """Return the positions of the chains, shape (chains, iterations, dim)."""
        positions = np.empty((self._chains, len(self), self._dim))
        at = 0
        for block in self._parts(0):
            n = len(block["numbers"])
            positions[:, at : at + n] = np.swapaxes(block["positions"], 0, 1)
            at += n
        return positions

    def last(self, n: int) -> tuple[float, float, float]:
        """Return mean move probability, seconds and mean steps of the last n iterations.

        The seconds are those of one iteration that other work on the machine does not disturb.
        """
        columns = self.columns(max(len(self) - n - 1, 0))
        seconds = np.diff(columns["numbers"][:, 1])
        acceptance, steps = columns["acceptance"][-n:], columns["n_steps"][-n:]
        moves = np.where(np.isnan(acceptance), 0.0, acceptance)
        return float(moves.mean()), float(np.quantile(seconds, _UNDISTURBED)), float(steps.mean())

    def columns(self, start: int = 0) -> Columns:
        """Return iterations from ``start`` on as arrays of shape (iterations, chains, ...).

        ``numbers`` has shape (iterations, 3 + kinds of calls): step size, seconds, failures, calls.
        ``outputs``, ``ends`` and quantities are there if some iteration has them, and NaN where one
        has none.
        """
        parts = self._parts(start)
        if len(parts) == 1:
            return parts[0]
        shapes = {name: array for part in parts for name, array in part.items()}
        return {name: _join(name, parts, like) for name, like in shapes.items()}

    def trace(self, transform: CoordinateMap) -> Trace:
        """Return the trace, with draws in the user's coordinates."""
        return trace_of(self.columns(), transform)

    def _parts(self, start: int) -> list[Columns]:
        """Return blocks from an iteration on, at least one."""
        found, before = [], 0
        for block in self._blocks:
            size = len(block["numbers"])
            if before + size > start:
                cut = max(start - before, 0)
                found.append({name: array[cut:] for name, array in block.items()})
            before += size
        rows = self._rows[max(start - before, 0) :]
        return [*found, self._gather(rows)] if rows or not found else found

    def _join(self) -> None:
        """Put the last iterations together as arrays."""
        if not self._rows:
            return
        block, self._rows = self._gather(self._rows), []
        self._append(block)

    def _append(self, block: Columns) -> None:
        if len(block["numbers"]):
            self._blocks.append(block)
            self._in_blocks += len(block["numbers"])

    def _gather(self, rows: list[_Row]) -> Columns:
        """Return iterations as arrays."""
        n = len(rows)
        states, infos, numbers, beside = zip(*rows, strict=True) if rows else ((), (), (), ())
        by_chain = {name: [getattr(info, name) for info in infos] for name in _OF_STEPS}
        by_chain["values"] = [state.values for state in states]
        by_chain["energy"] = [
            np.full(self._chains, np.nan) if info.energy is None else info.energy for info in infos
        ]
        positions = np.array([state.positions for state in states])
        found: Columns = {
            "positions": positions.reshape(n, self._chains, self._dim),
            "numbers": np.array(numbers).reshape(n, 3 + len(CALL_KINDS)),
        }
        for name, kind in DTYPES.items():
            found[name] = np.array(by_chain[name], dtype=kind).reshape(n, self._chains)
        for name in dict.fromkeys(name for each in beside for name in each):
            if (array := _stack([each.get(name) for each in beside])) is not None:
                found[name] = array
        return found


def _join(name: str, parts: list[Columns], like: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a column of all parts."""
    n = sum(len(part["numbers"]) for part in parts)
    found = np.empty((n, *like.shape[1:]), like.dtype)
    at = 0
    for part in parts:
        size = len(part["numbers"])
        found[at : at + size] = part.get(name, np.nan)
        at += size
    return found


def _stack(rows: Sequence[FloatArray | None]) -> FloatArray | None:
    """Return rows as one array, with NaN in the place of those that are missing."""
    known = [row for row in rows if row is not None]
    if not known:
        return None
    missing = np.full(known[0].shape, np.nan)
    return np.stack([missing if row is None else row for row in rows])
