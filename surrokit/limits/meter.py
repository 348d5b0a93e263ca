"""The meter of a run: how many exact calls have come back, how many go on, and how long one takes.

Whatever makes calls moves it, at the cost of a reading of the clock. A bar reads it from a thread
of its own, or when it ticks: nobody is called at each evaluation, and nothing that a run draws
depends on it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

STARTING, SEARCHING, EXPLORING = "starting", "searching for the mode", "exploring"
FITTING, WARMING, SAMPLING, WEIGHING = "fitting the surrogate", "warm-up", "sampling", "weighing"
"""Stages of a run, in words."""


class Meter:
    """Counters of one run.

    Attributes
    ----------
    stage
        What the run does now, in words.
    workers
        Calls that may go on at once.
    done, busy
        Calls that have come back, and the seconds that workers spent on them.
    read
        Returns how far the run is; None before it has begun.
    tick, every
        Called after a call, at most once in so many seconds; None for nothing.
    """

    def __init__(self) -> None:
        self.stage, self.workers = STARTING, 1
        self.done, self.busy = 0, 0.0
        self.read: Callable[[], Any] | None = None
        self.tick: Callable[[], None] | None = None
        self.every = math.inf
        self._out, self._at = 0, time.perf_counter()
        self._ticked = self._at

    @property
    def in_flight(self) -> int:
        """Calls that go on."""
        return min(self._out, self.workers)

    @property
    def not_back(self) -> int:
        """Calls of the batch in progress that have not come back; some may wait for a worker."""
        return self._out

    @property
    def seconds_a_call(self) -> float | None:
        """Mean seconds of a call; None before the first has come back."""
        return self.busy / self.done if self.done else None

    def begin(self, n: int) -> None:
        """Note that a batch of n calls begins."""
        self.left(0)
        self._out = n

    def left(self, n: int) -> None:
        """Note that all but n calls of the batch have come back."""
        now, out = time.perf_counter(), self._out
        if n < out:
            self.busy += (now - self._at) * min(out, self.workers)
            self.done += out - n
            self._out = n
        if now - self._ticked > self.every and self.tick is not None:
            self._ticked = now
            self.tick()
            now = time.perf_counter()
        self._at = now


_METER: ContextVar[Meter | None] = ContextVar("meter", default=None)


def current_meter() -> Meter:
    """Return the meter of the run in progress; outside of a run, one that nobody reads."""
    return _METER.get() or Meter()


@contextmanager
def metered() -> Iterator[Meter]:
    """Yield a new meter, which is that of runs in the block."""
    meter = Meter()
    token = _METER.set(meter)
    try:
        yield meter
    finally:
        _METER.reset(token)


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Let the run be at a stage in the block, and at the one before after it."""
    meter = current_meter()
    before, meter.stage = meter.stage, name
    try:
        yield
    finally:
        meter.stage = before
