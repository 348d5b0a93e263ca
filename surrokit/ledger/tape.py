"""Events of a run in order, and the journal that repeats them and goes on."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from surrokit.capabilities import ALL_BY_NAME, CALL_KINDS
from surrokit.errors import BudgetSpent, LedgerError
from surrokit.ledger.store import Store, pack, reading, unpack
from surrokit.model.calls import BEYOND, DRAWN, Call
from surrokit.model.outcome import Answer, Cause, Cure, Quantities, Results
from surrokit.model.quantities import NAMED, Layout
from surrokit.types import FloatArray

MARK = "mark"
"""Kind of an event that is no call: the end of an iteration."""

DONE, EXCLUDED, RAISED = "done", "excluded", "raised"
"""Outcomes of a batch: it returned; it returned, and nothing that follows depends on it; it raised,
and the run with it."""


class DepartedError(LedgerError):
    """A run asks for something else than it did before."""


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
    quantities: tuple[str, ...] = ()  # names of the last results
    seconds: float = 0.0  # of the batch
    counts: Mapping[str, int] = attrs.field(factory=dict)  # kind to calls that were made
    causes: Mapping[int, Cause] = attrs.field(factory=dict)  # row to why it failed
    cures: Sequence[Cure] = ()
    readings: FloatArray = attrs.field(
        factory=lambda: np.empty(0)
    )  # (k,), of the clock since the event before

    @property
    def is_mark(self) -> bool:
        """Whether it is no call."""
        return self.kind == MARK

    @property
    def named(self) -> Quantities:
        """The quantities, by name."""
        last = (self.results or ())[-len(self.quantities) :] if self.quantities else ()
        return dict(zip(self.quantities, last, strict=True))

    def fix(self, layout: Layout) -> None:
        """Take note of the layout of its quantities, if it has any; ShapeError for another one."""
        if self.named:
            layout.fix({name: array.shape[1:] for name, array in self.named.items()})

    @property
    def answer(self) -> Answer:
        """What came back."""
        return Answer(results=self.results, causes=self.causes, cures=self.cures)


_COLUMNS = "kind, outcome, stage, iteration, seconds, counts, notes, arrays, data, crc"


def write_events(store: Store, events: Iterable[Event]) -> None:
    """Append events; they are safe when the store commits."""
    rows = []
    for event in events:
        named = {NAMED + name: array for name, array in event.named.items()}
        plain = (event.results or ())[: -len(named) or None]
        results = {str(i): array for i, array in enumerate(plain)} | named
        arrays = {"positions": event.positions, "readings": event.readings, **results}
        notes = [[row, *attrs.astuple(each)] for row, each in event.causes.items()] + [
            [None, *attrs.astuple(each.cause), each.position.tolist()] for each in event.cures
        ]
        rows.append(
            (
                *(event.kind, event.outcome, event.stage, event.iteration),
                *(event.seconds, json.dumps(event.counts), json.dumps(notes) if notes else None),
                *pack(arrays),
            )
        )
    with reading(store.path):
        statement = f"INSERT INTO events ({_COLUMNS}) VALUES ({', '.join('?' * 10)})"
        store.execute_many(statement, rows)


def read_events(store: Store, also: str = "") -> Iterator[Event]:
    """Yield the events of a file in order, perhaps with a further condition on them."""
    query = f"SELECT id, {_COLUMNS} FROM events WHERE id > ? {also} ORDER BY id LIMIT 64"
    after = 0
    while True:
        with reading(store.path):
            rows = store.rows(query, (after,))
            events = [_event_of(row) for row in rows]
            if any(b <= a for a, b in itertools.pairwise([after, *(row[0] for row in rows)])):
                raise ValueError("events are out of order")
        yield from events
        if len(rows) < 64:
            return
        after = rows[-1][0]


def read_calls(store: Store) -> Iterator[Event]:
    """Yield the batches of exact calls in order."""
    return read_events(store, f"AND kind != '{MARK}'")


def last_event(store: Store) -> int:
    """Return the number of the last event; 0 if there is none."""
    with reading(store.path):
        return int(store.rows("SELECT coalesce(max(id), 0) FROM events")[0][0])


def _event_of(row: Sequence[Any]) -> Event:
    number, kind, outcome, stage, iteration, seconds, counts, notes, *packed = row
    if kind not in (MARK, DRAWN) and kind not in ALL_BY_NAME:
        raise ValueError(f"event {number} is of no known kind")
    arrays = unpack(packed, f"event {number}")
    positions, readings = arrays.pop("positions"), arrays.pop("readings")
    if positions.ndim != 2 or any(len(each) != len(positions) for each in arrays.values()):
        raise ValueError(f"the arrays of event {number} do not fit each other")
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
    names = [name for name in arrays if name.startswith(NAMED)]
    keys = [*map(str, range(len(arrays) - len(names))), *names]
    return Event(
        number=int(number),
        kind=kind,
        outcome=str(outcome),
        stage=str(stage),
        iteration=int(iteration),
        positions=positions,
        results=tuple(arrays[key] for key in keys) or None,
        quantities=tuple(name.removeprefix(NAMED) for name in names),
        seconds=float(seconds),
        counts=counted,
        causes=causes,
        cures=cures,
        readings=readings.ravel(),
    )


AT_STAKE = 1e-2
"""Seconds of exact calls that a kill may lose at most: to write each cheap call by itself would
take longer than the call, and costs several times as much after a call that slept or that has
emptied the processor's caches."""


