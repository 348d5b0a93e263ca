"""Deadlines, the meter of a run's calls, threads of BLAS, and penalties as infinities."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache, partial
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from surrokit.types import BoolArray, FloatArray

_CHECK: ContextVar[Callable[[], None] | None] = ContextVar("deadline", default=None)


def check_deadline() -> None:
    """End the run in progress if its time is over; outside of a run do nothing.

    Loops that take longer than a fraction of a second call it once an iteration. It takes about a
    microsecond. What ends the run passes any ``except Exception``.
    """
    check = _CHECK.get()
    if check is not None:
        check()


@contextmanager
def deadline(check: Callable[[], None] | None) -> Iterator[None]:
    """Let :func:`check_deadline` ask ``check`` in the block, which raises if the time is over."""
    token = _CHECK.set(check)
    try:
        yield
    finally:
        _CHECK.reset(token)


@contextmanager
def ended_after(seconds: float | None, end: Callable[[], object]) -> Iterator[threading.Event]:
    """Call ``end``, in a thread of its own, unless the block ends before; yield whether it was."""
    passed = threading.Event()

    def give_up() -> None:
        passed.set()
        end()

    timer = threading.Timer(seconds or 0.0, give_up)
    timer.daemon = True
    if seconds is not None:
        timer.start()
    try:
        yield passed
    finally:
        timer.cancel()


STARTING, EXPLORING, FITTING = "starting", "exploring", "fitting the surrogate"
WARMING, SAMPLING, WEIGHING = "warm-up", "sampling", "weighing"
SEARCHING = "searching for the mode"
"""Stages of a run, in words; the last one is within any of the others."""


class Meter:
    """Counters of one run: its stage in words, calls that have come back, and their seconds."""

    def __init__(self) -> None:
        self.stage, self.workers = STARTING, 1
        self.done, self.busy = 0, 0.0
        self.read: Callable[[], Any] | None = None
        """Returns how far the run is; None before it has begun, and after its end."""
        self._out, self._at = 0, time.perf_counter()
        self._next = math.inf
        self._ticks: list[list[Any]] = []  # when one is due, seconds between two, and the call

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
        if self._out:
            self.left(0)
        now = time.perf_counter()
        self._out, self._at = n, now if now < self._next else self._tick(now)

    def left(self, n: int) -> None:
        """Note that all but n calls of the batch have come back."""
        before = self._out
        if n > before:
            return
        now = time.perf_counter()
        self.busy += (now - self._at) * (before if before < self.workers else self.workers)
        self.done += before - n
        self._out = n
        self._at = now if now < self._next else self._tick(now)

    def every(self, seconds: float, call: Callable[[], None]) -> None:
        """Call something from here on when calls begin or come back, so many seconds apart."""
        self._ticks.append([time.perf_counter() + seconds, seconds, call])
        self._next = min(due for due, _, _ in self._ticks)

    def stop(self) -> None:
        """Call nothing from here on; how far the run is stays as it is now."""
        if self.read is not None:
            self.stage, self.read = str(self.read()), None
        self._next = math.inf
        self._ticks.clear()

    def _tick(self, now: float) -> float:
        """Call what is due, and return the time after that: it is no time of calls."""
        for tick in self._ticks:
            if now >= tick[0]:
                tick[0] = now + tick[1]
                tick[2]()
        self._next = min(due for due, _, _ in self._ticks)
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


EDGE = 1e30  #: Potential, in nats, from which on a density is zero: no model of data gets there.

PENALTY = 1e6
"""Potential, in nats, from which on equal values at different positions are a penalty: no model of
data gives the same number, to the last digit, at three of them."""


def without_penalties(values: FloatArray) -> FloatArray:
    """Return potentials (n,), infinite from :data:`EDGE` on."""
    return np.where(values >= EDGE, np.inf, values)


def without_cliffs(values: FloatArray) -> FloatArray:
    """Return potentials (n, k), infinite where a cliff parts them from the first of their row.

    A row holds those of a position and of its close neighbours.
    """
    values = without_penalties(values)
    with np.errstate(invalid="ignore"):
        here = values[:, :1]
        rises = values[:, 1:] - here > np.maximum(PENALTY, 100.0 * np.abs(here))
    values[:, 1:] = np.where(rises, np.inf, values[:, 1:])
    return values


def are_penalties(positions: FloatArray, densities: FloatArray) -> BoolArray:
    """Return which of some potentials (n,) at positions (n, dim) are penalties.

    They are high, and the same at three positions. Potentials are minus the logarithm of the
    user's density, without any Jacobian.
    """
    found = (densities >= PENALTY) & (densities < np.inf)
    high = np.flatnonzero(found)
    distinct = high[np.unique(positions[high], axis=0, return_index=True)[1]]
    same = np.isclose(densities[high, None], densities[distinct], rtol=1e-10, atol=0.0)
    found[high] = same.sum(axis=1) >= 3
    return found


FEW = 20_000  #: Numbers that evaluations hold, below which a fit to them is small.


_LOCK, _CHANGED = threading.RLock(), list[tuple[Callable[[int], Any], int]]()
_BLOCKS = 0
_HELD: ContextVar[int] = ContextVar("one_thread", default=0)
"""Blocks of :data:`one_thread` that the present code runs in."""


def _count(by: int) -> None:
    """Count so many blocks more, or fewer, that ask for one thread.

    The number of threads belongs to the process, not to a thread of Python: the first block notes
    what there was and sets one thread, the last one restores it, in whatever order the blocks of
    several runs end.
    """
    global _BLOCKS
    with _LOCK:
        was, _BLOCKS = _BLOCKS, _BLOCKS + by
        if not was and _BLOCKS:
            _CHANGED[:] = [
                (library.set_num_threads, library.num_threads)
                for library in _libraries()
                if library.num_threads > 1
            ]
            for set_number, _ in _CHANGED:
                set_number(1)
        elif was and not _BLOCKS:
            for set_number, number in _CHANGED:
                set_number(number)


@cache
def _libraries() -> list[Any]:
    """Return the libraries of linear algebra, found once: a search takes milliseconds."""
    import scipy.linalg  # noqa: F401  # it has a library of its own, which is found once loaded

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


@contextmanager
def _holding(by: int | None) -> Iterator[None]:
    """Hold so many blocks more in the block, or none of those that the present code holds."""
    change = -_HELD.get() if by is None else by
    if not change:
        yield
        return
    _HELD.set(_HELD.get() + change)
    _count(change)
    try:
        yield
    finally:
        _HELD.set(_HELD.get() - change)
        _count(-change)


one_thread = partial(_holding, 1)
"""Runs linear algebra in one thread within the block.

Batches of a surrogate are small: threads gain nothing there, and where other processes run they
wait for each other most of the time. A whole run is one such block; what a user wrote is called
in :data:`users_threads`.
"""

_AS_IT_IS = nullcontext()


def users_threads() -> AbstractContextManager[None]:
    """Run linear algebra in as many threads as before :data:`one_thread` within the block.

    It takes some microseconds. Outside of :data:`one_thread` it changes nothing, and takes none:
    each call of a user's function is in such a block.
    """
    return _AS_IT_IS if has_users_threads() else _holding(None)


def has_users_threads() -> bool:
    """Return whether linear algebra runs in as many threads as before :data:`one_thread`."""
    return not (_HELD.get() and _CHANGED)


def threads_for(numbers: int) -> AbstractContextManager[None]:
    """Run a fit to so many numbers in one thread within the block if that is small.

    On two cores with one taken by another process, small fits in two threads took twenty times as
    long as in one.
    """
    return one_thread() if numbers < FEW else users_threads()
