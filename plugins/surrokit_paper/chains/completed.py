"""Runs that somebody may have ended."""

from __future__ import annotations

import surrokit as sk


def completed(run: sk.Run) -> sk.Run:
    """Return a run that was not interrupted: half a run is no result to keep.

    Raises
    ------
    KeyboardInterrupt
        If somebody ended it.
    """
    if not run.complete:
        raise KeyboardInterrupt
    return run
