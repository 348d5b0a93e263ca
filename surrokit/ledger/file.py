"""The file of a run as it is written: draws in blocks, and the account of what was done."""

from __future__ import annotations

import time
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
from surrokit.ledger.facts import PROGRESS, WeightsAccount, read_arguments
from surrokit.ledger.store import Arrays, Lock, Store, pack, reading, unpack
from surrokit.ledger.tape import Tape
from surrokit.progress import Progress
from surrokit.result.records import Weights
from surrokit.weighted.answer import Answer
from surrokit.weighted.round import Estimate, Round

ROUND = "round"
"""Stage of blocks that hold a round of weighted answers."""

INTERVAL = 1.0
"""Seconds between blocks of draws, and between notes of how far the run is."""

_ESTIMATED = ("value", "error", "effective", "degrees", "calls")
_ARRAYS = (
    "draws",
    "evaluated",
    "log_weights",
    "log_surrogate_weights",
    "looked_at",
    "looked_at_weights",
    "predictive_variance",
    "density_ratio",
    "realisations",
)


def _write_block(store: Store, stage: str, arrays: Arrays) -> None:
    with reading(store.path):
        statement = "INSERT INTO draws (stage, arrays, data, crc) VALUES (?, ?, ?, ?)"
        store.execute(statement, (stage, *pack(arrays)))


def _read_blocks(store: Store, stage: str) -> Iterator[tuple[int, dict[str, npt.NDArray[Any]]]]:
    """Yield the number of each block of a stage, and its arrays by name."""
    query = "SELECT id FROM draws WHERE stage = ? ORDER BY id"
    for (number,) in store.rows(query, (stage,)):
        (row,) = store.rows("SELECT arrays, data, crc FROM draws WHERE id = ?", (number,))
        yield number, unpack(row, f"block {number}")


def read_blocks(store: Store, stage: str, chains: int, dim: int) -> dict[str, npt.NDArray[Any]]:
    """Return the iterations of a stage, as :meth:`History.columns` returns them."""
    none: dict[str, npt.NDArray[Any]] = {
        "positions": np.empty((0, chains, dim)),
        "numbers": np.empty((0, 3 + len(CALL_KINDS))),
        **{name: np.empty((0, chains), dtype=of) for name, of in DTYPES.items()},
    }
    blocks = []
    with reading(store.path):
        for number, block in _read_blocks(store, stage):
            n = len(block["numbers"])
            if any(block[name].shape != (n, *array.shape[1:]) for name, array in none.items()):
                raise ValueError(f"the arrays of block {number} do not fit each other")
            blocks.append(block)
        names = set.intersection(*map(set, blocks or [none]))
        return {name: np.concatenate([each[name] for each in blocks or [none]]) for name in names}


def _write_rounds(store: Store, weights: Weights) -> None:
    """Write the rounds of weighted answers, in place of those that were written before."""
    with reading(store.path):
        store.execute("DELETE FROM draws WHERE stage = ?", (ROUND,))
    rounds = () if weights.answer is None else weights.answer.rounds
    for each, constant in zip(rounds, weights.of_surrogates, strict=True):
        arrays = {name: getattr(each, name) for name in _ARRAYS}
        arrays["numbers"] = np.array([each.learnt, each.log_mass])
        arrays["constant"] = np.array([getattr(constant, name) for name in _ESTIMATED])
        _write_block(store, ROUND, arrays)


def read_weights(store: Store, reported: WeightsAccount, dim: int) -> Weights:
    """Return weighted answers as far as they are written, beside what their account says."""
    rounds, constants = [], []
    with reading(store.path):
        for number, arrays in _read_blocks(store, ROUND):
            if arrays["evaluated"].shape[1] != dim:
                raise ValueError(f"the round of block {number} has another dimension")
            constant = dict(zip(_ESTIMATED, arrays.pop("constant"), strict=True))
            learnt, log_mass = map(float, arrays.pop("numbers"))
            try:
                rounds.append(Round(learnt=int(learnt), log_mass=log_mass, **arrays))
            except SurrokitError as error:
                raise ValueError(f"the arrays of block {number} are no round") from error
            constants.append(Estimate(**constant))
        return Weights(
            answer=Answer(rounds=tuple(rounds), calls=reported.calls) if rounds else None,
            reason=reported.reason or (None if rounds else "their rounds are not in this file"),
            rejected=reported.rejected,
            of_surrogates=tuple(constants),
            unnormalized=reported.unnormalized,
        )


