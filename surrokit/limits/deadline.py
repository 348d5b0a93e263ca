"""The deadline of a run, which every loop of its own work asks.

The exact potential asks before each call. Fits, searches and chains on a surrogate make no call,
and may take longer than all calls together; their loops ask here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

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
    """Let :func:`check_deadline` ask in the block.

    Parameters
    ----------
    check
        Raises if the time is over; None for a block without a deadline.
    """
    token = _CHECK.set(check)
    try:
        yield
    finally:
        _CHECK.reset(token)
