"""Events of a run in order, and the journal that repeats them and goes on."""

from __future__ import annotations

import itertools
import json
import math
import time
import warnings
import zlib
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any

import attrs
import numpy as np

from surrokit.capabilities import ALL_BY_NAME, CALL_KINDS
from surrokit.errors import BudgetSpent, LedgerError, SamplingWarning
from surrokit.ledger.store import Store, array_of, reading
from surrokit.model.calls import BEYOND, Call, Memo
from surrokit.model.outcome import Answer, Cause, Cure
from surrokit.types import FloatArray

MARK = "mark"
"""Kind of an event that is no call: the end of an iteration."""

DONE, ASIDE, RAISED, APART, LEFT = "done", "aside", "raised", "apart", "left"
"""Outcomes of a batch: it returned; it returned, and nothing that follows depends on it; it raised,
and the run with it; it returned, and the run that is repeated from this ledger makes no use of it;
it lies on a path that the run has left, as it could not be repeated to the bit."""

COLUMNS = (
    "kind, outcome, stage, iteration, width, seconds, shapes, counts, notes, positions, results, "
    "readings, crc"
)
"""Columns of the table of events, in the order in which :func:`event_of` takes them."""


@attrs.frozen(kw_only=True, eq=False)
class Event:
    """A batch of exact calls, or a mark."""

    number: int = 0
    kind: str  # a name of surrokit.capabilities, or MARK
    outcome: str = DONE
    stage: str = ""
    iteration: int = 0  # those that were done by then
    positions: FloatArray  # (n, width), of the model, or of the chains in sampling coordinates
    results: tuple[FloatArray, ...] | None = None  # (n, ...) each; None where every row failed
    seconds: float = 0.0  # of the batch
    counts: Mapping[str, int] = attrs.field(factory=dict)  # kind to calls that were paid for
    causes: Mapping[int, Cause] = attrs.field(factory=dict)  # row to why it failed
    cures: Sequence[Cure] = ()
    readings: FloatArray  # (k,), of the clock since the event before

    @property
    def is_mark(self) -> bool:
        """Whether it is no call."""
        return self.kind == MARK

    @property
    def answer(self) -> Answer:
        """What came back."""
        return Answer(results=self.results, causes=self.causes, cures=self.cures)


def write_events(store: Store, events: Iterable[Event]) -> None:
    """Append events; they are safe when the store commits."""
    rows = []
    for event in events:
        positions, readings = event.positions.tobytes(), event.readings.tobytes()
        results, shapes, counts = None, None, None
        if event.results is not None:
            results = b"".join(array.tobytes() for array in event.results)
            shapes = json.dumps([array.shape[1:] for array in event.results])
        if not event.is_mark and event.counts != _usual(event.kind, len(event.positions)):
            counts = json.dumps(event.counts)
        notes: list[list[Any]] = [[row, *attrs.astuple(each)] for row, each in event.causes.items()]
        notes += [
            [None, *attrs.astuple(each.cause), each.position.tolist()] for each in event.cures
        ]
        rows.append(
            (
                *(store.run, event.kind, event.outcome, event.stage, event.iteration),
                *(event.positions.shape[1], event.seconds, shapes, counts),
                *(json.dumps(notes) if notes else None, positions, results, readings),
                _checksum(positions, results, readings),
            )
        )
    with store.writing():
        statement = f"INSERT INTO events (run, {COLUMNS}) VALUES ({', '.join('?' * 14)})"
        store.execute_many(statement, rows)


def leave_events(store: Store, first: int) -> None:
    """Note that events from a number on lie on a path that the run has left."""
    with store.writing():
        statement = "UPDATE events SET outcome = ? WHERE run = ? AND id >= ? AND outcome = ?"
        store.execute(statement, (LEFT, store.run, first, DONE))


def read_events(
    store: Store, *, after: int = 0, calls_alone: bool = False, asides_alone: bool = False
) -> Iterator[Event]:
    """Yield the events of a run in order, perhaps only calls, or those that were made aside."""
    also = f"AND kind != '{MARK}'" if calls_alone else ""
    also += f" AND outcome = '{ASIDE}'" if asides_alone else ""
    query = f"SELECT id, {COLUMNS} FROM events WHERE run = ? AND id > ? {also} ORDER BY id LIMIT 64"
    while True:
        with reading(store.path):
            rows = store.rows(query, (store.run, after))
            events = [event_of(number, row) for number, *row in rows]
            if any(b <= a for a, b in itertools.pairwise([after, *(row[0] for row in rows)])):
                raise ValueError("events are out of order")
        yield from events
        if len(rows) < 64:
            return
        after = rows[-1][0]


