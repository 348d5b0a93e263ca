"""What can be read of a damaged ledger, as a new one."""

from __future__ import annotations

import itertools
import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import attrs

from surrokit.errors import LedgerError, SurrokitError
from surrokit.ledger.facts import names_of_arrays
from surrokit.ledger.fingerprint import SCALING
from surrokit.ledger.store import (
    DAMAGE,
    Store,
    array_of,
    check_file,
    connect,
    has_tables,
    open_to_read,
)
from surrokit.ledger.tape import APART, COLUMNS, DONE, Event, event_of, write_events

FACTS = ("target", "settings", "generator", "sequels", "account")
"""Names of all facts."""

ARRAYS = ("lower", "upper", *SCALING, *names_of_arrays())
"""Names of all arrays."""

_AT_ONCE = 64
_MOST_MISSES = 1024  # numbers in a row at which nothing can be read, and the search ends


@attrs.frozen(kw_only=True)
class Salvaged:
    """What was read of a damaged ledger.

    Parameters
    ----------
    replayable
        Events from which the run can go on.
    apart
        Later ones, that serve a new run as ``warm_start``.
    lost
        Places at which something could not be read.
    """

    replayable: int
    apart: int
    lost: int


def salvage(path: str | os.PathLike[str], new: str | os.PathLike[str]) -> Salvaged:
    """Write what can be read of a damaged ledger to a new file.

    Events up to the first one that is lost are as before, so that the run can be resumed from
    there. Later ones are kept as evaluations that a new run learns from.

    Parameters
    ----------
    path
        The damaged file.
    new
        The new one.

    Raises
    ------
    LedgerError
        If nothing can be read, or the new file exists.
    """
    path, new = Path(path), Path(new)
    with closing(_open_damaged(path)) as damaged:
        facts, arrays, lost = _settings(path, damaged)
        with Store.created(new) as store, store.transaction():
            store.write_facts(facts)
            for name, array in arrays.items():
                store.write_array(name, array)
            kept = {DONE: 0, APART: 0}
            for event in _events(damaged):
                lost += event is None
                if event is not None:
                    whole = not lost
                    kept[DONE if whole else APART] += 1
                    outcome = event.outcome if whole else APART
                    if whole or not event.is_mark:
                        write_events(store, [attrs.evolve(event, outcome=outcome)])
    return Salvaged(replayable=kept[DONE], apart=kept[APART], lost=lost)


def _open_damaged(path: Path) -> sqlite3.Connection:
    check_file(path)
    try:
        return open_to_read(path)
    except (sqlite3.DatabaseError, *DAMAGE):  # as damage may raise too
        return connect(path, "ro")


def _settings(
    path: Path, damaged: sqlite3.Connection
) -> tuple[dict[str, Any], dict[str, Any], int]:
    """Return facts and arrays that can be read, and whether some cannot."""
    facts, arrays, lost = {}, {}, 0
    _check_tables(path, damaged)
    with suppress(sqlite3.Error):  # so that SQLite reads a file that lost its end; all is read-only
        damaged.execute("PRAGMA writable_schema = ON")
    for name in FACTS:
        with suppress(sqlite3.Error, *DAMAGE):
            for (text,) in damaged.execute("SELECT value FROM facts WHERE name = ?", (name,)):
                facts[name] = json.loads(text)
    for name in ARRAYS:
        try:
            query = "SELECT shape, data FROM arrays WHERE name = ?"
            for shape, data in damaged.execute(query, (name,)):
                arrays[name] = array_of(data, json.loads(shape))
        except (sqlite3.Error, *DAMAGE):
            lost = 1
    lost += not {"settings", "generator"} <= facts.keys()
    if "target" not in facts or not {"lower", "upper"} <= arrays.keys():
        raise LedgerError(
            f"of {path} not even the description of the target can be read; nothing can be kept"
        )
    return facts, arrays, lost


def _check_tables(path: Path, damaged: sqlite3.Connection) -> None:
    """Raise if there is something else in the place of tables, such as a view without an end."""
    damaged.execute("PRAGMA trusted_schema = OFF")
    try:
        right = has_tables(damaged, ("facts", "arrays", "events"))
    except (sqlite3.Error, *DAMAGE):  # their description is damaged; something else may be whole
        return
    if not right:
        raise LedgerError(f"{path} does not have the tables of a ledger; nothing can be kept")


def _events(damaged: sqlite3.Connection) -> Iterator[Event | None]:
    """Yield events that can be read, and None for each that cannot."""
    chunk = f"SELECT id, {COLUMNS} FROM events WHERE id > ? ORDER BY id LIMIT {_AT_ONCE}"
    one = f"SELECT id, {COLUMNS} FROM events WHERE id = ?"
    after, misses = 0, 0
    while misses < _MOST_MISSES:
        rows = _rows(damaged, chunk, after)
        if rows == []:
            return
        if rows is not None and not _in_order([after, *(row[0] for row in rows)]):
            rows = None
        numbers = range(after + 1, after + 1 + _AT_ONCE)
        if rows is None:
            rows = [row for n in numbers for row in _rows(damaged, one, n) or [None]]
            misses = misses + _AT_ONCE if rows == [None] * _AT_ONCE else 0
            after += _AT_ONCE
            if misses:
                continue
        else:
            after = rows[-1][0]
        for row in rows:
            yield None if row is None else _event(row)


def _rows(damaged: sqlite3.Connection, query: str, number: int) -> list[Any] | None:
    with suppress(sqlite3.Error, *DAMAGE):
        return damaged.execute(query, (number,)).fetchall()
    return None


def _in_order(numbers: Sequence[object]) -> bool:
    """Return whether whole numbers grow; where a damaged tree goes in circles they do not."""
    whole = all(isinstance(number, int) for number in numbers)
    return whole and all(a < b for a, b in itertools.pairwise(numbers))  # type: ignore[operator]


def _event(row: tuple[Any, ...]) -> Event | None:
    with suppress(SurrokitError, *DAMAGE):
        return event_of(row[0], row[1:])
    return None
