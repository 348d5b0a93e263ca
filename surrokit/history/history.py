"""The history of a phase of a run: its iterations, gathered as they happen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from surrokit.contracts.methods import CALL_KINDS
from surrokit.contracts.sampler import ChainState, StepInfo
from surrokit.coordinates.blocks import CoordinateMap
from surrokit.history.scratch import Scratch
from surrokit.history.trace import DTYPES, Trace, trace_of
from surrokit.types import FloatArray

Columns: TypeAlias = dict[str, npt.NDArray[Any]]

BLOCK = 256
"""Iterations that are put together as arrays, which take less room than an object for each."""

_UNDISTURBED = 0.1  # quantile of iterations' times that other work on the machine does not disturb


@attrs.define(eq=False)
class _Row:
    """One iteration."""

    state: ChainState
    info: StepInfo
    numbers: tuple[float, ...]
    outputs: FloatArray | None


class History:
    """Gathers a :class:`~surrokit.history.trace.Trace`.

    Parameters
    ----------
    chains, dim
        Sizes.
    scratch
        Makes room for what is gathered; None for memory.
    """

    def __init__(self, chains: int, dim: int, scratch: Scratch | None = None) -> None:
        self._chains = chains
        self._dim = dim
        self._scratch = scratch or Scratch()
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
        outputs: FloatArray | None,
    ) -> None:
        """Take in one iteration."""
        counts = (calls[kind] for kind in CALL_KINDS)
        self._rows.append(_Row(state, info, (step_size, seconds, failures, *counts), outputs))
        if len(self._rows) == BLOCK:
            self._settle()

    def extend(self, later: History) -> None:
        """Take in all iterations of a later history."""
        self._settle()
        later._settle()
        for block in later._blocks:
            self._append(block)

    def split(self, n: int) -> tuple[History, History]:
        """Return the first n iterations, and the later ones."""
        self._settle()
        parts = (
            History(self._chains, self._dim, self._scratch),
            History(self._chains, self._dim, self._scratch),
        )
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
        positions = self._scratch.fresh().empty((self._chains, len(self), self._dim), np.float64)
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

    def columns(self, start: int = 0, scratch: Scratch | None = None) -> Columns:
        """Return iterations from ``start`` on as arrays of shape (iterations, chains, ...).

        ``numbers`` has shape (iterations, 3 + kinds of calls): step size, seconds, failures, calls.
        ``outputs`` and ``ends`` are there if some iteration has them, and NaN where one has none.

        Parameters
        ----------
        start
            The first of them.
        scratch
            Makes room for them; None for memory.
        """
        parts = self._parts(start)
        if len(parts) == 1:
            return parts[0]
        shapes = {name: array for part in parts for name, array in part.items()}
        scratch = scratch or Scratch()
        return {name: _join(name, parts, like, scratch) for name, like in shapes.items()}

    def trace(self, transform: CoordinateMap) -> Trace:
        """Return the trace, with draws in the user's coordinates."""
        scratch = self._scratch.fresh()
        return trace_of(self.columns(scratch=scratch), transform, scratch)

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

    def _settle(self) -> None:
        """Put the last iterations together as arrays."""
        if not self._rows:
            return
        block, self._rows = self._gather(self._rows), []
        self._append({name: self._scratch.copy(array) for name, array in block.items()})

    def _append(self, block: Columns) -> None:
        if len(block["numbers"]):
            self._blocks.append(block)
            self._in_blocks += len(block["numbers"])

    def _gather(self, rows: list[_Row]) -> Columns:
        """Return iterations as arrays."""
        n, infos = len(rows), [row.info for row in rows]
        by_chain = {
            "values": [row.state.values for row in rows],
            "accepted": [info.accepted for info in infos],
            "divergent": [info.divergent for info in infos],
            "acceptance": [info.acceptance for info in infos],
            "path_acceptance": [info.path_acceptance for info in infos],
            "n_steps": [info.n_steps for info in infos],
            "status": [info.status for info in infos],
            "energy": [_energy_of(info) for info in infos],
        }
        shape = (n, self._chains, self._dim)
        found: Columns = {
            "positions": np.array([row.state.positions for row in rows]).reshape(shape),
            "numbers": np.array([row.numbers for row in rows]).reshape(n, 3 + len(CALL_KINDS)),
        }
        for name, each in by_chain.items():
            found[name] = np.array(each, dtype=DTYPES[name]).reshape(n, self._chains)
        for name, optional in (
            ("outputs", [row.outputs for row in rows]),
            ("ends", [info.ends for info in infos]),
        ):
            if (array := _stack(optional)) is not None:
                found[name] = array
        return found


def _join(
    name: str, parts: list[Columns], like: npt.NDArray[Any], scratch: Scratch
) -> npt.NDArray[Any]:
    """Return a column of all parts."""
    n = sum(len(part["numbers"]) for part in parts)
    found = scratch.empty((n, *like.shape[1:]), like.dtype)
    at = 0
    for part in parts:
        size = len(part["numbers"])
        found[at : at + size] = part.get(name, np.nan)
        at += size
    return found


def _stack(rows: list[FloatArray | None]) -> FloatArray | None:
    """Return rows as one array, with NaN in the place of those that are missing."""
    known = [row for row in rows if row is not None]
    if not known:
        return None
    missing = np.full(known[0].shape, np.nan)
    return np.stack([missing if row is None else row for row in rows])


def _energy_of(info: StepInfo) -> FloatArray:
    """Return the energies of paths (n,); NaN where there are none."""
    return np.full(len(info.accepted), np.nan) if info.energy is None else info.energy
