"""The file of a run as it is written: draws in blocks, and the account of what was done."""

from __future__ import annotations

import json
import math
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from surrokit.capabilities import CALL_KINDS
from surrokit.errors import LedgerError, SurrokitError
from surrokit.history import DTYPES, History
from surrokit.interfaces import ChainState
from surrokit.ledger.facts import read_arguments, write_progress
from surrokit.ledger.store import Lock, Store, array_of, reading
from surrokit.ledger.tape import Event, Tape
from surrokit.model.calls import Journal, NoJournal
from surrokit.progress import Progress
from surrokit.result.records import Weights
from surrokit.weighted.answer import Answer
from surrokit.weighted.round import Estimate, Round

Columns = Mapping[str, npt.NDArray[Any]]

ROUND = "round"
"""Stage of blocks that hold a round of weighted answers."""

_NO_ROUNDS = "their rounds are not in this file"

_ESTIMATED = ("value", "error", "effective", "degrees", "calls")

_TYPES = {name: np.dtype(of).newbyteorder("<").str for name, of in DTYPES.items()}

_SELECT = "SELECT id, columns, data, crc FROM draws"


def _write_block(store: Store, stage: str, columns: Columns) -> None:
    shapes = {name: array.shape for name, array in columns.items()}
    data = b"".join(columns[name].astype(_TYPES.get(name, "<f8")).tobytes() for name in shapes)
    row = (store.run, stage, json.dumps(shapes), data, zlib.crc32(data))
    statement = "INSERT INTO draws (run, stage, columns, data, crc) VALUES (?, ?, ?, ?, ?)"
    with store.writing():
        store.execute(statement, row)


def read_blocks(store: Store, stage: str, chains: int, dim: int) -> dict[str, npt.NDArray[Any]]:
    """Return the iterations of a stage, as :meth:`History.columns` returns them."""
    with reading(store.path):
        blocks = [
            (number, {name: tuple(shape) for name, shape in json.loads(columns).items()})
            for number, columns in store.rows(
                "SELECT id, columns FROM draws WHERE run = ? AND stage = ? ORDER BY id",
                (store.run, stage),
            )
        ]
        if not blocks:
            return _no_draws(chains, dim)
        names = set.intersection(*(set(shapes) for _, shapes in blocks))
        n = sum(shapes["numbers"][0] for _, shapes in blocks)
        first = blocks[0][1]
        found = {name: np.empty((n, *first[name][1:]), _TYPES.get(name, "<f8")) for name in names}
        at = 0
        for number, _ in blocks:
            block = _block(store.rows(f"{_SELECT} WHERE id = ?", (number,))[0], chains, dim)
            size = len(block["numbers"])
            for name, array in found.items():
                array[at : at + size] = block[name]
            at += size
        return found


def _write_rounds(store: Store, weights: Weights) -> None:
    """Write the rounds of weighted answers, in place of those that were written before."""
    with store.writing():
        store.execute("DELETE FROM draws WHERE run = ? AND stage = ?", (store.run, ROUND))
    rounds = () if weights.answer is None else weights.answer.rounds
    for each, constant in zip(rounds, weights.of_surrogates, strict=True):
        columns = {
            "draws": each.draws,
            "paid": each.paid,
            "log_weights": each.log_weights,
            "log_evens": each.log_evens,
            "hindsight": each.hindsight,
            "tilt": each.tilt,
            "learnt": np.array([each.learnt]),
            "constant": np.array([getattr(constant, name) for name in _ESTIMATED]),
        }
        _write_block(store, ROUND, columns)


def read_weights(store: Store, told: Mapping[str, Any], dim: int) -> Weights:
    """Return weighted answers as far as they are written, beside what their account says."""
    with reading(store.path):
        query = f"{_SELECT} WHERE run = ? AND stage = ? ORDER BY id"
        found = [_round(row, dim) for row in store.rows(query, (store.run, ROUND))]
        rounds = tuple(each for each, _ in found)
        return Weights(
            answer=Answer(rounds=rounds, calls=float(told["calls"])) if rounds else None,
            refused=told["refused"] if rounds else told["refused"] or _NO_ROUNDS,
            rejected=int(told["rejected"]),
            of_surrogates=tuple(constant for _, constant in found),
            unnormalized=tuple(map(str, told.get("unnormalized", ()))),
        )


