"""A lock on a file that dies with its process."""

from __future__ import annotations

import os
import sys
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
