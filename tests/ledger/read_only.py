"""Reads a file in a folder in which nothing can be made."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import surrokit as sk


def obey_permissions():
    """Give up the right of a superuser to write in spite of permissions."""
    if sys.platform == "linux":
        header = (ctypes.c_uint32 * 2)(0x20080522, 0)
        ctypes.CDLL(None).capset(header, (ctypes.c_uint32 * 6)())


if __name__ == "__main__":
    path = Path(sys.argv[1])
    obey_permissions()
    try:
        (path.parent / "new").touch()
        print("the folder can be written")
    except OSError:
        print(sk.open_run(path).draws.shape, len(sk.Ledger(path)))
