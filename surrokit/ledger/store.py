"""The SQLite file of a run: its tables, its lock, and how it is opened."""

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


_LOCKED: set[str] = set()  # POSIX locks do not keep a process from itself


class Lock:
    """The right to write a ledger, which one process has at a time.

    The lock is on a file beside the ledger, and ends with the process that holds it, however that
    ends. Children of the process do not inherit it.

    Parameters
    ----------
    path
        The ledger.

    Raises
    ------
    LedgerError
        If a run holds the lock, or the file cannot be made.
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
                raise LedgerError(
                    f"cannot write beside {path}: {error.strerror or error}; give a file in a "
                    "folder that you may write to"
                ) from error
            file = os.fdopen(number, "r+", encoding="utf-8", errors="replace")
            try:
                _lock(number)
            except OSError:
                owner = file.read(80).strip() or "another process"
                file.close()
                raise LedgerError(_taken(path, owner)) from None
            if _is_there(number, self._path):
                return file
            file.close()  # its owner removed it meanwhile


@contextmanager
def made_beside(path: Path) -> Iterator[Path]:
    """Yield another name for a new file, which gets its own at the end of the block.

    Raises
    ------
    LedgerError
        If there is such a file, or none can be made.
    """
    new = path.with_name(path.name + ".new")
    _forget(new)  # of a process that was killed
    try:
        if path.exists():
            raise LedgerError(
                f"{path} exists; go on with it by surrokit.resume({str(path)!r}, target), or "
                "give another path"
            )
        yield new
        os.rename(new, path)
    except OSError as error:
        raise LedgerError(
            f"cannot write {path}: {error.strerror or error}; give a file in a folder that "
            "you may write to"
        ) from error
    finally:
        _forget(new)


def _forget(path: Path) -> None:
    for ending in ("", "-wal", "-shm", "-journal"):
        with suppress(OSError):
            path.with_name(path.name + ending).unlink(missing_ok=True)


def _taken(path: Path, owner: str) -> str:
    return (
        f"{path} is being written by a run ({owner}); wait for its end, or look at it with "
        "surrokit.open_run(...)"
    )


def _is_there(number: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(number), path.stat())
    except OSError:
        return False


if sys.platform == "win32":
    import msvcrt

    def _lock(number: int) -> None:
        msvcrt.locking(number, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(number: int) -> None:
        fcntl.lockf(number, fcntl.LOCK_EX | fcntl.LOCK_NB)


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
    def open(cls, path: Path, *, write: bool = False, of: str = "run") -> Store:
        """Open a ledger, to read it or to write on.

        Parameters
        ----------
        path
            The file.
        write
            Whether it may be written.
        of
            Whether it has to be that of a ``"run"``, or of a ``"model"`` alone.

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
                store._check_owner(of)
                if write:
                    store._set_up()
            except BaseException:
                store.close()
                raise
        return store

    def _set_up(self) -> None:
        self.execute("PRAGMA synchronous = NORMAL")
        self.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT}")

    def _check_owner(self, of: str) -> None:
        is_model = "model" in self.facts()
        if is_model and of == "run":
            raise LedgerError(
                f"{self.path} holds evaluations of a model, and no run; give it to "
                "surrokit.model(..., path=...)"
            )
        if not is_model and of == "model":
            raise LedgerError(
                f"{self.path} is the file of a run, and no model's; give the model its own file"
            )

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

    def copy(self) -> Path:
        """Copy the file to one beside it that only its owner can read, and return its path.

        Raises
        ------
        LedgerError
            If it cannot be written.
        """
        names = (
            self.path.with_name(f"{self.path.name}.before{n or ''}") for n in itertools.count()
        )
        new = next(name for name in names if not name.exists())
        self.commit()
        try:
            os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except OSError as error:
            raise LedgerError(
                f"cannot write {new}: {error.strerror or error}; give a file in a folder that you "
                "may write to"
            ) from error
        with self.writing():
            self.execute("VACUUM INTO ?", (str(new),))
        return new

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
