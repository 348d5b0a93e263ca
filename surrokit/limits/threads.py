"""Threads of linear algebra."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ContextDecorator
from contextvars import ContextVar
from functools import cache
from types import TracebackType
from typing import Any

from threadpoolctl import ThreadpoolController

FEW = 20_000
"""Numbers that evaluations hold, values and slopes, below which a fit to them is small."""


class _Limit:
    """One thread in the whole process while any block asks for it.

    The number of threads belongs to the process, not to a thread of Python. So blocks are counted:
    the first one notes what there was and sets one thread, the last one restores it, in whatever
    order the blocks of several runs end.
    """

    def __init__(self) -> None:
        self._lock, self._blocks = threading.RLock(), 0
        self._before: list[tuple[Callable[[int], Any], int]] = []

    def change(self, by: int) -> None:
        """Count so many blocks more, or fewer."""
        with self._lock:
            was, self._blocks = self._blocks, self._blocks + by
            if not was and self._blocks:
                found = [(each.set_num_threads, each.num_threads) for each in _libraries()]
                self._before = [(set_number, number) for set_number, number in found if number > 1]
                for set_number, _ in self._before:
                    set_number(1)
            elif was and not self._blocks:
                for set_number, number in self._before:
                    set_number(number)


@cache
def _libraries() -> list[Any]:
    """Return the libraries of linear algebra, found once: a search takes milliseconds."""
    import scipy.linalg  # noqa: F401  # it has a library of its own, which is found once loaded

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


_LIMIT = _Limit()
_HELD: ContextVar[int] = ContextVar("one_thread", default=0)
"""Blocks of :func:`one_thread` that the present code runs in."""


class _Held(ContextDecorator):
    """A block in which the present code holds one block more, or none of those that it held."""

    def __init__(self, by: int | None) -> None:
        self._by, self._change = by, 0

    def _recreate_cm(self) -> _Held:
        return _Held(self._by)

    def __enter__(self) -> None:
        held = _HELD.get()
        self._change = -held if self._by is None else self._by
        if self._change:
            _HELD.set(held + self._change)
            _LIMIT.change(self._change)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._change:
            _HELD.set(_HELD.get() - self._change)
            _LIMIT.change(-self._change)


def one_thread() -> AbstractContextManager[None]:
    """Run linear algebra in one thread within the block.

    Batches of a surrogate are small: threads gain nothing there, and where other processes run they
    wait for each other most of the time. A whole run is one such block; what a user wrote is called
    in :func:`users_threads`.
    """
    return _Held(1)


def users_threads() -> _Held:
    """Run linear algebra in as many threads as before :func:`one_thread`; also a decorator.

    It takes some microseconds. Outside of :func:`one_thread` it changes nothing.
    """
    return _Held(None)


def threads_for(numbers: int) -> AbstractContextManager[None]:
    """Run a fit to so many numbers in one thread within the block if that is small.

    On two cores of which another process took one, small fits in two threads took twenty times as
    long as in one.
    """
    return one_thread() if numbers < FEW else users_threads()
