"""Executors that users give, and threads of our own."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from surrokit.coordinates.rowwise import RowSource
from surrokit.errors import WorkerError
from surrokit.executors.cargo import pack, refuse
from surrokit.executors.reply import Reply, try_at
from surrokit.executors.worker import Cargo, Conditions, evaluate, ready, whoami
from surrokit.types import FloatArray

_LAST_CALLS, _PAUSE = 5.0, 0.05  # seconds for which calls are given up, and between attempts


class Threads:
    """Workers that are threads of this process; they use the target itself.

    Parameters
    ----------
    executor
        The threads.
    own
        Whether they end with the run.
    """

    def __init__(self, executor: ThreadPoolExecutor, *, own: bool) -> None:
        self._executor, self._own = executor, own
        self._source: RowSource | None = None
        self._out: list[Future[Reply]] = []
        self.closed = False

    def take(self, source: RowSource) -> None:
        """Keep a target."""
        self._source = source

    def evaluate(self, what: str, rows: FloatArray) -> Sequence[Reply]:
        """Return the reply for each row."""
        errors: dict[str, Any] = dict(np.geterr())  # a thread has its own
        source = self._source
        assert source is not None

        def reply(row: FloatArray) -> Reply:
            with np.errstate(**errors):
                return try_at(source, what, row.copy())

        futures = self._out = []
        try:
            futures.extend(_submitted(self._executor, reply, row) for row in rows)
            return [_result(future) for future in futures]
        finally:
            for future in futures:
                future.cancel()

    def close(self) -> None:
        """End the threads if they are our own, without waiting for those at work.

        A target with a method ``give_up`` is told that nobody waits for its calls any more.
        """
        self.closed = True
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


class Given:
    """Workers of an executor that is not ours; they may be anywhere.

    Parameters
    ----------
    executor
        Any executor whose workers can import surrokit.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._cargo: Cargo | None = None
        self._lacking: set[str] = set()  # workers that asked for the target
        self.closed = False

    @property
    def _key(self) -> str:
        assert self._cargo is not None
        return self._cargo.key

    def take(self, source: RowSource) -> None:
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
        conditions, out = Conditions.now(), dict[Future[Reply], int]()
        replies: dict[int, Reply] = {}
        carried = bool(self._lacking)

        def send(i: int) -> None:
            cargo = self._cargo if self._lacking else None
            task = (self._key, cargo, what, rows[i], conditions)
            out[_submitted(self._executor, evaluate, *task)] = i

        try:
            for i in range(len(rows)):
                send(i)
            while out:
                for future in wait(out, return_when=FIRST_COMPLETED).done:
                    i, reply = out.pop(future), _result(future)
                    if reply.is_empty:
                        self._lacking.add(reply.worker)
                        send(i)
                    else:
                        self._lacking.discard(reply.worker)
                        replies[i] = reply
        finally:
            for future in out:
                future.cancel()
        if carried:  # a worker that was not heard of may have gone
            self._lacking.clear()
        return [replies[i] for i in range(len(rows))]

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