class Tape:
    """A journal that says what its ledger holds, and then keeps what happens.

    Only what is sure to happen again is kept: calls that returned, and the clock's readings up to
    them or up to the last iteration that was done. Whatever ends a run, the tape ends at such a
    point, from which the run goes on as if nothing had been.

    A run that departs from its ledger by as little as a last bit gets a :class:`DepartedError`, and
    nothing is written from there on.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._events = read_events(store, f"AND outcome = '{DONE}'")
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
        self._excluded: dict[tuple[str, bytes], list[Event]] | None = None
        self.stage, self.iteration = "start", 0

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
        if event is None or self._differs:
            return now
        if self._served == len(event.readings):
            self._depart("the run reads its clock where it did not before")
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

        Exact U there, ``values`` (n,), also shows an energy that is not the one before.
        """
        self.stage, self.iteration = stage, iteration
        passed, self._passed = self._passed, None
        if passed is not None and not (
            passed.iteration == iteration
            and _same(passed.positions, positions)
            and passed.results is not None
            and _same(passed.results[0], values)
        ):
            self._depart(f"after iteration {iteration} the chains are not where they were")
        if self._event is None:
            self._sure, self._chains = len(self._pending), (positions, values)

    def mark(self) -> None:
        """Write what is sure since the last event."""
        if self.replays or not self._sure or self._chains is None:
            return
        readings, self._pending = self._pending[: self._sure], self._pending[self._sure :]
        self._sure = 0
        positions, values = self._chains
        results = _canonical(Answer(results=(values,))).results
        self._keep(MARK, positions, results, readings)

    # --- calls ---

    def answer(self, call: Call) -> Answer:
        """Return the answer that the ledger holds, or else evaluate it and keep it.

        Data rows are evaluated again: they are cheap, and far too many to be kept. ``BudgetSpent``
        is raised where the run went on without a call that is excluded.
        """
        if self._inside or call.what == "rows":
            return call.evaluate(call.positions)
        if call.excluded:
            return self._answer_excluded(call)
        event, kind, positions = self._event, call.what, call.positions
        if event is None:
            readings, self._pending, self._sure = self._pending, [], 0
            return self._evaluate(call, DONE, readings)
        after = f"the run asks for {kind} after iteration {self.iteration}"
        if event.kind != kind or self._served != len(event.readings):
            goes_on = f"{event.kind} of {len(event.positions)} positions"
            trouble = f"{after}, of {len(positions)} positions, where its ledger goes on with"
            self._depart(f"{trouble} {goes_on}")
        if not _same(event.positions, positions):
            self._depart(f"{after} at another position than its ledger holds")
        self._advance()
        return _tell(event, call)

    def _answer_excluded(self, call: Call) -> Answer:
        """Return the answer to a call that a run which is extended does not make."""
        if self._excluded is None:
            self._excluded = {}
            for event in read_events(self._store, f"AND outcome = '{EXCLUDED}'"):
                self._excluded.setdefault((event.kind, event.positions.tobytes()), []).append(event)
        held = self._excluded.get((call.what, call.positions.tobytes()))
        if held:
            return _tell(held.pop(0), call)
        if self.replays:  # a limit forbade it
            raise BudgetSpent("max_calls")
        return self._evaluate(call, EXCLUDED, [])

    def _evaluate(self, call: Call, outcome: str, readings: list[float]) -> Answer:
        counts, began, answer = call.counts, time.perf_counter(), None
        before = dict(counts)
        self._inside = True
        try:
            answer = _canonical(call.evaluate(call.positions))
        finally:
            self._inside = False
            seconds = time.perf_counter() - began
            made = {name: n - before[name] for name, n in counts.items() if n != before[name]}
            if answer is not None or made:
                kept = answer or Answer(results=None)
                outcome = RAISED if answer is None else outcome
                done: dict[str, Any] = {"outcome": outcome, "seconds": seconds, "counts": made}
                done |= {"causes": kept.causes, "cures": kept.cures}
                done["quantities"] = call.layout.names(call.what, kept.results)
                self._keep(call.what, call.positions, kept.results, readings, **done)
        return answer

    def _depart(self, trouble: str) -> None:
        self._differs = True
        raise DepartedError(trouble)

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
        results: Results | None,
        readings: list[float],
        **more: Any,
    ) -> None:
        event = Event(
            kind=kind,
            stage=self.stage,
            iteration=self.iteration,
            positions=np.array(positions, dtype=np.float64, order="C"),
            results=None if results is None else tuple(array.copy() for array in results),
            readings=np.array(readings, dtype=np.float64),
            **more,
        )
        self._unwritten.append(event)
        self._at_stake += event.seconds
        full = self._at_stake > AT_STAKE or len(self._unwritten) == 256
        if full or event.is_mark or event.outcome != DONE:
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


def _tell(event: Event, call: Call) -> Answer:
    """Return the answer of an event, and count its calls."""
    for name, n in event.counts.items():
        call.counts[name] += n
    event.fix(call.layout)
    return event.answer
