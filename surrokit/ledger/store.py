"""The SQLite file of a run or a model: its tables, its lock, and how it is opened.

- ``facts``: plain data by name, as JSON, arrays of numbers included. What a target is known by,
  what was asked for, the generator, the sessions, how far the run is, and studies.
- ``events``: batches of exact calls, and marks between them, in the order in which they happened.
- ``draws``: iterations in blocks, and rounds of weighted answers, for those who look at a run.

All of this room raises ``LedgerError`` where a
file cannot be read or written, or is damaged.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from surrokit.errors import LedgerError, SurrokitError

APPLICATION_ID = 0x5355524B  # "SURK"
"""What SQLite's header calls a ledger."""

SCHEMA_VERSION = 5
"""Version of the tables."""


_PAGE_SIZE = 1024  # bytes: of a row that takes many, little is left empty

TABLES = {
    "facts": "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "events": (
        "CREATE TABLE events (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, outcome TEXT NOT NULL, "
        "stage TEXT, iteration INTEGER, seconds REAL, counts TEXT, notes TEXT, "
        "arrays TEXT NOT NULL, data BLOB NOT NULL, crc INTEGER NOT NULL)"
    ),
    "draws": (
        "CREATE TABLE draws (id INTEGER PRIMARY KEY, stage TEXT NOT NULL, arrays TEXT NOT NULL, "
        "data BLOB NOT NULL, crc INTEGER NOT NULL)"
    ),
}
"""Name of a table to the statement that makes it; files have these, and may have more."""

Arrays = Mapping[str, npt.NDArray[Any]]

_TYPES = ("<f8", "<i8", "|b1")


def pack(arrays: Arrays) -> tuple[str, bytes, int]:
    """Return arrays as the names, types and shapes, the bytes, and the checksum of a row."""
    reported = {name: [of.dtype.newbyteorder("<").str, *of.shape] for name, of in arrays.items()}
    data = b"".join(np.asarray(of, reported[name][0]).tobytes() for name, of in arrays.items())
    return json.dumps(reported), data, zlib.crc32(data)


def unpack(row: Sequence[Any], what: str) -> dict[str, npt.NDArray[Any]]:
    """Return arrays of their own from what :func:`pack` returned, no larger than its bytes."""
    reported, data, crc = row
    if crc != zlib.crc32(data):
        raise ValueError(f"the checksum of {what} is wrong")
    found, at = {}, 0
    for name, (of, *shape) in json.loads(reported).items():
        if of not in _TYPES or any(not isinstance(n, int) or n < 0 for n in shape):
            raise ValueError(f"an array of {what} is of type {of!r} and shape {shape!r}")
        end = at + np.dtype(of).itemsize * math.prod(shape)
        found[str(name)] = np.frombuffer(data[at:end], of).reshape(shape).copy()
        at = end
    if at != len(data):
        raise ValueError(f"{what} does not have the arrays that it names")
    return found


def _plain(value: Any) -> Any:
    """Return an array as JSON can hold it."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return {"numbers": value.astype(np.float64).ravel().tolist(), "shape": value.shape}
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} is no plain data")


def _array(data: dict[str, Any]) -> Any:
    if data.keys() != {"numbers", "shape"}:
        return data
    return np.array(data["numbers"], dtype=np.float64).reshape(data["shape"])


class Lock:
    """The right to write runs to a file, which one process has at a time.

    It is SQLite's lock of a file beside it, and ends with the process that holds it, however that
    ends. Children of the process do not inherit it.
    """

    def __init__(self, path: Path) -> None:
        path = path.absolute()  # whatever folder the process works in later
        self._path = path.with_name(path.name + ".lock")
        self._held, cause = False, None
        for _ in range(100):  # as its owner may remove it meanwhile
            try:
                self._take(path)
            except FileNotFoundError:
                continue
            except LedgerError as error:
                cause = error
                if is_held(error.__cause__):
                    break
            if self._held:
                return
        if cause is not None and not is_held(cause.__cause__):
            raise cause
        raise LedgerError(
            f"{path} is being written by a run, of this process or another one; wait for its end, "
            "or look at it with surrokit.open_run(...)"
        ) from cause

    def _take(self, path: Path) -> None:
        try:
            with suppress(FileExistsError):  # to open one that is there would end a lock on it
                os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except OSError as error:
            raise cannot_write(f"beside {path}", error) from error
        before = self._path.stat()
        with reading(self._path):
            self._connection = _connect(self._path, write=True, seconds=0.0)
        try:
            with reading(self._path):
                self._connection.execute("BEGIN EXCLUSIVE")
            self._held = os.path.samestat(before, self._path.stat())
        finally:
            if not self._held:
                self._connection.close()

    def release(self) -> None:
        """Give the lock up, if it is held."""
        if self._held:
            self._held = False
            with suppress(OSError):
                self._path.unlink()
            self._connection.close()


def cannot_write(what: object, error: OSError) -> LedgerError:
    """Return the error of a place where nothing can be written."""
    return LedgerError(
        f"cannot write {what}: {error.strerror or error}; give a file in a folder that you may "
        "write to"
    )


def _make_empty(path: Path) -> None:
    """Make an empty file, which only its owner can read."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


