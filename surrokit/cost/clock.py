"""Seconds by phase of a run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Clock:
    """Adds up the time spent in each phase: ``warmup``, ``training`` and ``sampling``."""

    def __init__(self) -> None:
        self.seconds = {"warmup": 0.0, "training": 0.0, "sampling": 0.0}
        self._began = time.perf_counter()

    def elapsed(self) -> float:
        """Return seconds since the clock was made."""
        return time.perf_counter() - self._began

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time of the block to a phase."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] += time.perf_counter() - start
