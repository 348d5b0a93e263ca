"""The tables of a ledger."""

from __future__ import annotations

APPLICATION_ID = 0x5355524B  # "SURK"
"""What SQLite's header calls a ledger."""

SCHEMA_VERSION = 1
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

``events`` holds batches of exact calls and marks between them, in the order in which they
happened. ``readings`` are those of the clock since the event before.
"""