@contextmanager
def made_beside(path: Path) -> Iterator[Path]:
    """Yield another name for a new file, which gets its own at the end of the block."""
    new = path.with_name(path.name + ".new")

    def forget() -> None:
        for ending in ("", "-wal", "-shm", "-journal"):
            with suppress(OSError):
                new.with_name(new.name + ending).unlink(missing_ok=True)

    forget()  # of a process that was killed
    try:
        if path.exists():
            raise LedgerError(
                f"{path} exists. Go on with a run that it holds by surrokit.resume, or give a path "
                "at which there is no file"
            )
        yield new
        os.rename(new, path)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        forget()


# --- what may be wrong ---


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what the block raises into an error that says what is wrong with the file."""
    try:
        yield
    except SurrokitError:
        raise
    except (
        *(sqlite3.Error, ValueError, LookupError, TypeError, AttributeError),
        *(ArithmeticError, RecursionError, MemoryError),
    ) as error:
        raise LedgerError(f"{path} {_complain(path.name, error)}") from error


def is_held(error: BaseException | None) -> bool:
    """Return whether an error of SQLite says that another process holds a file."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


_NO_LEDGER = (
    "is no ledger of surrokit, or its tables are damaged; give a file that "
    "surrokit.sample(..., path=...) has written"
)


def _complain(name: str, error: Exception) -> str:
    if is_held(error):
        return f"is held by another process ({error}). Wait until it lets go of the file"
    code = getattr(error, "sqlite_errorcode", None)
    short = code == sqlite3.SQLITE_IOERR_SHORT_READ  # of a file that has lost its end
    kind = None if code is None or short else code & 0xFF
    if kind == sqlite3.SQLITE_NOTADB:
        return _NO_LEDGER
    if kind == sqlite3.SQLITE_FULL:
        return (
            f"cannot be written ({error}); all that was written before is safe. Make room, and go "
            "on with surrokit.resume(...)"
        )
    if kind in (
        *(sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM),
        *(sqlite3.SQLITE_AUTH, sqlite3.SQLITE_IOERR),
    ):
        return (
            f"cannot be read or written ({error}). Copy it, with the file {name}-wal if there is "
            "one, to a folder where you may write"
        )
    return (
        f"is damaged ({type(error).__name__}: {error}). Keep what can be read of it with "
        f"sqlite3 {name} .recover | sqlite3 NEW_FILE"
    )


def _connect(path: Path, *, write: bool, seconds: float) -> sqlite3.Connection:
    """Return a connection to a file that others may hold for so many seconds."""
    address = f"{path.absolute().as_uri()}?mode={'rw' if write else 'ro'}"
    return sqlite3.connect(address, uri=True, isolation_level=None, timeout=seconds)


