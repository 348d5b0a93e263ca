"""What can be read of a damaged file, as a new one."""

from __future__ import annotations

import itertools
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import attrs

from surrokit.errors import LedgerError, SurrokitError
from surrokit.ledger.facts import names_of_arrays
from surrokit.ledger.fingerprint import SCALING
from surrokit.ledger.store import (
    DAMAGE,
    MODEL,
    Store,
    array_of,
    check_file,
    connect,
    has_tables,
    open_to_read,
)
from surrokit.ledger.tape import APART, COLUMNS, DONE, Event, event_of, write_events

NAMES = (
    *("target", "observed", "units", "reported", "settings", "generator", "predictor"),
    *("sequels", "account", "model", *SCALING, *names_of_arrays()),
)
"""Names of all facts and arrays."""


@attrs.frozen(kw_only=True)
class Salvaged:
    """What was read of a damaged file.

    Parameters
    ----------
    replayable
        Events from which runs can go on.
    apart
        Later ones, that serve a new run as ``warm_start``.
    lost
        Places at which something could not be read.
    """

    replayable: int
    apart: int
    lost: int


def salvage(path: str | os.PathLike[str], new: str | os.PathLike[str]) -> Salvaged:
    """Write what can be read of a damaged file to a new one.

    Events up to the first one that is lost are as before, so that runs can be resumed from there.
    Later ones are kept as evaluations that a new run learns from.

    Raises
    ------
    LedgerError
        If nothing can be read, or the new file exists.
    """
    path, new = Path(path), Path(new)
    check_file(path)
    try:
        connection = open_to_read(path)
    except (sqlite3.DatabaseError, *DAMAGE):  # as damage may raise too
        connection = connect(path, "ro")
    with closing(connection) as damaged:
        held, lost = _facts(path, damaged)
        kept = {DONE: 0, APART: 0}
        with Store.created(new) as store, store.transaction():
            for run, facts in held.items():
                store.run = run
                store.write_facts(facts)
            for run, event in _events(damaged):
                lost += event is None
                if event is None or run not in held:
                    continue
                store.run = run
                outcome = APART if lost else event.outcome
                kept[APART if lost else DONE] += 1
                if not (lost and event.is_mark):
                    write_events(store, [attrs.evolve(event, outcome=outcome)])
    return Salvaged(replayable=kept[DONE], apart=kept[APART], lost=lost)


def _facts(path: Path, damaged: sqlite3.Connection) -> tuple[dict[int, dict[str, Any]], int]:
    """Return facts and arrays that can be read, by run, and how often some cannot."""
    _check_tables(path, damaged)
    with suppress(sqlite3.Error):  # so that SQLite reads a file that lost its end; all is read-only
        damaged.execute("PRAGMA writable_schema = ON")
    found: dict[int, dict[str, Any]] = {}
    lost = 0
    for run in itertools.count(MODEL):
        if run > max(found, default=MODEL) + 8:  # of so many in a row nothing can be read
            break
        query = "SELECT value, data FROM facts WHERE run = ? AND name = ?"
        facts, misses = {}, 0
        for name in NAMES:
            try:
                for text, data in damaged.execute(query, (run, name)):
                    plain = json.loads(text)
                    facts[name] = plain if data is None else array_of(data, plain)
            except (sqlite3.Error, *DAMAGE):
                misses = 1
        if "target" in facts or (run == MODEL and "model" in facts):
            found[run] = facts
            lost += misses + (run != MODEL and not {"settings", "generator"} <= facts.keys())
    if not found:
        raise LedgerError(
            f"of {path} not even the description of the target can be read; nothing can be kept"
        )
    return found, lost


def _check_tables(path: Path, damaged: sqlite3.Connection) -> None:
    """Raise if there is something else in the place of tables, such as a view without an end."""
    damaged.execute("PRAGMA trusted_schema = OFF")
    try:
        right = has_tables(damaged, ("facts", "events"))
    except (sqlite3.Error, *DAMAGE):  # their description is damaged; something else may be whole
        return
    if not right:
        raise LedgerError(f"{path} does not have the tables of a ledger; nothing can be kept")


def _events(damaged: sqlite3.Connection) -> Iterator[tuple[int, Event | None]]:
    """Yield events that can be read with their runs, and None for each stretch that cannot."""
    query = f"SELECT run, {COLUMNS} FROM events WHERE id = ?"
    number, last, is_lost = 0, 0, False
    while number - last < 1024:  # where so many in a row cannot be read, the search ends
        number += 1
        try:
            # by number: where a damaged tree goes in circles, a scan of it has no end
            found = [
                (int(run), event_of(number, row)) for run, *row in damaged.execute(query, (number,))
            ]
        except (sqlite3.Error, SurrokitError, *DAMAGE):
            if not is_lost:
                yield MODEL, None
            is_lost = True
            continue
        if found:
            last, is_lost = number, False
            yield found[0]
