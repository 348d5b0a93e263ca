"""Events of a run in the order in which they happened: batches of exact calls, and marks."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import attrs
import numpy as np

from surrokit.contracts.methods import ALL_BY_NAME, CALL_KINDS
from surrokit.ledger.store import Store, array_of, reading
from surrokit.model.cause import Cause, Cure
from surrokit.model.outcome import Answer
from surrokit.types import FloatArray

MARK = "mark"
"""Kind of an event that is no call: the end of an iteration."""

DONE, ASIDE, RAISED, APART = "done", "aside", "raised", "apart"
"""Outcomes of a batch: it returned; it returned, and nothing that follows depends on it; it raised,
and the run with it; it returned, and the run that is repeated from this ledger makes no use of
it."""

COLUMNS = (
    "kind, outcome, stage, iteration, width, seconds, shapes, counts, notes, positions, results, "
    "readings, crc"
)
"""Columns of the table of events, in the order in which :func:`event_of` takes them."""

_AT_ONCE = 64

_INSERT = f"INSERT INTO events ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


@attrs.frozen(kw_only=True, eq=False)
class Event:
    """A batch of exact calls, or a mark.

    Parameters
    ----------
    number
        In the order of events.
    kind
        What was evaluated, a name of :mod:`surrokit.contracts.methods`, or :data:`MARK`.
    outcome
        One of the outcomes above.
    stage, iteration
        When it happened; ``iteration`` counts those that were done by then.
    positions : ndarray of shape (n, width)
        In the coordinates of the model, perhaps with further columns; of a mark those of the
        chains, in the sampling coordinates.
    results : tuple of ndarray of shape (n, ...), optional
        What came back; None where every row failed.
    seconds
        Of the batch.
    counts
        Kind to calls that were paid for.
    causes
        Row number to why it failed.
    cures
        Failures that a retry cured.
    readings : ndarray of shape (k,)
        Readings of the clock since the event before.
    """

    number: int = 0
    kind: str
    outcome: str = DONE
    stage: str = ""
    iteration: int = 0
    positions: FloatArray
    results: tuple[FloatArray, ...] | None = None
    seconds: float = 0.0
    counts: Mapping[str, int] = attrs.field(factory=dict)
    causes: Mapping[int, Cause] = attrs.field(factory=dict)
    cures: Sequence[Cure] = ()
    readings: FloatArray

    @property
    def is_mark(self) -> bool:
        """Whether it is no call."""
        return self.kind == MARK

    @property
    def answer(self) -> Answer:
        """What came back."""
        return Answer(results=self.results, causes=self.causes, cures=self.cures)


def write_events(store: Store, events: Iterable[Event]) -> None:
    """Append events; they are safe when the store commits.

    Raises
    ------
    LedgerError
        If they cannot be written.
    """
    with store.writing():
        store.execute_many(_INSERT, map(_row, events))


def _row(event: Event) -> tuple[Any, ...]:
    positions = event.positions.tobytes()
    results = None if event.results is None else b"".join(a.tobytes() for a in event.results)
    readings = event.readings.tobytes()
    shapes = None if event.results is None else tuple(a.shape[1:] for a in event.results)
    plain = event.is_mark or event.counts == _usual(event.kind, len(event.positions))
    notes = _notes(event) if event.causes or event.cures else None
    return (
        event.kind,
        event.outcome,
        event.stage,
        event.iteration,
        event.positions.shape[1],
        event.seconds,
        None if shapes is None else _shapes_as_text(shapes),
        None if plain else json.dumps(event.counts),
        json.dumps(notes) if notes else None,
        positions,
        results,
        readings,
        _checksum(positions, results, readings),
    )


@lru_cache
def _shapes_as_text(shapes: tuple[tuple[int, ...], ...]) -> str:
    return json.dumps(shapes)


def read_events(
    store: Store, *, after: int = 0, calls_alone: bool = False, asides_alone: bool = False
) -> Iterator[Event]:
    """Yield events in order.

    Parameters
    ----------
    store
        The ledger.
    after
        Number of the event to begin after.
    calls_alone
        Whether marks are left out.
    asides_alone
        Whether all is left out but calls that were made aside.

    Raises
    ------
    LedgerError
        If one is damaged.
    """
    also = f"AND kind != '{MARK}'" if calls_alone else ""
    also += f" AND outcome = '{ASIDE}'" if asides_alone else ""
    query = f"SELECT id, {COLUMNS} FROM events WHERE id > ? {also} ORDER BY id LIMIT {_AT_ONCE}"
    while True:
        with reading(store.path):
            rows = store.rows(query, (after,))
            events = [event_of(number, row) for number, *row in rows]
            if any(b.number <= a for a, b in zip([after, *_numbers(events)], events, strict=False)):
                raise ValueError("events are out of order")
        yield from events
        if len(rows) < _AT_ONCE:
            return
        after = rows[-1][0]


def _numbers(events: Sequence[Event]) -> list[int]:
    return [event.number for event in events]


def last_event(store: Store) -> int:
    """Return the number of the last event; 0 if there is none."""
    with reading(store.path):
        return int(store.rows("SELECT coalesce(max(id), 0) FROM events")[0][0])


def event_of(number: int, row: Sequence[Any]) -> Event:
    """Return the event of a row.

    Raises
    ------
    ValueError
        If it is damaged.
    """
    kind, outcome, stage, iteration, width, seconds, shapes, counts, notes, *blobs, crc = row
    positions, results, readings = blobs
    if crc != _checksum(positions, results, readings):
        raise ValueError(f"the checksum of event {number} is wrong")
    if kind != MARK and kind not in ALL_BY_NAME:
        raise ValueError(f"event {number} is of no known kind")
    at = array_of(positions, (-1 if not width else len(positions) // (8 * width), width))
    n = len(at)
    return Event(
        number=int(number),
        kind=kind,
        outcome=str(outcome),
        stage=str(stage),
        iteration=int(iteration),
        positions=at,
        results=None if shapes is None else _split(results, n, json.loads(shapes)),
        seconds=float(seconds),
        counts=_counts(counts, kind, n),
        **_failures(json.loads(notes) if notes is not None else ()),
        readings=array_of(readings, (len(readings) // 8,)),
    )


def _split(data: bytes, n: int, shapes: Any) -> tuple[FloatArray, ...]:
    found, at = [], 0
    for shape in shapes:
        size = 8 * n * math.prod(shape)
        found.append(array_of(data[at : at + size], (n, *shape)))
        at += size
    if at != len(data):
        raise ValueError("results do not have the shapes that are told")
    return tuple(found)


def _counts(text: str | None, kind: str, n: int) -> dict[str, int]:
    if text is None:
        return {} if kind == MARK else _usual(kind, n)
    found = {str(name): int(count) for name, count in json.loads(text).items()}
    if not found.keys() <= set(CALL_KINDS):
        raise ValueError("calls of no known kind are counted")
    return found


def _usual(what: str, n: int) -> dict[str, int]:
    """Return what n positions count as, unless a model counts otherwise."""
    kind = ALL_BY_NAME[what].kind
    assert kind is not None
    return {kind: n}


def _notes(event: Event) -> list[list[Any]]:
    """Return failures as plain data: the row, or none and the position of what was cured."""
    failed = [[row, *attrs.astuple(cause)] for row, cause in event.causes.items()]
    cured = [[None, *attrs.astuple(cure.cause), cure.position.tolist()] for cure in event.cures]
    return failed + cured


def _failures(notes: Sequence[Any]) -> dict[str, Any]:
    causes = {int(row): _cause(told) for row, *told in notes if row is not None}
    cures = [
        Cure(_cause(told), np.array(position, dtype=np.float64))
        for row, *told, position in notes
        if row is None
    ]
    return {"causes": causes, "cures": cures}


def _cause(told: Sequence[Any]) -> Cause:
    kind, report, overflow = told
    return Cause(kind=str(kind), report=str(report), overflow=bool(overflow))


def _checksum(positions: bytes, results: bytes | None, readings: bytes) -> int:
    return zlib.crc32(readings, zlib.crc32(results or b"", zlib.crc32(positions)))
