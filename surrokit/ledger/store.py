"""The store of a ledger: one SQLite file."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from surrokit.errors import LedgerError, SurrokitError
from surrokit.ledger.schema import (
    APPLICATION_ID,
    CHECKPOINT,
    PAGE_SIZE,
    SCHEMA_VERSION,
    TABLES,
)
from surrokit.types import FloatArray

_MAGIC = b"SQLite format 3\x00"
DAMAGE = (
    ValueError,
    KeyError,
    IndexError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    MemoryError,
)
"""What damaged data may raise, beside errors of SQLite."""


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what damaged data raise in the block into an error that says so.

    Raises
    ------
    LedgerError
        If the block raises an error that data may cause.
    """
    try:
        yield
    except SurrokitError:
        raise
    except (sqlite3.Error, *DAMAGE) as error:
        raise LedgerError(
            f"{path} is damaged ({type(error).__name__}: {error}); keep what can be read of it "
            "with: surrokit show --salvage NEW_FILE FILE"
        ) from error


class Store:
    """An open ledger.

    Parameters
    ----------
    path
        The file.
    connection
        To it.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    @classmethod
    def create(cls, path: Path) -> Store:
        """Make a ledger that only its owner can read.

        Raises
        ------
        LedgerError
            If there is a file already, or none can be made.
        """
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            raise LedgerError(
                f"{path} exists; go on with it by surrokit.resume({str(path)!r}, target), or "
                "give another path"
            ) from None
        except OSError as error:
            raise LedgerError(
                f"cannot write {path}: {error.strerror or error}; give a file in a folder that "
                "you may write to"
            ) from error
        store = cls(path, connect(path, "rw"))
        with store.writing():
            store.execute(f"PRAGMA page_size = {PAGE_SIZE}")
            store.execute("PRAGMA journal_mode = WAL")
            store._set_up()
            store.execute("BEGIN")
            for statement in TABLES.values():
                store.execute(statement)
            store.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            store.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            store.execute("COMMIT")
        return store

    @classmethod
    def open(cls, path: Path, *, write: bool = False) -> Store:
        """Open a ledger, to read it or to write on.

        Raises
        ------
        LedgerError
            If there is none, it is no ledger, or it is damaged.
        """
        _check_header(path)
        with reading(path):
            store = cls(path, connect(path, "rw" if write else "ro"))
            try:
                store._check_schema()
                if write:
                    store._set_up()
            except BaseException:
                store.close()
                raise
        return store

    def _set_up(self) -> None:
        self.execute("PRAGMA synchronous = NORMAL")
        self.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT}")

    def _check_schema(self) -> None:
        self.execute("PRAGMA trusted_schema = OFF")
        self.execute("PRAGMA cell_size_check = ON")
        found = dict(self.rows("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL"))
        number = self.rows("PRAGMA application_id")[0][0]
        version = self.rows("PRAGMA user_version")[0][0]
        if number == APPLICATION_ID and version > SCHEMA_VERSION:
            raise LedgerError(
                f"{self.path} was written by a newer surrokit (tables of version {version}); "
                "upgrade surrokit"
            )
        if number != APPLICATION_ID or found != TABLES:
            raise LedgerError(
                f"{self.path} is no ledger of surrokit, or its tables are damaged; give a file "
                "that surrokit.sample(..., path=...) has written"
            )

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Turn errors of writing in the block into one that says what to do.

        Raises
        ------
        LedgerError
            If the block raises an error of SQLite.
        """
        try:
            yield
        except sqlite3.Error as error:
            raise LedgerError(
                f"cannot write {self.path} ({error}); all that was written before is safe: make "
                "room, and go on with surrokit.resume(...)"
            ) from error

    def begin(self) -> None:
        """Write nothing for good until :meth:`commit`, if this is not so already.

        Raises
        ------
        LedgerError
            If the file cannot be written.
        """
        if not self._connection.in_transaction:
            with self.writing():
                self.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Write for good what was written since :meth:`begin`.

        Raises
        ------
        LedgerError
            If it cannot be written.
        """
        if self._connection.in_transaction:
            with self.writing():
                self.execute("COMMIT")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write all that the block writes, or nothing of it.

        Raises
        ------
        LedgerError
            If it cannot be written.
        """
        self.commit()
        self.begin()
        try:
            yield
            self.commit()
        except BaseException:
            with suppress(sqlite3.Error):
                self.execute("ROLLBACK")
            raise

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read the file as it is when the block begins, whatever others write meanwhile."""
        with reading(self.path):
            self.execute("BEGIN")
        try:
            yield
        finally:
            with suppress(sqlite3.Error):
                self.execute("ROLLBACK")

    def execute(self, statement: str, values: Sequence[Any] = ()) -> None:
        """Do a statement that returns nothing."""
        self._connection.execute(statement, values)

    def execute_many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Do a statement that returns nothing, for each of several rows of values."""
        self._connection.executemany(statement, rows)

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""
        return self._connection.execute(query, values).fetchall()

    def close(self) -> None:
        """Write what is left, and close the file; errors are told of where they matter."""
        with suppress(sqlite3.Error, LedgerError):
            self.commit()
        with suppress(sqlite3.Error):
            self._connection.close()

    # --- facts and arrays ---

    def write_facts(self, facts: Mapping[str, Any]) -> None:
        """Write facts, which are plain data."""
        with self.writing():
            self.execute_many(
                "INSERT OR REPLACE INTO facts VALUES (?, ?)",
                [(name, json.dumps(value)) for name, value in facts.items()],
            )

    def facts(self) -> dict[str, Any]:
        """Return all facts by name."""
        with reading(self.path):
            return {n: json.loads(text) for n, text in self.rows("SELECT name, value FROM facts")}

    def write_array(self, name: str, array: FloatArray) -> None:
        """Write an array of numbers."""
        shape, data = json.dumps(array.shape), np.ascontiguousarray(array, np.float64).tobytes()
        with self.writing():
            self.execute("INSERT OR REPLACE INTO arrays VALUES (?, ?, ?)", (name, shape, data))

    def arrays(self) -> dict[str, FloatArray]:
        """Return all arrays by name."""
        with reading(self.path):
            return {
                name: array_of(data, json.loads(shape))
                for name, shape, data in self.rows("SELECT name, shape, data FROM arrays")
            }


def array_of(data: bytes, shape: Sequence[int], dtype: str = "<f8") -> Any:
    """Return an array of its own from bytes.

    Raises
    ------
    ValueError
        If the bytes do not fit the shape.
    """
    return np.frombuffer(data, dtype=dtype).reshape([_size(n) for n in shape]).copy()


def _size(n: object) -> int:
    if not isinstance(n, int) or n < 0:
        raise ValueError(f"{n!r} is no size of an array")
    return n


def _check_header(path: Path) -> None:
    try:
        with path.open("rb") as file:
            first = file.read(len(_MAGIC))
    except OSError as error:
        raise LedgerError(
            f"cannot read {path}: {error.strerror or error}; give a file that "
            "surrokit.sample(..., path=...) has written"
        ) from error
    if first != _MAGIC:
        raise LedgerError(
            f"{path} is no ledger of surrokit, or its beginning is damaged; give a file that "
            "surrokit.sample(..., path=...) has written"
        )


def connect(path: Path, mode: str) -> sqlite3.Connection:
    """Return a connection to a file, to read (``ro``) or to write (``rw``)."""
    address = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(address, uri=True, isolation_level=None, timeout=10.0)