def _round(row: tuple[Any, ...], dim: int) -> tuple[Round, Estimate]:
    columns = _unpack(row)
    if columns["paid"].shape[1] != dim:
        raise ValueError(f"the round of block {row[0]} has another dimension")
    constant = dict(zip(_ESTIMATED, columns.pop("constant"), strict=True))
    learnt = int(columns.pop("learnt")[0])
    try:
        return Round(learnt=learnt, **columns), Estimate(**constant)
    except SurrokitError as error:
        raise ValueError(f"the arrays of block {row[0]} are no round") from error


def _block(row: tuple[Any, ...], chains: int, dim: int) -> dict[str, npt.NDArray[Any]]:
    found = _unpack(row)
    n = len(found["numbers"])
    shapes = {name: array.shape[1:] for name, array in _no_draws(chains, dim).items()}
    if any(found[name].shape != (n, *shape) for name, shape in shapes.items()):
        raise ValueError(f"the arrays of block {row[0]} do not fit each other")
    return found


def _unpack(row: tuple[Any, ...]) -> dict[str, npt.NDArray[Any]]:
    number, columns, data, crc = row
    if crc != zlib.crc32(data):
        raise ValueError(f"the checksum of block {number} is wrong")
    found, at = {}, 0
    for name, shape in json.loads(columns).items():
        of = np.dtype(_TYPES.get(name, "<f8"))
        size = of.itemsize * math.prod(shape)
        found[name] = array_of(data[at : at + size], shape, of.str)
        at += size
    return found


def _no_draws(chains: int, dim: int) -> dict[str, npt.NDArray[Any]]:
    return {
        "positions": np.empty((0, chains, dim)),
        "numbers": np.empty((0, 3 + len(CALL_KINDS))),
        **{name: np.empty((0, chains), dtype=of) for name, of in DTYPES.items()},
    }


INTERVAL = 1.0
"""Seconds between blocks of draws, and between notes of how far the run is."""

_MOST = 256  # iterations of a block


class NoFile:
    """Stands in for the file of a run that has none: nothing is written, and no path was left."""

    def __init__(self, journal: Journal | None = None) -> None:
        self.journal: Journal = journal or NoJournal()
        self.n_left = 0

    def take_left(self) -> list[Event]:
        """Return nothing: no path was left."""
        return []

    def iteration_done(
        self, stage: str, iteration: int, state: ChainState, histories: tuple[History, History]
    ) -> None:
        """Take note that an iteration is done."""

    def begin_again(self) -> None:
        """Take note that draws have become warm-up."""

    def tell(
        self, account: Callable[[], Mapping[str, Any]], weighed: Callable[[], Weights | None]
    ) -> None:
        """Remember who tells what the run has done so far, and what came of weighted answers."""

    def write_progress(self, progress: Progress) -> None:
        """Write how far the run is, within an iteration too."""

    def close(self, histories: tuple[History, History]) -> None:
        """Write the rest, and close the file."""

    def discard(self) -> None:
        """Close the file of a run that never began."""


