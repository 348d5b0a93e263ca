"""The tape of a run: a journal in a ledger, which first says what it holds and then goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, MutableMapping

import numpy as np

from surrokit.contracts.methods import CallKind
from surrokit.cost.journal import BEYOND, Fail, Results
from surrokit.errors import ReplayError
from surrokit.ledger.events import (
    DONE,
    MARK,
    RAISED,
    Event,
    Note,
    read_events,
    write_event,
)
from surrokit.ledger.known import Known
from surrokit.ledger.store import Store
from surrokit.types import FloatArray

AT_STAKE = 1e-2
"""Seconds of exact calls that a kill may lose at most: to write each cheap call by itself would
take longer than the call."""

_WHAT_NOW = (
    "the run depends on more than its settings, target and seed: other versions, another machine "
    "or other BLAS threads, or a target that is no function of its position. Begin a new run that "
    "learns from what is paid for: surrokit.sample(target, warm_start=..., path=...)"
)


class Tape:
    """A journal that says what its ledger holds, and then keeps what happens.

    Only what is sure to happen again is kept: calls that returned, and the clock's readings up to
    them or up to the last iteration that was done. Whatever ends a run, the tape ends at such a
    point, from which the run goes on as if nothing had been.

    Parameters
    ----------
    store
        The ledger.
    known
        Evaluations of other ledgers, which are not paid for again.
    """

    def __init__(self, store: Store, known: Known | None = None) -> None:
        self._store = store
        self._known = known or Known()
        self._events = (event for event in read_events(store) if event.outcome == DONE)
        self._event = next(self._events, None)
        self._served = 0
        self._passed: Event | None = None
        self._pending: list[float] = []
        self._sure = 0
        self._chains: tuple[FloatArray, FloatArray] | None = None
        self._inside = False
        self._differs = False
        self._at_stake = 0.0
        self._notes: list[Note] = []
        self._batch: FloatArray = np.empty((0, 0))
        self.stage, self.iteration = "start", 0

    @property
    def replays(self) -> bool:
        """Whether the ledger holds more than was asked for so far."""
        return self._event is not None or self._differs

    @property
    def position(self) -> int:
        """Number of the event that comes next."""
        return BEYOND if self._event is None else self._event.number

    @property
    def saved(self) -> float:
        """Seconds that calls would have taken whose results were known."""
        return self._known.seconds

    # --- the clock ---

    def reading(self, now: float) -> float:
        """Return the reading that the ledger holds, or else keep this one."""
        event = self._event
        if event is None:
            self._pending.append(now)
            return now
        if self._differs:
            return now
        if self._served == len(event.readings):
            raise self._differ("the run reads its clock where it did not before")
        self._served += 1
        read = float(event.readings[self._served - 1])
        if event.is_mark and self._served == len(event.readings):
            self._passed = event
            self._advance()
        return read

    # --- iterations ---

    def iteration_done(
        self, stage: str, iteration: int, positions: FloatArray, values: FloatArray
    ) -> None:
        """Take note that an iteration is done.

        Parameters
        ----------
        stage, iteration
            Which.
        positions : ndarray of shape (n, dim)
            Of the chains.
        values : ndarray of shape (n,)
            Exact U there, which also tells of an energy that is not the one before.

        Raises
        ------
        ReplayError
            If the ledger holds other positions.
        """
        self.stage, self.iteration = stage, iteration
        passed, self._passed = self._passed, None
        if passed is not None and not (
            passed.iteration == iteration
            and _same(passed.positions, positions)
            and passed.results is not None
            and _same(passed.results[0], values)
        ):
            raise self._differ(f"after iteration {iteration} the chains are not where they were")
        if self._event is None:
            self._sure, self._chains = len(self._pending), (positions, values)

    def mark(self) -> None:
        """Write what is sure since the last event."""
        if self.replays or not self._sure or self._chains is None:
            return
        readings, self._pending = self._pending[: self._sure], self._pending[self._sure :]
        self._sure = 0
        positions, values = self._chains
        self._write(MARK, positions, _canonical((values,)), readings)

    # --- calls ---

    def call(
        self,
        kind: CallKind,
        positions: FloatArray,
        evaluate: Callable[[FloatArray], Results],
        counts: MutableMapping[str, int],
        fail: Fail,
    ) -> Results:
        """Return the results that the ledger holds, or else pay for them and keep them.

        Data rows are evaluated again: they are cheap, and far too many to be kept.

        Raises
        ------
        ReplayError
            If the ledger holds another call.
        LedgerError
            If it cannot be written.
        """
        if self._inside or kind == "rows":
            return evaluate(positions)
        if self._event is not None:
            return self._repeat(kind, positions, counts, fail)
        before, began = dict(counts), time.perf_counter()
        self._inside, self._notes, self._batch = True, [], positions
        readings, self._pending, self._sure = self._pending, [], 0
        outcome, results = RAISED, None
        try:
            results = _canonical(self._known.complete(kind, positions, evaluate))
            outcome = DONE
        finally:
            self._inside = False
            seconds = time.perf_counter() - began
            paid = {name: n - before[name] for name, n in counts.items() if n != before[name]}
            if outcome == DONE or paid:
                self._write(kind, positions, results, readings, outcome, seconds, paid)
        return results

    def note(self, what: str, positions: FloatArray, overflow: bool) -> None:
        """Take in a failure of the call in progress."""
        if self._inside:
            rows = _rows_of(positions, self._batch)
            self._notes.append(Note(what=what, overflow=overflow, rows=rows))

    def _repeat(
        self,
        kind: CallKind,
        positions: FloatArray,
        counts: MutableMapping[str, int],
        fail: Fail,
    ) -> Results:
        event = self._event
        assert event is not None
        if event.kind != kind or self._served != len(event.readings):
            raise self._differ(
                f"the run asks for {kind} of {len(positions)} positions after iteration "
                f"{self.iteration}, where its ledger goes on with {event.kind} of "
                f"{len(event.positions)}"
            )
        if not _same(event.positions, positions):
            raise self._differ(
                f"the run asks for {kind} after iteration {self.iteration} at another position "
                "than its ledger holds"
            )
        for name, n in event.counts.items():
            counts[name] += n
        for note in event.notes:
            fail(note.what, positions[list(note.rows)], note.overflow)
        self._advance()
        return event.results

    def _differ(self, what: str) -> ReplayError:
        """Write nothing from here on, and return the error."""
        self._differs = True
        return ReplayError(f"{what}; {_WHAT_NOW}")

    def _advance(self) -> None:
        self._served = 0
        try:
            self._event = next(self._events, None)
            while self._event is not None and self._event.is_mark and not len(self._event.readings):
                self._event = next(self._events, None)
        except BaseException:
            self._differs = True
            raise

    def _write(
        self,
        kind: str,
        positions: FloatArray,
        results: Results,
        readings: list[float],
        outcome: str = DONE,
        seconds: float = 0.0,
        paid: Mapping[str, int] | None = None,
    ) -> None:
        event = Event(
            kind=kind,
            outcome=outcome,
            stage=self.stage,
            iteration=self.iteration,
            positions=np.ascontiguousarray(positions, dtype=np.float64),
            results=results,
            seconds=seconds,
            counts=paid or {},
            notes=self._notes,
            readings=np.array(readings, dtype=np.float64),
        )
        self._notes = []
        self._at_stake += seconds
        self._store.begin()
        write_event(self._store, event)
        if self._at_stake > AT_STAKE or event.is_mark or outcome != DONE:
            self._store.commit()
            self._at_stake = 0.0


def _canonical(results: Results) -> Results:
    """Return results as they will be read: rounding depends on how an array lies in memory."""
    if results is None:
        return None
    return tuple(np.ascontiguousarray(array, dtype=np.float64) for array in results)


def _same(one: FloatArray, other: FloatArray) -> bool:
    return one.shape == other.shape and one.tobytes() == np.asarray(other, np.float64).tobytes()


def _rows_of(positions: FloatArray, batch: FloatArray) -> tuple[int, ...]:
    """Return the rows of a batch at which some positions stand."""
    numbers = {row.tobytes(): i for i, row in enumerate(batch)}
    return tuple(numbers[row.tobytes()] for row in positions if row.tobytes() in numbers)
