"""What tests of other processes wait for."""

from __future__ import annotations

import time
from pathlib import Path


def is_alive(pid):
    """Return whether a process runs, zombies aside."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def wait_until(condition, seconds=60.0):
    """Wait until a condition holds, and fail if it does not in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
