"""Pools of workers that evaluate rows of a target: threads, any executor, processes of our own."""

from __future__ import annotations

import multiprocessing
import os
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Mapping
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from typing import Any, TypeAlias

import attrs
import numpy as np

from surrokit.errors import ConfigurationError, WorkerError
from surrokit.executors.worker import (
    Conditions,
    Payload,
    Reply,
    begin_as_worker,
    cannot_load,
    evaluate,
    pack,
    ready,
    try_at,
    whoami,
)
from surrokit.limits import current_meter
from surrokit.model.outcome import say_place
from surrokit.model.source import Source
from surrokit.types import FloatArray

DEATHS = 3
"""Times in a row that workers may die before any position is done."""

_LAST_CALLS, _PAUSE = 5.0, 0.05  # seconds for which calls are given up, and between attempts
_GLANCE = 0.001  # seconds between looks at futures, which do not tell when they begin
_READY_PAUSE = 0.02  # seconds for which a worker that is ready leaves the next such task to others
_PATIENCE = 1.0  # seconds for which calls that are out may wait to be handed to workers
_ROUNDS = 200  # of such tasks, until every worker has been seen
_ONE_THREAD = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)

Key: TypeAlias = tuple[str, bytes]
"""Which result, and where, to the bit."""


def key_of(what: str, row: FloatArray) -> Key:
    """Return what tells a call from others."""
    return what, np.asarray(row, dtype=np.float64).tobytes()


class WorkerPool(ABC):
    """Workers, all of whom have one target.

    A row may be begun before anybody asks for it; its reply is then taken when it is asked for.

    Attributes
    ----------
    closed
        Whether the workers have gone.
    """

    def __init__(self) -> None:
        self.closed = False
        self._begun: dict[Key, Future[Reply]] = {}
        self._asked: Mapping[Future[Reply], int] = {}

    @abstractmethod
    def take(self, source: Source) -> None:
        """Give the target to the workers."""

    @abstractmethod
    def send(self, what: str, row: FloatArray) -> Future[Reply]:
        """Have a row evaluated."""

    @abstractmethod
    def close(self) -> None:
        """Let the workers go; calls in progress are given up."""

    def evaluate(self, what: str, rows: FloatArray) -> list[Reply]:
        """Return the reply for each row, in the order of the rows."""
        self._asked = out = {self._ask(what, row): i for i, row in enumerate(rows)}
        replies: dict[int, Reply] = {}
        meter = current_meter()
        try:
            while out:
                for future in self.completed(out):
                    i, reply = out.pop(future), _result(future)
                    if self.accepts(reply):
                        replies[i] = reply
                    else:
                        out[self.send(what, rows[i])] = i
                meter.left(len(out))
        finally:
            for future in out:
                future.cancel()
        return [replies[i] for i in range(len(rows))]

    def completed(self, out: Iterable[Future[Reply]]) -> Iterable[Future[Reply]]:
        """Wait until some of the calls that are out are done, and return these."""
        return wait(out, return_when=FIRST_COMPLETED).done

    def accepts(self, reply: Reply) -> bool:
        """Return whether a reply is one, or the row is to be sent again."""
        return not reply.is_empty

    def begin(self, what: str, row: FloatArray) -> None:
        """Evaluate a row that may be asked for later."""
        key = key_of(what, row)
        if key not in self._begun:
            self._begun[key] = self.send(what, row)

    def withdraw(self, key: Key) -> bool:
        """Take back a row that was begun, unless a worker has it; return whether it is no more."""
        if key in self._begun and self._begun[key].cancel():
            del self._begun[key]
        return key not in self._begun

    def has_reply(self, key: Key) -> bool:
        """Return whether a row that was begun is done."""
        return key in self._begun and self._begun[key].done()

    @property
    def unfinished(self) -> int:
        """Rows that were begun and are not done."""
        return sum(not future.done() for future in self._begun.values())

    def _ask(self, what: str, row: FloatArray) -> Future[Reply]:
        begun = self._begun.pop(key_of(what, row), None)
        return self.send(what, row) if begun is None else begun


class Threads(WorkerPool):
    """Workers that are threads of this process; they use the target itself.

    Threads of our own end with the run.
    """

    def __init__(self, executor: ThreadPoolExecutor, *, own: bool) -> None:
        super().__init__()
        self._executor, self._own = executor, own
        self._source: Source | None = None

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

    def close(self) -> None:
        """End the threads if they are our own, without waiting for those at work.

        A target with a method ``give_up`` is told that nobody waits for its calls any more.
        """
        self.closed = True
        out = [*self._asked, *self._begun.values()]
        for future in out:
            future.cancel()
        if self._own:
            self._executor.shutdown(wait=False, cancel_futures=True)
        give_up = getattr(self._source, "give_up", None)
        end = time.monotonic() + _LAST_CALLS
        while give_up is not None and time.monotonic() < end:
            left = [future for future in out if not future.done()]
            if not left:
                return
            give_up()
            wait(left, timeout=_PAUSE)  # some may only now begin


