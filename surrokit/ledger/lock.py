"""A lock on a file that dies with its process, and new files that are whole from the first."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from surrokit.errors import LedgerError

_HELD: set[str] = set()  # POSIX locks do not keep a process from itself


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
        if self._key in _HELD:
            raise LedgerError(_taken(path, f"process {os.getpid()}, this one"))
        self._file = self._take(path)
        _HELD.add(self._key)
        self._file.seek(0)
        self._file.truncate()
        self._file.write(f"process {os.getpid()}\n")
        self._file.flush()

    def release(self) -> None:
        """Give the lock up."""
        if self._key in _HELD:
            _HELD.discard(self._key)
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
