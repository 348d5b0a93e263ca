"""The tables of a ledger."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from contextlib import closing
from typing import Any

APPLICATION_ID = 0x5355524B  # "SURK"
"""What SQLite's header calls a ledger."""

SCHEMA_VERSION = 2
"""Version of the tables."""

PAGE_SIZE = 1024
"""Bytes of a page: of a row that takes many, little is left empty."""

CHECKPOINT = 2**24 // PAGE_SIZE
"""Pages after which SQLite moves what is written into the file itself."""

TABLES = {
    "facts": "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "arrays": (
        "CREATE TABLE arrays (name TEXT PRIMARY KEY, shape TEXT NOT NULL, data BLOB NOT NULL)"
    ),
    "events": (
        "CREATE TABLE events (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, outcome TEXT NOT NULL, "
        "stage TEXT, iteration INTEGER, width INTEGER, seconds REAL, shapes TEXT, counts TEXT, "
        "notes TEXT, positions BLOB, results BLOB, readings BLOB, crc INTEGER)"
    ),
    "draws": (
        "CREATE TABLE draws (id INTEGER PRIMARY KEY, stage TEXT NOT NULL, columns TEXT NOT NULL, "
        "data BLOB NOT NULL, crc INTEGER NOT NULL)"
    ),
}
"""Name of a table to the statement that makes it.

Files are known by their version, and by having these columns.

``events`` holds batches of exact calls and marks between them, in the order in which they
happened. ``readings`` are those of the clock since the event before.
"""


def has_tables(connection: sqlite3.Connection, names: Collection[str] = tuple(TABLES)) -> bool:
    """Return whether a file has tables of a ledger, with all their columns.

    They may have more columns. Views, triggers and virtual tables are no tables of a ledger:
    whoever reads or writes these runs what is in the file.

    Parameters
    ----------
    connection
        To the file.
    names
        Of the tables.
    """
    held = connection.execute("SELECT type, name, rootpage FROM sqlite_schema").fetchall()
    if any(kind not in ("table", "index") or not root for kind, _, root in held):
        return False
    if not {name for kind, name, _ in held if kind == "table"} >= set(names):
        return False
    with closing(sqlite3.connect(":memory:")) as own:
        for statement in TABLES.values():
            own.execute(statement)
        return all(_columns(own, name) <= _columns(connection, name) for name in names)


def _columns(connection: sqlite3.Connection, table: str) -> set[tuple[Any, ...]]:
    """Return name, type, place in the key, and whether it is computed, of each column."""
    rows = connection.execute(f"PRAGMA table_xinfo({table})")
    return {(name, of, key, hidden) for _, name, of, _, _, key, hidden in rows}
