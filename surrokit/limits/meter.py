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

import attrs

STARTING, EXPLORING, FITTING = "starting", "exploring", "fitting the surrogate"
WARMING, SAMPLING, WEIGHING = "warm-up", "sampling", "weighing"
"""Stages of a run, in words."""

SEARCHING = "searching for the mode"
"""The stage of a search, within any of the others."""


@attrs.define
class _Tick:
    seconds: float
    call: Callable[[], None]
    due: float


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
    """

    def __init__(self) -> None:
        self.stage, self.workers = STARTING, 1
        self.done, self.busy = 0, 0.0
        self.read: Callable[[], Any] | None = None
        """Returns how far the run is; None before it has begun."""
        self._out, self._at = 0, time.perf_counter()
        self._next, self._ticks = math.inf, list[_Tick]()

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
        self._pass(0, n)

    def left(self, n: int) -> None:
        """Note that all but n calls of the batch have come back."""
        if n <= self._out:
            self._pass(n, n)

    def _pass(self, left: int, out: int) -> None:
        """Count calls that have come back, and the seconds until now."""
        now, before = time.perf_counter(), self._out
        self.busy += (now - self._at) * min(before, self.workers)
        self.done += before - left
        self._out = out
        self._at = now if now < self._next else self._tick(now)

    def every(self, seconds: float, call: Callable[[], None]) -> None:
        """Call something from here on when calls begin or come back, so many seconds apart."""
        self._ticks.append(_Tick(seconds, call, time.perf_counter() + seconds))
        self._next = min(tick.due for tick in self._ticks)

    def stop(self) -> None:
        """Call nothing from here on."""
        self._next = math.inf
        self._ticks.clear()

    def _tick(self, now: float) -> float:
        """Call what is due, and return the time after that: it is no time of calls."""
        for tick in self._ticks:
            if now >= tick.due:
                tick.due = now + tick.seconds
                tick.call()
        self._next = min(tick.due for tick in self._ticks)
        return time.perf_counter()


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