class Given(WorkerPool):
    """Workers of an executor that is not ours; they may be wherever surrokit can be imported."""

    def __init__(self, executor: Executor) -> None:
        super().__init__()
        self._executor = executor
        self._payload: Payload | None = None
        self._lacking: set[str] = set()  # workers that asked for the target

    def take(self, source: Source) -> None:
        """Send a target to one of them, to see that it can be done."""
        self._payload = payload = pack(source)
        _, failure = _result(_submitted(self._executor, ready, payload.key, payload, whoami()))
        if failure is not None:
            raise cannot_load(failure)

    def send(self, what: str, row: FloatArray) -> Future[Reply]:
        """Give a row to a worker, with the target if some lack it."""
        assert self._payload is not None
        payload = self._payload if self._lacking else None
        task = (self._payload.key, payload, what, row.copy(), Conditions.now())
        return _submitted(self._executor, evaluate, *task)

    def accepts(self, reply: Reply) -> bool:
        """Return whether the worker had the target; it is sent with the next rows otherwise."""
        (self._lacking.add if reply.is_empty else self._lacking.discard)(reply.worker)
        return not reply.is_empty

    def evaluate(self, what: str, rows: FloatArray) -> list[Reply]:
        """Return the reply for each row; workers that lack the target are sent it."""
        carried = bool(self._lacking)
        replies = super().evaluate(what, rows)
        if carried:  # a worker that was not heard of may have gone
            self._lacking.clear()
        return replies

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


@attrs.define(eq=False)
class _Task:
    """A row for a process of ours; its reply outlives workers that die, and calls that hang."""

    what: str
    row: FloatArray
    reply: Future[Reply] = attrs.field(factory=Future)
    since: float = 0.0  # when it went out, by the monotonic clock


