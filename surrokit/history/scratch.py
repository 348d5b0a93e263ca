"""Room for the arrays of long runs: in memory, or in a file that the system may page out."""

from __future__ import annotations

import math
import os
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from surrokit.errors import LedgerError

Keep: TypeAlias = Literal["memory", "file"]
"""Where the draws of a run are."""

AT_ONCE = 2**16
"""Rows that are copied or transformed at a time, so that no copy of all is made in memory."""

EXTENT = 2**22
"""Bytes by which a file grows at least. It grows by half, as each extent is mapped by itself."""

_ALIGNED = 64


class Scratch:
    """Room in memory."""

    def empty(self, shape: Sequence[int], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return an array whose numbers may be anything."""
        return np.empty(shape, dtype)

    def fresh(self) -> Scratch:
        """Return more room of the same kind, which is given up by itself."""
        return self

    def copy(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return a copy, in the order of its rows."""
        found = self.empty(array.shape, array.dtype)
        rows = max(AT_ONCE // max(math.prod(array.shape[2:]), 1), 1)
        for one, other in zip(found, array, strict=True):
            for at in range(0, len(other), rows):
                one[at : at + rows] = other[at : at + rows]
        return found


class FileScratch(Scratch):
    """Room in a file without a name, which is gone when nothing uses it any more.

    Its pages are written and dropped by the system where memory is short.

    Parameters
    ----------
    folder
        Where the file is made.

    Raises
    ------
    LedgerError
        If it cannot be.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - arrays outlive a block
        except OSError as error:
            raise self._complain(error) from error
        weakref.finalize(self, self._file.close)
        self._size = 0
        self._extent: npt.NDArray[np.uint8] = np.empty(0, np.uint8)

    def empty(self, shape: Sequence[int], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return an array whose numbers may be anything.

        Raises
        ------
        LedgerError
            If the disk is full.
        """
        n = math.prod(shape) * np.dtype(dtype).itemsize
        if n > len(self._extent):
            self._grow(max(n, self._size // 2, EXTENT))
        found, self._extent = self._extent[:n], self._extent[-(-n // _ALIGNED) * _ALIGNED :]
        return found.view(dtype).reshape(shape)

    def fresh(self) -> Scratch:
        """Return room in another file, which is gone as soon as its arrays are."""
        return FileScratch(self._folder)

    def _grow(self, n: int) -> None:
        # a page that cannot be written later would end the process
        try:
            _reserve(self._file.fileno(), self._size, n)
        except OSError as error:
            raise self._complain(error) from error
        self._extent = np.asarray(np.memmap(self._file, np.uint8, "r+", self._size, (n,)))
        self._size += n

    def _complain(self, error: OSError) -> LedgerError:
        return LedgerError(
            f"cannot keep draws in a file in {self._folder} ({error.strerror or error}); make "
            "room, and go on with surrokit.resume(...)"
        )


def scratch_for(keep: Keep, path: Path) -> Scratch:
    """Return the room for draws of a run: in memory, or beside its ledger.

    Raises
    ------
    LedgerError
        If no file can be made there.
    """
    return FileScratch(path.absolute().parent) if keep == "file" else Scratch()


def _reserve(file: int, start: int, n: int) -> None:
    """Take room of a file from the disk."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, start, n)
        return
    os.lseek(file, start, os.SEEK_SET)
    for at in range(0, n, 2**20):
        os.write(file, bytes(min(2**20, n - at)))