def last_event(store: Store) -> int:
    """Return the number of the run's last event; 0 if there is none."""
    query = "SELECT coalesce(max(id), 0) FROM events WHERE run = ?"
    with reading(store.path):
        return int(store.rows(query, (store.run,))[0][0])


def event_of(number: int, row: Sequence[Any]) -> Event:
    """Return the event of a row."""
    kind, outcome, stage, iteration, width, seconds, shapes, counts, notes, *blobs, crc = row
    positions, results, readings = blobs
    if crc != _checksum(positions, results, readings):
        raise ValueError(f"the checksum of event {number} is wrong")
    if kind != MARK and kind not in ALL_BY_NAME:
        raise ValueError(f"event {number} is of no known kind")
    at = array_of(positions, (-1 if not width else len(positions) // (8 * width), width))
    n, arrays, begin = len(at), [], 0
    for shape in json.loads(shapes) if shapes is not None else ():
        size = 8 * n * math.prod(shape)
        arrays.append(array_of(results[begin : begin + size], (n, *shape)))
        begin += size
    if shapes is not None and begin != len(results):
        raise ValueError("results do not have the shapes that are told")
    counted = {} if kind == MARK else _usual(kind, n)
    if counts is not None:
        counted = {str(name): int(count) for name, count in json.loads(counts).items()}
        if not counted.keys() <= set(CALL_KINDS):
            raise ValueError("calls of no known kind are counted")
    causes, cures = {}, []
    for failed, of, report, *where in json.loads(notes) if notes is not None else ():
        cause = Cause(kind=str(of), report=str(report))
        if failed is None:
            (position,) = where
            cures.append(Cure(cause, np.array(position, dtype=np.float64)))
        else:
            causes[int(failed)] = cause
    return Event(
        number=int(number),
        kind=kind,
        outcome=str(outcome),
        stage=str(stage),
        iteration=int(iteration),
        positions=at,
        results=None if shapes is None else tuple(arrays),
        seconds=float(seconds),
        counts=counted,
        causes=causes,
        cures=cures,
        readings=array_of(readings, (len(readings) // 8,)),
    )


def _usual(what: str, n: int) -> dict[str, int]:
    """Return what n positions count as, unless a model counts otherwise."""
    kind = ALL_BY_NAME[what].kind
    assert kind is not None
    return {kind: n}


def _checksum(positions: bytes, results: bytes | None, readings: bytes) -> int:
    return zlib.crc32(readings, zlib.crc32(results or b"", zlib.crc32(positions)))


AT_STAKE = 1e-2
"""Seconds of exact calls that a kill may lose at most: to write each cheap call by itself would
take longer than the call, and costs several times as much after a call that slept or that has
emptied the processor's caches."""

_WHAT_NOW = (
    "The run cannot be repeated to the bit: versions, the machine or BLAS threads are others, or "
    "the target is no function of its position. It goes on from there, learns from the {n} "
    "evaluations that follow in its file, and evaluates none of them again"
)


class Tape:
    """A journal that says what its ledger holds, and then keeps what happens.

    Where the run departs from its ledger by as little as a last bit, it goes on as a new path.

    Only what is sure to happen again is kept: calls that returned, and the clock's readings up to
    them or up to the last iteration that was done. Whatever ends a run, the tape ends at such a
    point, from which the run goes on as if nothing had been. If it ``leaves`` no path, a run that
    departs from its ledger raises, and nothing is written.
    """

    def __init__(self, store: Store, *, leaves: bool = True) -> None:
        self._store, self._leaves = store, leaves
        self._left: list[Event] = []  # of paths that were left, not shown to the run yet
        self._shown: list[Event] = []
        self._memo = Memo(grows=False)
        self.n_left = 0
        self._events = self._on_path()
        self._event = next(self._events, None)
        self._served = 0
        self._passed: Event | None = None
        self._pending: list[float] = []
        self._sure = 0
        self._chains: tuple[FloatArray, FloatArray] | None = None
        self._inside = False
        self._differs = False
        self._at_stake = 0.0
        self._unwritten: list[Event] = []
        self._asides: dict[tuple[str, bytes], list[Event]] | None = None
        self.stage, self.iteration = "start", 0

    def _on_path(self) -> Iterator[Event]:
        """Yield the events that the run repeats, and gather calls of paths that it has left."""
        for event in read_events(self._store):
            if event.outcome == DONE:
                yield event
            elif event.outcome == LEFT and not event.is_mark:
                self._left.append(event)

    @property
    def replays(self) -> bool:
        """Whether the ledger holds more than was asked for so far."""
        return self._event is not None or self._differs

    @property
    def position(self) -> int:
        """Number of the event that comes next."""
        return BEYOND if self._event is None else self._event.number

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
            self._leave("the run reads its clock where it did not before", event)
            self._pending.append(now)
            return now
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
        """Take note that an iteration is done, with the chains at ``positions`` (n, dim).

        Exact U there, ``values`` (n,), also tells of an energy that is not the one before.
        """
        self.stage, self.iteration = stage, iteration
        passed, self._passed = self._passed, None
        if passed is not None and not (
            passed.iteration == iteration
            and _same(passed.positions, positions)
            and passed.results is not None
            and _same(passed.results[0], values)
        ):
            self._leave(f"after iteration {iteration} the chains are not where they were", passed)
        if self._event is None:
            self._sure, self._chains = len(self._pending), (positions, values)

    def mark(self) -> None:
        """Write what is sure since the last event."""
        if self.replays or not self._sure or self._chains is None:
            return
        readings, self._pending = self._pending[: self._sure], self._pending[self._sure :]
        self._sure = 0
        positions, values = self._chains
        self._keep(MARK, positions, _canonical(Answer(results=(values,))), readings)

    # --- calls ---

    def answer(self, call: Call) -> Answer:
        """Return the answer that the ledger holds, or else pay for it and keep it.

        Data rows are evaluated again: they are cheap, and far too many to be kept. ``BudgetSpent``
        is raised where the run went on without a call that is made aside.
        """
        if self._inside or call.what == "rows":
            return call.evaluate(call.positions)
        if call.aside:
            return self._answer_aside(call)
        event, kind, positions = self._event, call.what, call.positions
        if event is not None:
            after = f"the run asks for {kind} after iteration {self.iteration}"
            if event.kind != kind or self._served != len(event.readings):
                goes_on = f"{event.kind} of {len(event.positions)} positions"
                trouble = f"{after}, of {len(positions)} positions, where its ledger goes on with"
                self._leave(f"{trouble} {goes_on}", event)
            elif not _same(event.positions, positions):
                self._leave(f"{after} at another position than its ledger holds", event)
        self._show(call.counts)
        if self._event is not None:
            event = self._event
            self._advance()
            return _tell(event, call.counts)
        readings, self._pending, self._sure = self._pending, [], 0
        return self._pay(call, DONE, readings)

    def _answer_aside(self, call: Call) -> Answer:
        """Return the answer to a call that a run which is extended does not make."""
        if self._asides is None:
            self._asides = {}
            for event in read_events(self._store, asides_alone=True):
                self._asides.setdefault((event.kind, event.positions.tobytes()), []).append(event)
        held = self._asides.get((call.what, call.positions.tobytes()))
        if held:
            return _tell(held.pop(0), call.counts)
        if self.replays:  # a limit forbade it
            raise BudgetSpent("max_calls")
        return self._pay(call, ASIDE, [])

    def _pay(self, call: Call, outcome: str, readings: list[float]) -> Answer:
        counts, began, answer = call.counts, time.perf_counter(), None
        before = dict(counts)
        self._inside = True
        try:
            if len(self._memo):  # of paths that were left
                at = call.positions
                answer = _canonical(self._memo.complete(call.what, at, at, call.evaluate))
            else:
                answer = _canonical(call.evaluate(call.positions))
        finally:
            self._inside = False
            seconds = time.perf_counter() - began
            paid = {name: n - before[name] for name, n in counts.items() if n != before[name]}
            if answer is not None or paid:
                outcome = RAISED if answer is None else outcome
                kept = answer or Answer(results=None)
                self._keep(call.what, call.positions, kept, readings, outcome, seconds, paid)
        return answer

    # --- a path that is left ---

    def _leave(self, trouble: str, first: Event) -> None:
        """Leave the path that the ledger holds, from an event on, and warn of it.

        What was evaluated along it is shown to the run with its next call, so that the run learns
        from it and evaluates none of it again. The file as it is stays as a copy, with its draws.
        """
        if not self._leaves:
            self._differs = True
            raise LedgerError(
                f"{trouble}. {self._store.path} is of a run that has come to its end, and that "
                "cannot be repeated here to the bit; read it with surrokit.open_run(...), or ask "
                "for more draws"
            )
        copied = self._store.copy()
        read = [] if first is self._event else [first.readings]  # a mark that was passed already
        if self._event is not None:
            read.append(self._event.readings[: self._served])
        self._pending, self._event, self._events = [*np.concatenate(read)], None, iter(())
        rest = read_events(self._store, after=first.number - 1)
        self._left += [event for event in rest if event.outcome == DONE and not event.is_mark]
        with self._store.transaction():
            leave_events(self._store, first.number)
        warnings.warn(
            f"{trouble}. {_WHAT_NOW.format(n=sum(len(each.positions) for each in self._left))}; "
            f"the file as it was stays as {copied.name}",
            SamplingWarning,
            stacklevel=2,
        )

    def _show(self, counts: MutableMapping[str, int]) -> None:
        """Show the run what was evaluated on paths that it has left before the next event."""
        if not self._left:
            return
        before = self.position
        shown = [event for event in self._left if event.number < before]
        self._left = [event for event in self._left if event.number >= before]
        for event in shown:
            self.n_left += len(event.positions)
            for name, n in event.counts.items():
                counts[name] += n
            if event.results is not None:
                self._memo.add(event.kind, event.positions, event.results, event.seconds)
        self._shown += shown

    def take_left(self) -> list[Event]:
        """Return the calls of paths that were left which the run has not learnt from yet."""
        shown, self._shown = self._shown, []
        return shown

    def _advance(self) -> None:
        self._served = 0
        try:
            self._event = next(self._events, None)
            while self._event is not None and self._event.is_mark and not len(self._event.readings):
                self._event = next(self._events, None)
        except BaseException:
            self._differs = True
            raise

    def _keep(
        self,
        kind: str,
        positions: FloatArray,
        answer: Answer,
        readings: list[float],
        outcome: str = DONE,
        seconds: float = 0.0,
        paid: Mapping[str, int] | None = None,
    ) -> None:
        results = answer.results
        event = Event(
            kind=kind,
            outcome=outcome,
            stage=self.stage,
            iteration=self.iteration,
            positions=np.array(positions, dtype=np.float64, order="C"),
            results=None if results is None else tuple(array.copy() for array in results),
            seconds=seconds,
            counts=paid or {},
            causes=answer.causes,
            cures=answer.cures,
            readings=np.array(readings, dtype=np.float64),
        )
        self._unwritten.append(event)
        self._at_stake += seconds
        full = self._at_stake > AT_STAKE or len(self._unwritten) == 256
        if full or event.is_mark or outcome != DONE:
            self.write()

    def write(self) -> None:
        """Write for good what is kept."""
        if self._unwritten:
            with self._store.transaction():
                write_events(self._store, self._unwritten)
            self._unwritten.clear()
        self._at_stake = 0.0


def _canonical(answer: Answer) -> Answer:
    """Return results as they will be read: rounding depends on how an array lies in memory."""
    results = answer.results
    if results is None or all(a.flags.c_contiguous and a.dtype == np.float64 for a in results):
        return answer
    plain = tuple(np.ascontiguousarray(array, dtype=np.float64) for array in results)
    return attrs.evolve(answer, results=plain)


def _same(one: FloatArray, other: FloatArray) -> bool:
    return one.shape == other.shape and one.tobytes() == np.asarray(other, np.float64).tobytes()


def _tell(event: Event, counts: MutableMapping[str, int]) -> Answer:
    """Return the answer of an event, and count its calls."""
    for name, n in event.counts.items():
        counts[name] += n
    return event.answer
