"""The file of a run: its ledger, as the run writes it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

from surrokit.contracts.progress import Progress
from surrokit.contracts.sampler import ChainState
from surrokit.errors import LedgerError
from surrokit.history.history import History
from surrokit.history.scratch import Keep, Scratch, scratch_for
from surrokit.ledger.blocks import forget_blocks, write_block, write_rounds
from surrokit.ledger.facts import read_arguments, write_progress
from surrokit.ledger.lock import Lock
from surrokit.ledger.store import Store
from surrokit.ledger.tape import Tape
from surrokit.model.journal import Journal, NoJournal
from surrokit.result.weights import Weights

INTERVAL = 1.0
"""Seconds between blocks of draws, and between notes of how far the run is."""

_MOST = 256  # iterations of a block


Account: TypeAlias = Callable[[], Mapping[str, Any]]
"""Tells what a run has done so far."""

Weighed: TypeAlias = Callable[[], Weights | None]
"""Tells what came of weighted answers so far; None where none were asked for."""


class NoFile:
    """Stands in for the file of a run that has none.

    Parameters
    ----------
    journal
        The run's; None for one that keeps nothing.
    """

    def __init__(self, journal: Journal | None = None) -> None:
        self.journal: Journal = journal or NoJournal()
        self.scratch = Scratch()

    def iteration_done(
        self, stage: str, iteration: int, state: ChainState, histories: tuple[History, History]
    ) -> None:
        """Take note that an iteration is done."""

    def begin_again(self) -> None:
        """Take note that draws have become warm-up."""

    def tell(self, account: Account, weighed: Weighed) -> None:
        """Remember who tells what the run has done so far, and what came of weighted answers."""

    def write_progress(self, progress: Progress) -> None:
        """Write how far the run is, within an iteration too."""

    def close(self, histories: tuple[History, History]) -> None:
        """Write the rest, and close the file."""

    def discard(self) -> None:
        """Close the file of a run that never began."""


class RunFile:
    """The ledger of a run, as the run writes it.

    Parameters
    ----------
    store
        The ledger, open for writing.
    lock
        On it; given up when the file is closed.
    tape
        The run's journal.
    keep
        Where draws are: ``"memory"``, or ``"file"`` for a file beside the ledger.
    is_new
        Whether this run has made the file.

    Attributes
    ----------
    journal
        The tape.
    scratch
        Makes room for draws.
    path
        Where the file is.
    asked
        What the run was asked for, by name.
    """

    def __init__(
        self, store: Store, lock: Lock, tape: Tape, *, keep: Keep = "memory", is_new: bool = False
    ) -> None:
        self._is_new = is_new
        self.scratch = scratch_for(keep, store.path)
        self.journal: Journal = tape
        self.path, self.asked = store.path, read_arguments(store)
        self._tape, self._store, self._lock = tape, store, lock
        self._written = [0, 0]
        self._rewrite = True  # a run that goes on makes its draws again
        self._last, self._stage = time.perf_counter(), ""
        self._account: Account = dict
        self._weighed: Weighed = _nothing
        self._weights: Weights | None = None

    def tell(self, account: Account, weighed: Weighed) -> None:
        """Remember who tells what the run has done so far, and what came of weighted answers."""
        self._account, self._weighed = account, weighed

    def iteration_done(
        self, stage: str, iteration: int, state: ChainState, histories: tuple[History, History]
    ) -> None:
        """Take note that an iteration is done, and write now and then what is new.

        Parameters
        ----------
        stage, iteration
            Which.
        state
            Of the chains.
        histories
            Of the warm-up, and of kept draws.

        Raises
        ------
        ReplayError
            If it was another iteration before.
        LedgerError
            If the file cannot be written.
        """
        self._tape.iteration_done(stage, iteration, state.positions, state.values)
        new_stage, self._stage = stage != self._stage, stage
        if new_stage or time.perf_counter() - self._last > INTERVAL:
            self._flush(histories, "running")

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
        """Close the file of a run that never began, and remove it if it is new."""
        self._store.close()
        if self._is_new:
            self._store.path.unlink(missing_ok=True)
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
                forget_blocks(self._store)
                self._written, self._weights = [0, 0], None
            for i, stage in enumerate(("warmup", "sampling")):
                self._append(i, stage, histories[i])
            weights = self._weighed()
            if weights is not None and weights is not self._weights:
                write_rounds(self._store, weights)
            self._store.write_facts({"account": {**self._account(), "state": state}})
        self._rewrite, self._weights = False, weights

    def _append(self, i: int, stage: str, history: History) -> None:
        if len(history) > self._written[i]:
            columns = history.columns(self._written[i])
            for at in range(0, len(columns["numbers"]), _MOST):
                block = {name: array[at : at + _MOST] for name, array in columns.items()}
                block.pop("ends", None)  # of use to a surrogate alone
                write_block(self._store, stage, block)
            self._written[i] = len(history)


def _nothing() -> None:
    return None


@contextmanager
def held(
    path: Path, get: Callable[[Path], Store], *, is_new: bool = False
) -> Iterator[tuple[Store, Lock]]:
    """Yield a ledger and the lock on it, which are given up only if the block raises.

    Parameters
    ----------
    path
        The file.
    get
        Makes it, or opens it.
    is_new
        Whether the file is then removed.

    Raises
    ------
    LedgerError
        If the file is in use, or cannot be had.
    """
    lock = Lock(path)
    try:
        store = get(path)
        try:
            yield store, lock
        except BaseException:
            store.close()
            if is_new:
                path.unlink(missing_ok=True)
            raise
    except BaseException:
        lock.release()
        raise