class RunFile:
    """The file of a run, as the run writes it; the lock on it is given up when it is closed.

    Attributes
    ----------
    path
        Where it is.
    asked
        What the run was asked for, by name.
    journal
        Repeats what it holds, and keeps what comes then.
    """

    def __init__(self, store: Store, lock: Lock, *, is_new: bool = False) -> None:
        self._is_new = is_new
        self.path, self.asked = store.path, read_arguments(store)
        self._store, self._lock = store, lock
        self.journal = Tape(store)
        self._written = [0, 0]
        self._rewrite = True  # a run that goes on makes its draws again
        self._last, self._stage = time.perf_counter(), ""
        self._account: Callable[[], Mapping[str, Any]] = dict
        self._weighed: Callable[[], Weights | None] = lambda: None
        self._weights: Weights | None = None

    def iteration_done(
        self, stage: str, iteration: int, state: ChainState, histories: tuple[History, History]
    ) -> None:
        """Take note that an iteration is done, and write now and then what is new."""
        self.journal.iteration_done(stage, iteration, state.positions, state.values)
        new_stage, self._stage = stage != self._stage, stage
        if new_stage or time.perf_counter() - self._last > INTERVAL:
            self._flush(histories, "running")

    def begin_again(self) -> None:
        """Take note that draws have become warm-up."""
        self._rewrite = True

    def tell(
        self, account: Callable[[], Mapping[str, Any]], weighed: Callable[[], Weights | None]
    ) -> None:
        """Remember what reports how far the run is, and what came of weighted answers."""
        self._account, self._weighed = account, weighed

    def write_progress(self, progress: Progress) -> None:
        """Write how far the run is, for those who look at the file; nothing depends on it."""
        if not self.journal.replays:
            with suppress(LedgerError), self._store.transaction():
                self._store.write_facts({PROGRESS: {"text": str(progress), "at": time.time()}})

    def close(self, histories: tuple[History, History]) -> None:
        """Write the rest, and close the file; what cannot be written is no loss for a resume."""
        try:
            with suppress(LedgerError):
                self._flush(histories, "ended")
        finally:
            self._store.close()
            self._lock.release()

    def discard(self) -> None:
        """Close the file of a run that never began, and remove a new one."""
        self._store.close()
        if self._is_new:
            self.path.unlink(missing_ok=True)
        self._lock.release()

    def _flush(self, histories: tuple[History, History], state: str) -> None:
        self._last = time.perf_counter()
        self.journal.write()
        if self.journal.replays:
            return
        self.journal.mark()
        anew, self._rewrite = self._rewrite, True  # unless all of this is written
        with self._store.transaction():
            if anew:
                with reading(self.path):
                    self._store.execute("DELETE FROM draws")
                self._written, self._weights = [0, 0], None
            for i, (stage, history) in enumerate(
                zip(("warmup", "sampling"), histories, strict=True)
            ):
                if len(history) > self._written[i]:
                    columns = history.columns(self._written[i])
                    columns.pop("ends", None)  # of use to a surrogate alone
                    for at in range(0, len(columns["numbers"]), 256):
                        block = {name: array[at : at + 256] for name, array in columns.items()}
                        _write_block(self._store, stage, block)
                    self._written[i] = len(history)
            weights = self._weighed()
            if weights is not None and weights is not self._weights:
                _write_rounds(self._store, weights)
            self._store.write_facts({"account": {**self._account(), "state": state}})
        self._rewrite, self._weights = False, weights


@contextmanager
def held(path: Path, get: Callable[[Path], Store]) -> Iterator[tuple[Store, Lock]]:
    """Yield what ``get`` opens, and the lock on it, which are given up only if the block raises."""
    lock = Lock(path)
    try:
        store = get(path)
        try:
            yield store, lock
        except BaseException:
            store.close()
            raise
    except BaseException:
        lock.release()
        raise
