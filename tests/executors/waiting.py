"""What tests of other processes wait for."""

from __future__ import annotations

import time
from pathlib import Path


def is_alive(pid):
    """Return whether a process runs, zombies excluded."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def processes_with(mark):
    """Return the processes that have a mark in their environment, zombies excluded."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes() and is_alive(folder.name):
                found.append(folder.name)
        except OSError:  # it has ended, or is another user's
            continue
    return found


def wait_until(condition, seconds=60.0):
    """Wait until a condition holds, and fail if it does not in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