class Store:
    """An open file."""

    def __init__(self, path: Path, *, write: bool) -> None:
        self.path = path.absolute()  # whatever folder the process works in later
        self._connection = _connect(path, write=write, seconds=10.0 if write else 2.0)
        self._writes = write

    @classmethod
    def made(cls, path: Path, facts: Mapping[str, Any]) -> Store:
        """Return a new file with some facts, to write on; only its owner can read it.

        It gets its name when it is whole, whatever ends the process. Another process that may make
        the same file holds its lock.
        """
        with made_beside(path.absolute()) as new:
            _make_empty(new)
            store = cls(new, write=True)
            store.path = path.absolute()  # in messages
            try:
                store.execute(f"PRAGMA page_size = {_PAGE_SIZE}")
                with store.transaction(), reading(store.path):
                    for statement in TABLES.values():
                        store.execute(statement)
                    store.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                    store.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
                    store.write_facts(facts)
            finally:
                store.close()
        return cls.open(path, write=True)

    @classmethod
    def open(cls, path: Path, *, write: bool = False) -> Store:
        """Open a file to read it or to write on."""
        if not path.is_file():  # to open a pipe would wait for a writer
            raise LedgerError(
                f"cannot read {path}: there is no file, or it is no plain file; give a file that "
                "surrokit.sample(..., path=...) has written"
            )
        with reading(path):
            store = cls(path, write=write)
            try:
                store._check_tables()
                if write:
                    store.execute("PRAGMA journal_mode = WAL")
                    store.execute("PRAGMA synchronous = NORMAL")
                    # pages after which SQLite moves them into the file itself
                    store.execute(f"PRAGMA wal_autocheckpoint = {2**24 // _PAGE_SIZE}")
            except BaseException:
                store.close()
                raise
        return store

    def _check_tables(self) -> None:
        """Raise unless the tables are those of a ledger.

        Views, triggers and virtual tables are rejected: who reads or writes these runs what is
        in the file.
        """
        self.execute("PRAGMA trusted_schema = OFF")
        self.execute("PRAGMA cell_size_check = ON")
        number = self.rows("PRAGMA application_id")[0][0]
        version = self.rows("PRAGMA user_version")[0][0]
        if number == APPLICATION_ID and version != SCHEMA_VERSION:
            age, advice = (
                ("a newer", "upgrade surrokit")
                if version > SCHEMA_VERSION
                else ("an older", "read it with that version, or begin a new run")
            )
            raise LedgerError(
                f"{self.path} was written by {age} surrokit (tables of version {version}); {advice}"
            )
        held = self.rows("SELECT type, rootpage, name, sql FROM sqlite_schema")
        plain = all(kind in ("table", "index") and root for kind, root, *_ in held)
        whole = plain and TABLES.items() <= {(name, sql) for *_, name, sql in held}
        if number != APPLICATION_ID or not whole:
            raise LedgerError(f"{self.path} {_NO_LEDGER}")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write all that the block writes, or nothing of it."""
        with reading(self.path):
            self.execute("BEGIN IMMEDIATE")
        try:
            yield
            with reading(self.path):
                self.execute("COMMIT")
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

    def rename_former(self, copy: Path, facts: Mapping[str, Any]) -> None:
        """Copy all that there is to a new file, and leave some facts alone in its place."""
        with made_beside(copy) as new, reading(self.path):
            _make_empty(new)
            self.execute("VACUUM INTO ?", (str(new),))
        with self.transaction():
            for table in TABLES:
                self.execute(f"DELETE FROM {table}")
            self.write_facts(facts)

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
        """Close the file; nobody needs to write beside it to read what is whole."""
        with suppress(sqlite3.Error):
            if self._writes:
                self.execute("PRAGMA busy_timeout = 0")
                self.execute("PRAGMA journal_mode = DELETE")  # unless somebody reads it
        with suppress(sqlite3.Error):
            self._connection.close()

    def write_facts(self, facts: Mapping[str, Any]) -> None:
        """Write facts: plain data and arrays of numbers."""
        rows = [(name, json.dumps(of, default=_plain)) for name, of in facts.items()]
        with reading(self.path):
            self.execute_many("INSERT OR REPLACE INTO facts VALUES (?, ?)", rows)

    def facts(self) -> dict[str, Any]:
        """Return the facts by name."""
        with reading(self.path):
            rows = self.rows("SELECT name, value FROM facts")
            return {name: json.loads(text, object_hook=_array) for name, text in rows}

    def facts_of_run(self) -> dict[str, Any]:
        """Return the facts of a run; LedgerError of the file of a model."""
        facts = self.facts()
        if "model" in facts:
            raise LedgerError(
                f"{self.path} holds evaluations of a model, and no run; give it to "
                "surrokit.model(..., path=...)"
            )
        return facts
