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
from surrokit.ledger.lock import made_beside
from surrokit.ledger.schema import (
    APPLICATION_ID,
    CHECKPOINT,
    PAGE_SIZE,
    SCHEMA_VERSION,
    TABLES,
    has_tables,
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

_HELD = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_OUT_OF_REACH = (
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
)
_NOTHING_BESIDE = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
_SHORT_READ = sqlite3.SQLITE_IOERR_SHORT_READ  # of a file that has lost its end
_PATIENCE = {"ro": 2.0, "rw": 10.0}
"""Seconds for which a file may be held by others, to read and to write."""


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what the block raises into an error that says what is wrong with the file.

    Raises
    ------
    LedgerError
        If the block raises an error that data may cause, or the file cannot be reached.
    """
    try:
        yield
    except SurrokitError:
        raise
    except (sqlite3.Error, *DAMAGE) as error:
        raise LedgerError(_complain(path, error)) from error


def _complain(path: Path, error: Exception) -> str:
    code = getattr(error, "sqlite_errorcode", None)
    kind = None if code is None or code == _SHORT_READ else code & 0xFF
    if kind in _HELD:
        return f"{path} is held by another process ({error}). Wait until it lets go of the file"
    if kind in _OUT_OF_REACH:
        return (
            f"{path} cannot be read ({error}). Copy it, with the file {path.name}-wal if there is "
            "one, to a folder where you may write, and read the copy"
        )
    return (
        f"{path} is damaged ({type(error).__name__}: {error}); keep what can be read of it "
        "with: surrokit show --salvage NEW_FILE FILE"
    )


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
        self.path = path.absolute()  # whatever folder the process works in later
        self._connection = connection

    @classmethod
    @contextmanager
    def created(cls, path: Path) -> Iterator[Store]:
        """Yield a new ledger that only its owner can read, to be filled within the block.

        It gets its name at the end of the block, so that no other file than a whole one ever has
        it, whatever ends the process. Whoever may make the same file holds its lock.

        Raises
        ------
        LedgerError
            If there is a file already, or none can be made.
        """
        path = path.absolute()
        with made_beside(path) as new:
            os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            store = cls(new, connect(new, "rw"))
            store.path = path  # in messages
            try:
                with store.writing():
                    store._make_tables()
                yield store
                store.gather()
            finally:
                store.close()

    def _make_tables(self) -> None:
        self.execute(f"PRAGMA page_size = {PAGE_SIZE}")
        self.execute("PRAGMA journal_mode = WAL")
        self._set_up()
        self.execute("BEGIN")
        for statement in TABLES.values():
            self.execute(statement)
        self.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        self.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        self.execute("COMMIT")

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
            store = cls(path, connect(path, "rw") if write else open_to_read(path))
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
        number = self.rows("PRAGMA application_id")[0][0]
        version = self.rows("PRAGMA user_version")[0][0]
        if number == APPLICATION_ID and version > SCHEMA_VERSION:
            raise LedgerError(
                f"{self.path} was written by a newer surrokit (tables of version {version}); "
                "upgrade surrokit"
            )
        if number == APPLICATION_ID and version < SCHEMA_VERSION:
            raise LedgerError(
                f"{self.path} was written by an older surrokit, which kept evaluations in other "
                "coordinates. Read it with that version, or begin a new run"
            )
        if number != APPLICATION_ID or not has_tables(self._connection):
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
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _HELD:
                raise LedgerError(_complain(self.path, error)) from error
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

    def gather(self) -> None:
        """Move all that is written into the file itself.

        Raises
        ------
        LedgerError
            If it cannot be written.
        """
        with self.writing():
            self.execute("PRAGMA wal_checkpoint(TRUNCATE)")

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
                "INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)",
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
            statement = "INSERT OR REPLACE INTO arrays (name, shape, data) VALUES (?, ?, ?)"
            self.execute(statement, (name, shape, data))

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
    check_file(path)
    with path.open("rb") as file:
        first = file.read(len(_MAGIC))
    if first != _MAGIC:
        raise LedgerError(
            f"{path} is no ledger of surrokit, or its beginning is damaged; give a file that "
            "surrokit.sample(..., path=...) has written"
        )


def check_file(path: Path) -> None:
    """Raise unless a file is there that can be read: to open a pipe would wait for a writer.

    Raises
    ------
    LedgerError
        If there is none.
    """
    why = None if path.is_file() or not path.exists() else "it is no plain file"
    if why is None:
        try:
            path.open("rb").close()
        except OSError as error:
            why = error.strerror or str(error)
    if why is not None:
        raise LedgerError(
            f"cannot read {path}: {why}; give a file that surrokit.sample(..., path=...) has "
            "written"
        )


def connect(path: Path, mode: str, *, immutable: bool = False) -> sqlite3.Connection:
    """Return a connection to a file, to read (``ro``) or to write (``rw``).

    Parameters
    ----------
    path
        The file.
    mode
        What for.
    immutable
        Whether nobody writes the file or can, so that SQLite makes no file beside it.
    """
    address = f"{path.absolute().as_uri()}?mode={mode}{'&immutable=1' * immutable}"
    return sqlite3.connect(address, uri=True, isolation_level=None, timeout=_PATIENCE[mode])


def open_to_read(path: Path) -> sqlite3.Connection:
    """Return a connection to a file that may lie where nobody can write.

    There SQLite can make no file beside it, as it does even to read. All is in the file itself
    where the run had come to its end, and only then.
    """
    connection = connect(path, "ro")
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema")
    except sqlite3.OperationalError as error:
        connection.close()
        beside = path.with_name(path.name + "-wal")
        whole = not (beside.exists() and beside.stat().st_size)
        if whole and error.sqlite_errorcode & 0xFF in _NOTHING_BESIDE:
            return connect(path, "ro", immutable=True)
        raise
    except BaseException:
        connection.close()
        raise
    return connection
