"""Seconds by phase of a run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from surrokit.model.journal import Journal, NoJournal
from surrokit.model.memo import Memo


class Clock:
    """Adds up the time spent in each phase: ``warmup``, ``training`` and ``sampling``.

    Parameters
    ----------
    journal
        Keeps every reading, or gives what was read before.
    memo
        Holds the seconds of calls that are not made again; None where there is none.
    """

    def __init__(self, journal: Journal | None = None, memo: Memo | None = None) -> None:
        self.seconds = {"warmup": 0.0, "training": 0.0, "sampling": 0.0}
        self._journal: Journal = journal or NoJournal()
        self._memo = memo
        self._began = time.perf_counter()

    @property
    def replays(self) -> bool:
        """Whether the journal says the time."""
        return self._journal.replays

    def now(self) -> float:
        """Return seconds since the run began, for what leaves no trace in a run that goes on."""
        return time.perf_counter() - self._began

    def elapsed(self) -> float:
        """Return seconds since the run began."""
        now = self.now()
        read = self._journal.reading(now)
        self._began += now - read  # a run that was read goes on from there
        return read

    def with_saved(self) -> float:
        """Return seconds as they would be if every call had been made."""
        saved = 0.0 if self._memo is None else self._memo.seconds
        return self._journal.reading(self.now() + saved)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time of the block to a phase, but for that of phases within it."""
        start, before = self.elapsed(), sum(self.seconds.values())
        try:
            yield
        finally:
            within = sum(self.seconds.values()) - before
            self.seconds[name] += self.elapsed() - start - within