class Processes(WorkerPool):
    """Worker processes of our own, which can be killed and started anew.

    As many calls are out at a time as there are workers, so that each begins at once, and its
    time can be told; after ``timeout`` seconds it is given up. Calls that were asked for go before
    those that were begun ahead.
    """

    def __init__(self, workers: int, timeout: float | None = None) -> None:
        super().__init__()
        self.workers, self.timeout = workers, timeout
        self._pool: Any = None
        self._payload: Payload | None = None
        self._waiting: deque[_Task] = deque()
        self._out: dict[Future[Reply], _Task] = {}
        self._hung = self._deaths = 0
        self._busy = False

    def take(self, source: Source) -> None:
        """Start the workers with a target."""
        if multiprocessing.current_process().daemon:
            raise ConfigurationError(
                "a worker process of multiprocessing may start no processes of its own, so that "
                "there can be no workers here; leave compute out, or pass "
                "compute=sk.Compute(executor='threads')"
            )
        self._payload = pack(source)
        self._start()

    def evaluate(self, what: str, rows: FloatArray) -> list[Reply]:
        """Return the reply for each row; those whose worker dies are given to others."""
        self._busy, self._deaths = True, 0
        replies = super().evaluate(what, rows)
        if self._hung:
            self._restart()
        self._busy = False
        return replies

    def send(self, what: str, row: FloatArray) -> Future[Reply]:
        """Have a row wait for a worker."""
        self._waiting.append(_Task(what, row.copy()))
        return self._waiting[-1].reply

    def begin(self, what: str, row: FloatArray) -> None:
        """Evaluate a row as soon as a worker has nothing else to do."""
        super().begin(what, row)
        self._look()
        self._hand_out()

    def has_reply(self, key: Key) -> bool:
        """Return whether a row that was begun is done."""
        self._look()
        return super().has_reply(key)

    @property
    def unfinished(self) -> int:
        """Rows that were begun and are not done."""
        self._look()
        return super().unfinished

    def completed(self, out: Iterable[Future[Reply]]) -> list[Future[Reply]]:
        """Hand calls out, and take replies, until some of these are done."""
        while not (done := [future for future in out if future.done()]):
            if self._hung == self.workers:
                self._restart()
            self._hand_out()
            came, lost = self._gather()
            self._give_up_late()
            if lost:
                self._deaths = 1 if came else self._deaths + 1
                if self._deaths == DEATHS:
                    raise _dead(len(lost), lost[0].row)
                self._restart()
        return done

    def close(self) -> None:
        """End the workers, by force if they are at work."""
        self.closed = True
        pool, self._pool = self._pool, None
        if pool is None:
            return
        if self._busy or self._out:
            self._kill(pool)
        else:
            pool.shutdown(wait=True)

    def _is_ahead(self, task: _Task) -> bool:
        return self._begun.get(key_of(task.what, task.row)) is task.reply

    def _look(self) -> None:
        """Take in what has come back by now; what is lost was not asked for."""
        _, lost = self._gather(0.0)
        if lost:
            self._restart()

    def _hand_out(self) -> None:
        """Give waiting calls to workers that have none."""
        assert self._payload is not None
        conditions = None
        while self._waiting and len(self._out) < self.workers - self._hung:
            asked = (i for i, task in enumerate(self._waiting) if not self._is_ahead(task))
            at = next(asked, 0)
            task = self._waiting[at]
            del self._waiting[at]
            if task.reply.cancelled():
                continue
            if not task.reply.running():  # as it is where a worker died with it
                task.reply.set_running_or_notify_cancel()
            conditions = conditions or Conditions.now()
            given = (self._payload.key, None, task.what, task.row, conditions)
            self._out[self._submit(evaluate, *given)] = task
            task.since = time.monotonic()

    def _gather(self, seconds: float | None = None) -> tuple[int, list[_Task]]:
        """Wait for a reply; return how many came, and the calls whose worker died.

        Those of them that were asked for wait again, and others are given up.
        """
        if seconds is None and self.timeout is not None and self._out:
            first = min(task.since for task in self._out.values())
            seconds = max(first + self.timeout - time.monotonic(), 0.0)
        came, lost = 0, list[_Task]()
        for future in wait(self._out, timeout=seconds, return_when=FIRST_COMPLETED).done:
            task = self._out.pop(future)
            try:
                task.reply.set_result(future.result())
                came += 1
            except BrokenExecutor:
                lost.append(task)
        if lost:  # the pool is broken, so those that are still out are lost too
            lost += self._drop()
            wanted = [task for task in lost if not self._is_ahead(task)]
            self._forget(lost)
            self._waiting.extendleft(reversed(wanted))
        return came, lost

    def _drop(self) -> list[_Task]:
        """Give up all that is out, and return what has not come back."""
        lost = list[_Task]()
        for future, task in self._out.items():
            if future.done() and not future.cancelled() and future.exception() is None:
                task.reply.set_result(future.result())
            else:
                lost.append(task)
        self._out = {}
        return lost

    def _forget(self, lost: Iterable[_Task]) -> None:
        for task in lost:
            if self._is_ahead(task):
                del self._begun[key_of(task.what, task.row)]

    def _give_up_late(self) -> None:
        """Give up calls that have been out for too long."""
        late = [] if self.timeout is None else list(self._out)
        for future in late:
            if self._out[future].since <= time.monotonic() - (self.timeout or 0.0):
                error = TimeoutError(f"the call took longer than timeout={self.timeout:g} seconds")
                say_place(error, None)
                self._out.pop(future).reply.set_result(Reply(error=error))
                self._hung += 1

    def _submit(self, function: Any, *arguments: Any) -> Future[Any]:
        try:
            future: Future[Any] = self._pool.submit(function, *arguments)
        except BrokenExecutor as error:  # a worker died while there was nothing to do
            future = Future()
            future.set_exception(error)
        return future

    def _kill(self, pool: Any) -> None:
        # a call that the pool has taken, but not handed out, would end its thread by an error
        await_start(self._out, _PATIENCE)
        pool.shutdown(wait=True, kill_workers=True)

    def _restart(self) -> None:
        self._kill(self._pool)
        self._forget(self._drop())
        self._hung = 0
        self._start()

    def _start(self) -> None:
        from joblib.externals.loky import ProcessPoolExecutor  # late: importing stays fast

        self._pool = ProcessPoolExecutor(
            max_workers=self.workers,
            initializer=begin_as_worker,
            initargs=(self._payload, os.getpid()),
            env=_ONE_THREAD,
        )
        try:
            self._await_workers()
        except BaseException:
            self._busy = True
            self.close()
            raise

    def _await_workers(self) -> None:
        """Wait until all workers have the target, since calls are timed and starting is no part."""
        assert self._payload is not None
        seen: set[str] = set()
        for _ in range(_ROUNDS):
            pause = _READY_PAUSE if self.workers > 1 else 0.0
            arguments = (self._payload.key, None, whoami(), pause)
            tasks = [self._submit(ready, *arguments) for _ in range(self.workers)]
            for task in tasks:
                try:
                    name, failure = task.result()
                except BrokenExecutor as error:
                    raise WorkerError(
                        "worker processes die as soon as they have the target; try one position in "
                        "this process, without compute=, or pass "
                        "compute=sk.Compute(executor='threads')"
                    ) from error
                if failure is not None:
                    raise cannot_load(failure)
                seen.add(name)
            if len(seen) >= self.workers:
                return


def await_start(out: Iterable[Future[Any]], seconds: float) -> None:
    """Wait until every call that is out is with a worker, or done, for so long at most."""
    end = time.monotonic() + seconds
    while any(not (future.running() or future.done()) for future in out):
        if time.monotonic() > end:
            return
        time.sleep(_GLANCE)


def _dead(n: int, row: FloatArray) -> WorkerError:
    where = ", ".join(f"{x:.6g}" for x in row[:10])
    return WorkerError(
        f"worker processes died {DEATHS} times in a row, the last time at work on {n} "
        f"position{'s' if n > 1 else ''}, one of them at ({where}), in the user's coordinates. Try "
        "that position in this process, without compute=; if memory ran out, pass fewer workers, "
        "as compute=sk.Compute(workers=2). A run with path=... can be resumed"
    )