class RunFile:
    """The file of a run, as the run writes it; the lock on it is given up when it is closed.

    Attributes
    ----------
    path, run
        Where it is.
    asked
        What the run was asked for, by name.
    """

    def __init__(self, store: Store, lock: Lock, tape: Tape, *, is_new: bool = False) -> None:
        self._is_new = is_new
        self.journal: Journal = tape
        self.path, self.run, self.asked = store.path, store.run, read_arguments(store)
        self._tape, self._store, self._lock = tape, store, lock
        self._written = [0, 0]
        self._rewrite = True  # a run that goes on makes its draws again
        self._last, self._stage = time.perf_counter(), ""
        self._account: Callable[[], Mapping[str, Any]] = dict
        self._weighed: Callable[[], Weights | None] = lambda: None
        self._weights: Weights | None = None

    def tell(
        self, account: Callable[[], Mapping[str, Any]], weighed: Callable[[], Weights | None]
    ) -> None:
        """Remember who tells what the run has done so far, and what came of weighted answers."""
        self._account, self._weighed = account, weighed

    def iteration_done(
        self, stage: str, iteration: int, state: ChainState, histories: tuple[History, History]
    ) -> None:
        """Take note that an iteration is done, and write now and then what is new."""
        self._tape.iteration_done(stage, iteration, state.positions, state.values)
        new_stage, self._stage = stage != self._stage, stage
        if new_stage or time.perf_counter() - self._last > INTERVAL:
            self._flush(histories, "running")

    @property
    def n_left(self) -> int:
        """Evaluations on paths that the run has left, as it could not be repeated."""
        return self._tape.n_left

    def take_left(self) -> list[Event]:
        """Return the calls on such paths that the run has not learnt from yet."""
        return self._tape.take_left()

    def begin_again(self) -> None:
        """Take note that draws have become warm-up."""
        self._rewrite = True

    def write_progress(self, progress: Progress) -> None:
        """Write how far the run is, for those who look at the file; nothing depends on it."""
        if not self._tape.replays:
            with suppress(LedgerError):
                write_progress(self._store, progress)

    def close(self, histories: tuple[History, History]) -> None:
        """Write the rest, and close the file; what cannot be written is no loss for a resume."""
        try:
            self._flush(histories, "ended")
        except LedgerError:
            return
        finally:
            self._store.close()
            self._lock.release()

    def discard(self) -> None:
        """Close the file of a run that never began, and remove what it holds of a new one."""
        if self._is_new:
            forget_new(self._store)
        else:
            self._store.close()
        self._lock.release()

    def _flush(self, histories: tuple[History, History], state: str) -> None:
        self._last = time.perf_counter()
        self._tape.write()
        if self._tape.replays:
            return
        self._tape.mark()
        anew, self._rewrite = self._rewrite, True  # unless all of this is written
        with self._store.transaction():
            if anew:
                with self._store.writing():
                    self._store.execute("DELETE FROM draws WHERE run = ?", (self.run,))
                self._written, self._weights = [0, 0], None
            for i, stage in enumerate(("warmup", "sampling")):
                self._append(i, stage, histories[i])
            weights = self._weighed()
            if weights is not None and weights is not self._weights:
                _write_rounds(self._store, weights)
            self._store.write_facts({"account": {**self._account(), "state": state}})
        self._rewrite, self._weights = False, weights

    def _append(self, i: int, stage: str, history: History) -> None:
        if len(history) > self._written[i]:
            columns = history.columns(self._written[i])
            for at in range(0, len(columns["numbers"]), _MOST):
                block = {name: array[at : at + _MOST] for name, array in columns.items()}
                block.pop("ends", None)  # of use to a surrogate alone
                _write_block(self._store, stage, block)
            self._written[i] = len(history)


def forget_new(store: Store) -> None:
    """Close the file of a run that never began without that run; remove it if nothing is left."""
    is_empty = False
    with suppress(LedgerError):
        store.forget_run()
        is_empty = not store.rows("SELECT 1 FROM facts LIMIT 1")
    store.close()
    if is_empty:
        store.path.unlink(missing_ok=True)


@contextmanager
def held(
    path: Path, get: Callable[[Path], Store], *, is_new: bool = False
) -> Iterator[tuple[Store, Lock]]:
    """Yield what ``get`` opens, and the lock on it, which are given up only if the block raises.

    A run that is new is then removed.
    """
    lock = Lock(path)
    try:
        store = get(path)
        try:
            yield store, lock
        except BaseException:
            if is_new:
                forget_new(store)
            else:
                store.close()
            raise
    except BaseException:
        lock.release()
        raise
