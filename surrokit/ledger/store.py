"""The SQLite file of runs and models: its tables, its lock, and how it is opened.

All of this room raises ``LedgerError`` where a file cannot be read or written, or is damaged.
"""

from __future__ import annotations

import itertools
import json
import os
import sqlite3
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from surrokit.errors import LedgerError, SurrokitError
from surrokit.types import FloatArray

APPLICATION_ID = 0x5355524B  # "SURK"
"""What SQLite's header calls a ledger."""

SCHEMA_VERSION = 3
"""Version of the tables."""

MODEL = 0
"""Number under which a file holds the evaluations of a model itself; runs are 1, 2, ..."""

_PAGE_SIZE = 1024  # bytes: of a row that takes many, little is left empty

TABLES = {
    "facts": (
        "CREATE TABLE facts (run INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, "
        "data BLOB, PRIMARY KEY (run, name))"
    ),
    "events": (
        "CREATE TABLE events (id INTEGER PRIMARY KEY, run INTEGER NOT NULL, kind TEXT NOT NULL, "
        "outcome TEXT NOT NULL, stage TEXT, iteration INTEGER, width INTEGER, seconds REAL, "
        "shapes TEXT, counts TEXT, notes TEXT, positions BLOB, results BLOB, readings BLOB, "
        "crc INTEGER)"
    ),
    "draws": (
        "CREATE TABLE draws (id INTEGER PRIMARY KEY, run INTEGER NOT NULL, stage TEXT NOT NULL, "
        "columns TEXT NOT NULL, data BLOB NOT NULL, crc INTEGER NOT NULL)"
    ),
}
"""Name of a table to the statement that makes it.

Files are known by their version, and by having these columns. Every row belongs to a run, or to
:data:`MODEL`. ``facts`` holds plain data as JSON; an array has its shape there, and its numbers in
``data``. ``events`` holds batches of exact calls and marks between them, in the order in which they
happened; ``readings`` are those of the clock since the event before.
"""


def has_tables(connection: sqlite3.Connection, names: Collection[str] = tuple(TABLES)) -> bool:
    """Return whether a file has some tables of a ledger, with all their columns or more.

    Views, triggers and virtual tables are no tables of a ledger: whoever reads or writes these runs
    what is in the file.
    """
    held = connection.execute("SELECT type, name, rootpage FROM sqlite_schema").fetchall()
    if any(kind not in ("table", "index") or not root for kind, _, root in held):
        return False
    if not {name for kind, name, _ in held if kind == "table"} >= set(names):
        return False

    def columns(of: sqlite3.Connection, table: str) -> set[tuple[Any, ...]]:
        # name, type, place in the key, and whether it is computed
        rows = of.execute(f"PRAGMA table_xinfo({table})")
        return {(name, kind, key, hidden) for _, name, kind, _, _, key, hidden in rows}

    with closing(sqlite3.connect(":memory:")) as own:
        for statement in TABLES.values():
            own.execute(statement)
        return all(columns(own, name) <= columns(connection, name) for name in names)


# --- the lock ---

_LOCKED: set[str] = set()  # POSIX locks do not keep a process from itself

