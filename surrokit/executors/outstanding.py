"""Calls of a pool that wait, are out, or have come back."""

from __future__ import annotations

import time
from collections import deque
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait

import attrs
import numpy as np

from surrokit.executors.reply import Reply
from surrokit.model.outcome import say_place
from surrokit.types import FloatArray

_GLANCE = 0.001  # seconds between looks at futures, which do not tell when they begin

Key = tuple[str, bytes]
"""Which result, and where, to the bit."""


def key_of(what: str, row: FloatArray) -> Key:
    """Return what tells a call from others."""
    return what, np.asarray(row, dtype=np.float64).tobytes()


@attrs.define(eq=False)
class Errand:
    """A call of one row.

    Parameters
    ----------
    what
        Which result.
    row : ndarray of shape (width,)
        Where.
    ahead
        Whether nobody has asked for it yet.
    since
        When it went out, by the monotonic clock.
    reply
        What came back.
    """

    what: str
    row: FloatArray
    ahead: bool = False
    since: float = 0.0
    reply: Reply | None = None


class Outstanding:
    """Calls that wait for a worker, and calls that are out.

    Calls that were asked for go before those that are made ahead.

    Parameters
    ----------
    timeout
        Seconds after which a call that is out is given up; None for never.
    """

    def __init__(self, timeout: float | None) -> None:
        self.waiting: deque[Errand] = deque()
        self.out: dict[Future[Reply], Errand] = {}
        self._timeout = timeout
        self._ahead: dict[Key, Errand] = {}

    @property
    def unfinished(self) -> int:
        """Calls ahead of which nothing has come back."""
        return sum(errand.reply is None for errand in self._ahead.values())

    def ask(self, what: str, row: FloatArray) -> Errand:
        """Return a call that is asked for now, and was perhaps begun before."""
        errand = self._ahead.pop(key_of(what, row), None) or Errand(what, row.copy())
        was_ahead, errand.ahead = errand.ahead, False
        if was_ahead and errand in self.waiting:
            self.waiting.remove(errand)
            was_ahead = False
        if not was_ahead:
            at = next((i for i, other in enumerate(self.waiting) if other.ahead), None)
            self.waiting.insert(len(self.waiting) if at is None else at, errand)
        return errand

    def begin(self, what: str, row: FloatArray) -> None:
        """Add a call that may be asked for later."""
        key = key_of(what, row)
        if key not in self._ahead:
            self._ahead[key] = Errand(what, row.copy(), ahead=True)
            self.waiting.append(self._ahead[key])

    def withdraw(self, key: Key) -> bool:
        """Take a call ahead back, if it has not gone out; return whether it is no more."""
        errand = self._ahead.get(key)
        if errand is not None and errand in self.waiting:
            self.waiting.remove(errand)
            del self._ahead[key]
        return key not in self._ahead

    def has_reply(self, key: Key) -> bool:
        """Return whether a call ahead has come back."""
        errand = self._ahead.get(key)
        return errand is not None and errand.reply is not None

    def send(self, errand: Errand, future: Future[Reply]) -> None:
        """Note that a call is out."""
        self.out[future] = errand
        errand.since = time.monotonic()

    def gather(self, seconds: float | None = None) -> tuple[int, list[Errand]]:
        """Wait for a call to come back; return how many did, and those whose worker died.

        Lost calls that were asked for wait again, and others are given up.
        """
        if seconds is None and self._timeout is not None and self.out:
            first = min(errand.since for errand in self.out.values())
            seconds = max(first + self._timeout - time.monotonic(), 0.0)
        came, lost = 0, list[Errand]()
        for future in wait(self.out, timeout=seconds, return_when=FIRST_COMPLETED).done:
            errand = self.out.pop(future)
            try:
                errand.reply = future.result()
                came += 1
            except BrokenExecutor:
                lost.append(errand)
        if lost:  # the pool is broken, so those that are still out are lost too
            lost += self.drop()
            wanted = [errand for errand in lost if not errand.ahead]
            self.waiting.extendleft(reversed(wanted))
        return came, lost

    def drop(self) -> list[Errand]:
        """Give up all that is out, and return what has not come back."""
        lost = list[Errand]()
        for future, errand in self.out.items():
            if _has_result(future):
                errand.reply = future.result()
            else:
                lost.append(errand)
        self.out = {}
        self._ahead = {key: e for key, e in self._ahead.items() if e not in lost}
        return lost

    def await_start(self, seconds: float) -> None:
        """Wait until every call that is out is with a worker, or done, for so long at most."""
        end = time.monotonic() + seconds
        while any(not (future.running() or future.done()) for future in self.out):
            if time.monotonic() > end:
                return
            time.sleep(_GLANCE)

    def give_up(self) -> int:
        """Give up calls that have been out for too long, and return how many."""
        if self._timeout is None:
            return 0
        late = time.monotonic() - self._timeout
        hung = [future for future, errand in self.out.items() if errand.since <= late]
        for future in hung:
            error = TimeoutError(f"the call took longer than timeout={self._timeout:g} seconds")
            say_place(error, None)
            self.out.pop(future).reply = Reply(error=error)
        return len(hung)


def _has_result(future: Future[Reply]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None
