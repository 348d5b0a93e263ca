"""Executors that users give, and threads of our own."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from surrokit.errors import WorkerError
from surrokit.executors.cargo import pack, refuse
from surrokit.executors.outstanding import Key, key_of
from surrokit.executors.reply import Reply, try_at
from surrokit.executors.worker import Cargo, Conditions, evaluate, ready, whoami
from surrokit.limits import current_meter
from surrokit.model.source import Source
from surrokit.types import FloatArray

_LAST_CALLS, _PAUSE = 5.0, 0.05  # seconds for which calls are given up, and between attempts


class Begun(ABC):
    """Rows that an executor evaluates before anybody asks for them."""

    def __init__(self) -> None:
        self._begun: dict[Key, Future[Reply]] = {}

    @property
    def unfinished(self) -> int:
        """Rows that were begun and are not done."""
        return sum(not future.done() for future in self._begun.values())

    def begin(self, what: str, row: FloatArray) -> None:
        """Evaluate a row that may be asked for later."""
        key = key_of(what, row)
        if key not in self._begun:
            self._begun[key] = self.send(what, row)

    @abstractmethod
    def send(self, what: str, row: FloatArray) -> Future[Reply]:
        """Give a row to the executor."""

    def ask(self, what: str, row: FloatArray) -> Future[Reply]:
        """Return the future of a row that is asked for now, and was perhaps begun before."""
        future = self._begun.pop(key_of(what, row), None)
        return self.send(what, row) if future is None else future

    def withdraw(self, key: Key) -> bool:
        """Take back a row that was begun, unless a worker has it; return whether it is no more."""
        if key in self._begun and self._begun[key].cancel():
            del self._begun[key]
        return key not in self._begun

    def has_reply(self, key: Key) -> bool:
        """Return whether a row that was begun is done."""
        return key in self._begun and self._begun[key].done()


class Threads(Begun):
    """Workers that are threads of this process; they use the target itself.

    Parameters
    ----------
    executor
        The threads.
    own
        Whether they end with the run.
    """

    def __init__(self, executor: ThreadPoolExecutor, *, own: bool) -> None:
        super().__init__()
        self._executor, self._own = executor, own
        self._source: Source | None = None
        self._out: list[Future[Reply]] = []
        self.closed = False

    def take(self, source: Source) -> None:
        """Keep a target."""
        self._source = source

    def send(self, what: str, row: FloatArray) -> Future[Reply]:
        """Give a row to a thread."""
        errors: dict[str, Any] = dict(np.geterr())  # a thread has its own
        source, row = self._source, row.copy()
        assert source is not None

        def reply() -> Reply:
            with np.errstate(**errors):
                return try_at(source, what, row)

        return _submitted(self._executor, reply)

    def evaluate(self, what: str, rows: FloatArray) -> Sequence[Reply]:
        """Return the reply for each row."""
        futures = self._out = []
        try:
            futures.extend(self.ask(what, row) for row in rows)
            replies, meter = list[Reply](), current_meter()
            for future in futures:
                replies.append(_result(future))
                meter.left(len(futures) - len(replies))
            return replies
        finally:
            for future in futures:
                future.cancel()

    def close(self) -> None:
        """End the threads if they are our own, without waiting for those at work.

        A target with a method ``give_up`` is told that nobody waits for its calls any more.
        """
        self.closed = True
        self._out.extend(self._begun.values())
        for future in self._out:
            future.cancel()
        if self._own:
            self._executor.shutdown(wait=False, cancel_futures=True)
        give_up = getattr(self._source, "give_up", None)
        end = time.monotonic() + _LAST_CALLS
        while give_up is not None and time.monotonic() < end:
            left = [future for future in self._out if not future.done()]
            if not left:
                return
            give_up()
            wait(left, timeout=_PAUSE)  # some may only now begin


class Given(Begun):
    """Workers of an executor that is not ours; they may be anywhere.

    Parameters
    ----------
    executor
        Any executor whose workers can import surrokit.
    """

    def __init__(self, executor: Executor) -> None:
        super().__init__()
        self._executor = executor
        self._cargo: Cargo | None = None
        self._lacking: set[str] = set()  # workers that asked for the target
        self.closed = False

    @property
    def _key(self) -> str:
        assert self._cargo is not None
        return self._cargo.key

    def take(self, source: Source) -> None:
        """Send a target to one of them, to see that it can be done.

        Raises
        ------
        ConfigurationError
            If it cannot be pickled, or a worker cannot load it.
        WorkerError
            If the executor fails.
        """
        self._cargo = pack(source)
        _, failure = _result(_submitted(self._executor, ready, self._key, self._cargo, whoami()))
        if failure is not None:
            raise refuse(failure)

    def evaluate(self, what: str, rows: FloatArray) -> Sequence[Reply]:
        """Return the reply for each row; workers that lack the target are sent it.

        Raises
        ------
        WorkerError
            If the executor fails.
        """
        out = {self.ask(what, row): i for i, row in enumerate(rows)}
        replies: dict[int, Reply] = {}
        carried, meter = bool(self._lacking), current_meter()
        try:
            while out:
                for future in wait(out, return_when=FIRST_COMPLETED).done:
                    i, reply = out.pop(future), _result(future)
                    if reply.is_empty:
                        self._lacking.add(reply.worker)
                        out[self.send(what, rows[i])] = i
                    else:
                        self._lacking.discard(reply.worker)
                        replies[i] = reply
                meter.left(len(out))
        finally:
            for future in out:
                future.cancel()
        if carried:  # a worker that was not heard of may have gone
            self._lacking.clear()
        return [replies[i] for i in range(len(rows))]

    def send(self, what: str, row: FloatArray) -> Future[Reply]:
        """Give a row to a worker, with the target if some lack it."""
        cargo = self._cargo if self._lacking else None
        task = (self._key, cargo, what, row.copy(), Conditions.now())
        return _submitted(self._executor, evaluate, *task)

    def close(self) -> None:
        """Leave the executor to whom it belongs."""
        self.closed = True


def _submitted(executor: Executor, function: Any, *arguments: Any) -> Future[Any]:
    try:
        future: Future[Any] = executor.submit(function, *arguments)
    except Exception as error:
        raise _broken(error) from error
    return future


def _result(future: Future[Any]) -> Any:
    try:
        return future.result()
    except Exception as error:
        raise _broken(error) from error


def _broken(error: Exception) -> WorkerError:
    return WorkerError(
        f"the executor that was given failed: {type(error).__name__}: {error}; its workers must be "
        "able to import surrokit. Make it anew; a run with path=... can be resumed"
    )
