"""Time that passes only where a target lets it.

Automatic choices, ``max_seconds`` and experiments that run for so many seconds depend on measured
times. Under this clock the same calls always take the same time, on a busy machine too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import attrs

_TICK = 1e-9  # so that no time is zero, and many readings are still nothing
_PROCESSOR_TICK = 1e-3

stopwatch = time.process_time
"""The processor's real clock, which other programs do not stretch."""


@attrs.define
class Clock:
    """Stands in for ``time.perf_counter`` and ``time.process_time``."""

    seconds: float = 0.0
    processor: float = 0.0

    def reset(self) -> None:
        self.seconds = self.processor = 0.0

    def spend(self, seconds: float) -> None:
        """Let time pass."""
        self.seconds += seconds

    def perf_counter(self) -> float:
        self.seconds += _TICK
        return self.seconds

    def process_time(self) -> float:
        """Return processor seconds: each reading takes some, as no target here spends them."""
        self.processor += _PROCESSOR_TICK
        return self.processor


CLOCK = Clock()
"""The one that :func:`simulated` installs."""


@contextmanager
def simulated() -> Iterator[Clock]:
    """Have the standard library tell the time of :data:`CLOCK`.

    Enter it before surrokit is imported: a default argument keeps the function it was given.
    """
    real = time.perf_counter, time.process_time
    time.perf_counter, time.process_time = CLOCK.perf_counter, CLOCK.process_time
    try:
        yield CLOCK
    finally:
        time.perf_counter, time.process_time = real


def costly(function: Callable, seconds: float) -> Callable:
    """Return a function whose calls take so long."""

    def slow(*arguments: object) -> object:
        CLOCK.spend(seconds)
        return function(*arguments)

    return slow