if sys.platform == "win32":
    import msvcrt

    def _lock(number: int) -> None:
        msvcrt.locking(number, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(number: int) -> None:
        fcntl.lockf(number, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Lock:
    """The right to write runs to a file, which one process has at a time.

    The lock is on a file beside it, and ends with the process that holds it, however that ends.
    Children of the process do not inherit it.
    """

    def __init__(self, path: Path) -> None:
        path = path.absolute()  # whatever folder the process works in later
        self._path = path.with_name(path.name + ".lock")
        self._key = os.path.realpath(self._path)
        if self._key in _LOCKED:
            raise LedgerError(_taken(path, f"process {os.getpid()}, this one"))
        self._file = self._take(path)
        _LOCKED.add(self._key)
        self._file.seek(0)
        self._file.truncate()
        self._file.write(f"process {os.getpid()}\n")
        self._file.flush()

    def release(self) -> None:
        """Give the lock up."""
        if self._key in _LOCKED:
            _LOCKED.discard(self._key)
            self._path.unlink(missing_ok=True)
            self._file.close()

    def _take(self, path: Path) -> IO[str]:
        while True:
            try:
                number = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            except OSError as error:
                raise _cannot_write(f"beside {path}", error) from error
            file = os.fdopen(number, "r+", encoding="utf-8", errors="replace")
            try:
                _lock(number)
            except OSError:
                owner = file.read(80).strip() or "another process"
                file.close()
                raise LedgerError(_taken(path, owner)) from None
            with suppress(OSError):
                if os.path.samestat(os.fstat(number), self._path.stat()):
                    return file
            file.close()  # its owner removed it meanwhile


def _taken(path: Path, owner: str) -> str:
    return (
        f"{path} is being written by a run ({owner}); wait for its end, or look at it with "
        "surrokit.open_run(...)"
    )


def _cannot_write(what: object, error: OSError) -> LedgerError:
    return LedgerError(
        f"cannot write {what}: {error.strerror or error}; give a file in a folder that you may "
        "write to"
    )


@contextmanager
def made_beside(path: Path) -> Iterator[Path]:
    """Yield another name for a new file, which gets its own at the end of the block."""
    new = path.with_name(path.name + ".new")
    _forget(new)  # of a process that was killed
    try:
        if path.exists():
            raise LedgerError(f"{path} exists; give a path at which there is no file")
        yield new
        os.rename(new, path)
    except OSError as error:
        raise _cannot_write(path, error) from error
    finally:
        _forget(new)


def _forget(path: Path) -> None:
    for ending in ("", "-wal", "-shm", "-journal"):
        with suppress(OSError):
            path.with_name(path.name + ending).unlink(missing_ok=True)


# --- what may be wrong ---

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


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what the block raises into an error that says what is wrong with the file."""
    try:
        yield
    except SurrokitError:
        raise
    except (sqlite3.Error, *DAMAGE) as error:
        raise LedgerError(_complain(path, error)) from error


def _complain(path: Path, error: Exception) -> str:
    code = getattr(error, "sqlite_errorcode", None)
    short = code == sqlite3.SQLITE_IOERR_SHORT_READ  # of a file that has lost its end
    kind = None if code is None or short else code & 0xFF
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
    """An open file, and the number of the run in it that is read and written."""

    def __init__(self, path: Path, connection: sqlite3.Connection, run: int = 1) -> None:
        self.path = path.absolute()  # whatever folder the process works in later
        self._connection = connection
        self.run = run

    @classmethod
    @contextmanager
    def created(cls, path: Path, run: int = 1) -> Iterator[Store]:
        """Yield a new file that only its owner can read, to be filled within the block.

        It gets its name at the end of the block, so that no other file than a whole one ever has
        it, whatever ends the process. Whoever may make the same file holds its lock.
        """
        path = path.absolute()
        with made_beside(path) as new:
            os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            store = cls(new, connect(new, "rw"), run)
            store.path = path  # in messages
            try:
                with store.writing():
                    store.execute(f"PRAGMA page_size = {_PAGE_SIZE}")
                    store.execute("PRAGMA journal_mode = WAL")
                    store._set_up()
                with store.transaction():
                    for statement in TABLES.values():
                        store.execute(statement)
                    store.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                    store.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
                yield store
                store.gather()
            finally:
                store.close()

    @classmethod
    def open(cls, path: Path, *, write: bool = False, run: int | None = None) -> Store:
        """Open a file to read it or to write on, at a run or, for None, at the last one."""
        check_file(path)
        with path.open("rb") as file:
            if file.read(16) != b"SQLite format 3\x00":
                raise _no_ledger(path, "its beginning is")
        with reading(path):
            store = cls(path, connect(path, "rw") if write else open_to_read(path))
            try:
                store._check_schema()
                store.run = store._find(run)
                if write:
                    store._set_up()
            except BaseException:
                store.close()
                raise
        return store

    def _set_up(self) -> None:
        self.execute("PRAGMA synchronous = NORMAL")
        # pages after which SQLite moves them into the file itself
        self.execute(f"PRAGMA wal_autocheckpoint = {2**24 // _PAGE_SIZE}")

    @property
    def runs(self) -> list[int]:
        """Numbers of the runs in the file."""
        query = "SELECT DISTINCT run FROM facts WHERE run > 0 ORDER BY run"
        return [int(number) for (number,) in self.rows(query)]

    def _find(self, run: int | None) -> int:
        runs = self.runs
        if run is None and not runs:
            raise LedgerError(
                f"{self.path} holds evaluations of a model, and no run; give it to "
                "surrokit.model(..., path=...)"
            )
        if run is not None and run != MODEL and run not in runs:
            held = ", ".join(map(str, runs)) or "none"
            raise LedgerError(f"{self.path} has no run {run!r}; its runs are {held}")
        return runs[-1] if run is None else run

    def _check_schema(self) -> None:
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
        if number != APPLICATION_ID or not has_tables(self._connection):
            raise _no_ledger(self.path, "its tables are")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Turn errors of writing in the block into one that says what to do."""
        try:
            yield
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _HELD:
                raise LedgerError(_complain(self.path, error)) from error
            raise LedgerError(
                f"cannot write {self.path} ({error}); all that was written before is safe: make "
                "room, and go on with surrokit.resume(...)"
            ) from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write all that the block writes, or nothing of it."""
        with self.writing():
            self.execute("BEGIN IMMEDIATE")
        try:
            yield
            with self.writing():
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
        """Move all that is written into the file itself."""
        with self.writing():
            self.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def copy(self) -> Path:
        """Copy the file to one beside it that only its owner can read, and return its path."""
        name = f"{self.path.name}.before"
        names = (self.path.with_name(f"{name}{n or ''}") for n in itertools.count())
        new = next(name for name in names if not name.exists())
        try:
            os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except OSError as error:
            raise _cannot_write(new, error) from error
        with self.writing():
            self.execute("VACUUM INTO ?", (str(new),))
        return new

    def close(self) -> None:
        """Close the file; errors are told of where they matter."""
        with suppress(sqlite3.Error):
            self._connection.close()

    # --- facts ---

    def write_facts(self, facts: Mapping[str, Any]) -> None:
        """Write facts of the run: plain data, or arrays of numbers."""
        statement = "INSERT OR REPLACE INTO facts (run, name, value, data) VALUES (?, ?, ?, ?)"
        rows: list[tuple[Any, ...]] = []
        for name, value in facts.items():
            if isinstance(value, np.ndarray):
                data = np.ascontiguousarray(value, np.float64).tobytes()
                rows.append((self.run, name, json.dumps(value.shape), data))
            else:
                rows.append((self.run, name, json.dumps(value), None))
        with self.writing():
            self.execute_many(statement, rows)

    def facts(self) -> dict[str, Any]:
        """Return what the run has of plain data, by name."""
        query = "SELECT name, value FROM facts WHERE run = ? AND data IS NULL"
        with reading(self.path):
            return {name: json.loads(text) for name, text in self.rows(query, (self.run,))}

    def arrays(self) -> dict[str, FloatArray]:
        """Return the arrays of the run by name."""
        query = "SELECT name, value, data FROM facts WHERE run = ? AND data IS NOT NULL"
        with reading(self.path):
            rows = self.rows(query, (self.run,))
            return {name: array_of(data, json.loads(shape)) for name, shape, data in rows}

    def forget_run(self) -> None:
        """Remove all that the file holds of the run."""
        with self.transaction(), self.writing():
            for table in TABLES:
                self.execute(f"DELETE FROM {table} WHERE run = ?", (self.run,))


def array_of(data: bytes, shape: Sequence[int], dtype: str = "<f8") -> Any:
    """Return an array of its own from bytes."""
    if any(not isinstance(n, int) or n < 0 for n in shape):
        raise ValueError(f"{shape!r} is no shape of an array")
    return np.frombuffer(data, dtype=dtype).reshape(shape).copy()


# --- files ---


def _no_ledger(path: Path, what: str) -> LedgerError:
    return LedgerError(
        f"{path} is no ledger of surrokit, or {what} damaged; give a file that "
        "surrokit.sample(..., path=...) has written"
    )


def check_file(path: Path) -> None:
    """Raise unless a file is there that can be read: to open a pipe would wait for a writer."""
    try:
        if path.exists() and not path.is_file():
            raise OSError("it is no plain file")
        path.open("rb").close()
    except OSError as error:
        raise LedgerError(
            f"cannot read {path}: {error.strerror or error}; give a file that "
            "surrokit.sample(..., path=...) has written"
        ) from error


def connect(path: Path, mode: str, *, immutable: bool = False) -> sqlite3.Connection:
    """Return a connection to a file, to read (``"ro"``) or to write (``"rw"``).

    Of a file that is ``immutable``, which nobody writes or can, SQLite makes no file beside it.
    """
    address = f"{path.absolute().as_uri()}?mode={mode}{'&immutable=1' * immutable}"
    seconds = 2.0 if mode == "ro" else 10.0  # for which a file may be held by others
    return sqlite3.connect(address, uri=True, isolation_level=None, timeout=seconds)


def open_to_read(path: Path) -> sqlite3.Connection:
    """Return a connection to a file that may lie where nobody can write.

    There SQLite can make no file beside it, as it does even to read. All is in the file itself
    where the run had come to its end, and only then.
    """
    connection = connect(path, "ro")
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema")
    except sqlite3.Error as error:
        connection.close()
        beside = path.with_name(path.name + "-wal")
        whole = not (beside.exists() and beside.stat().st_size)
        kind = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if whole and kind in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            return connect(path, "ro", immutable=True)
        raise
    return connection
