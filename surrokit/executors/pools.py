"""Rows of a target, evaluated by workers: threads, any executor, processes of our own."""

from __future__ import annotations

import multiprocessing
import os
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
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
from surrokit.model.model import Model, change_model
from surrokit.model.outcome import Outcome, say_place
from surrokit.model.source import EachRow, Source, one_after_another, row_by_row
from surrokit.potentials import Potential
from surrokit.types import FloatArray

DEATHS = 3
"""Times in a row that workers may die before any position is done."""

_ONE_THREAD = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)


class WorkerPool(ABC):
    """Workers, all of whom have one target; ``closed`` once they have gone."""

    closed = False

    @abstractmethod
    def take(self, source: Source) -> None:
        """Give the target to the workers."""

    @abstractmethod
    def evaluate(self, what: str, rows: FloatArray) -> list[Reply]:
        """Return the reply for each row, in the order of the rows."""

    @abstractmethod
    def close(self) -> None:
        """Let the workers go; calls in progress are given up."""


class Spread:
    """Evaluates rows of a target by a pool, and in this process once its workers have gone.

    A copy, or what is made of it by pickle, goes without workers.
    """

    def __init__(self, pool: WorkerPool) -> None:
        self._pool = pool

    def __call__(self, source: Source, what: str, rows: FloatArray) -> Outcome:
        """Evaluate a source at rows, as :func:`surrokit.model.source.one_after_another` does."""
        if self._pool.closed:
            return one_after_another(source, what, rows)
        replies = iter(self._pool.evaluate(what, rows))
        return row_by_row(lambda _: next(replies).unpack(), rows)

    def __reduce__(self) -> tuple[Callable[[], EachRow], tuple[()]]:
        return _alone, ()


def _alone() -> EachRow:
    return one_after_another


def spread(target: Potential, pool: WorkerPool) -> Potential:
    """Return a target whose rows a pool evaluates.

    All that surrounds the model stays in this process: only the user's functions go to the workers,
    one position at a time.

    Raises
    ------
    ConfigurationError
        If the model takes rows together, or workers cannot have it.
    """

    def among_workers(model: Model) -> Model:
        if model.each_row is None:
            raise ConfigurationError(
                f"the target ({type(target).__name__}) evaluates rows of positions together, and "
                "may give other last digits if they are parted among workers; pass "
                "surrokit.one_by_one(target) to have positions evaluated one by one, or leave "
                "compute out"
            )
        pool.take(model.source)
        return attrs.evolve(model, each_row=Spread(pool))

    return change_model(target, among_workers)


# --- executors that keep the calls that wait ---


class Threads(WorkerPool):
    """Workers that are threads of this process; they use the target itself.

    Threads of our own end with the run.
    """

    def __init__(self, executor: ThreadPoolExecutor, *, own: bool) -> None:
        self._executor, self._own = executor, own
        self._source: Any = None
        self._out: dict[Future[Reply], int] = {}

    def take(self, source: Source) -> None:
        """Keep a target."""
        self._source = source

    def evaluate(self, what: str, rows: FloatArray) -> list[Reply]:
        """Give rows to threads."""
        errors: dict[str, Any] = dict(np.geterr())  # a thread has its own

        def reply(row: FloatArray) -> Reply:
            with np.errstate(**errors):
                return try_at(self._source, what, row)

        self._out = {_submitted(self._executor, reply, row.copy()): i for i, row in enumerate(rows)}
        return _replies(self._out)

    def close(self) -> None:
        """End the threads if they are our own, without waiting for those at work.

        A target with a method ``give_up`` is told that nobody waits for its calls any more.
        """
        self.closed = True
        if self._own:
            self._executor.shutdown(wait=False, cancel_futures=True)
        give_up = getattr(self._source, "give_up", None)
        end = time.monotonic() + 5.0
        while give_up is not None and time.monotonic() < end:
            left = [future for future in self._out if not future.done()]
            if not left:
                return
            give_up()
            wait(left, timeout=0.05)  # some may only now begin


class Given(WorkerPool):
    """Workers of an executor that is not ours; they may be wherever surrokit can be imported."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._lacking: set[str] = set()  # workers that asked for the target

    def take(self, source: Source) -> None:
        """Send a target to one of them, to see that it can be done."""
        self._payload = payload = pack(source)
        _, failure = _result(_submitted(self._executor, ready, payload.key, payload, whoami()))
        if failure is not None:
            raise cannot_load(failure)

    def evaluate(self, what: str, rows: FloatArray) -> list[Reply]:
        """Give rows to workers, with the target while some lack it."""

        def send(i: int) -> Future[Reply]:
            payload = self._payload if self._lacking else None
            task = (self._payload.key, payload, what, rows[i].copy(), Conditions.now())
            return _submitted(self._executor, evaluate, *task)

        def again(i: int, reply: Reply) -> Future[Reply] | None:
            (self._lacking.add if reply.is_empty else self._lacking.discard)(reply.worker)
            return send(i) if reply.is_empty else None

        carried = bool(self._lacking)
        replies = _replies({send(i): i for i in range(len(rows))}, again)
        if carried:  # a worker that was not heard of may have gone
            self._lacking.clear()
        return replies

    def close(self) -> None:
        """Leave the executor to whom it belongs."""
        self.closed = True


def _replies(
    out: dict[Future[Reply], int],
    again: Callable[[int, Reply], Future[Reply] | None] | None = None,
) -> list[Reply]:
    """Return replies to calls that are out, in order; ``again`` sends what has none again."""
    replies: dict[int, Reply] = {}
    meter = current_meter()
    try:
        while out:
            for future in wait(out, return_when=FIRST_COMPLETED).done:
                i, reply = out.pop(future), _result(future)
                sent = again(i, reply) if again else None
                if sent is None:
                    replies[i] = reply
                else:
                    out[sent] = i
            meter.left(len(out))
    finally:
        for future in out:
            future.cancel()
    return [replies[i] for i in range(len(replies))]


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


# --- processes of our own ---

_Lost: TypeAlias = list[tuple[int, FloatArray]]


class Processes(WorkerPool):
    """Worker processes of our own, which can be killed and started anew.

    As many calls are out at a time as there are workers, so that each begins at once, and its
    time can be told; after ``timeout`` seconds it is given up.
    """

    def __init__(self, workers: int, timeout: float | None = None) -> None:
        self.workers, self.timeout = workers, timeout
        self._pool: Any = None
        self._out: dict[Future[Reply], tuple[int, FloatArray, float]] = {}  # row, and since when
        self._hung = 0
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
        """Give rows to workers; those whose worker dies are given to others.

        Raises
        ------
        WorkerError
            If workers die time and again.
        """
        self._busy, deaths = True, 0
        waiting, replies = deque(enumerate(rows)), dict[int, Reply]()
        meter = current_meter()
        while len(replies) < len(rows):
            if self._hung == self.workers:
                self._restart()
            conditions = Conditions.now() if waiting else None
            while waiting and len(self._out) < self.workers - self._hung:
                i, row = waiting.popleft()
                task = (evaluate, self._payload.key, None, what, row.copy(), conditions)
                self._out[self._submit(*task)] = i, row, time.monotonic()
            came, lost = self._gather(replies)
            if lost:
                deaths = 1 if came else deaths + 1
                if deaths == DEATHS:
                    raise _dead(len(lost), lost[0][1])
                waiting.extendleft(reversed(lost))
                self._restart()
            meter.left(len(rows) - len(replies))
        if self._hung:
            self._restart()
        self._busy = False
        return [replies[i] for i in range(len(rows))]

    def close(self) -> None:
        """End the workers, by force if they are at work."""
        self.closed = True
        pool, self._pool = self._pool, None
        if pool is not None and self._busy:
            self._kill(pool)
        elif pool is not None:
            pool.shutdown(wait=True)

    def _gather(self, replies: dict[int, Reply]) -> tuple[int, _Lost]:
        """Wait for a reply; return how many came, and the rows whose worker died.

        Calls that have been out for too long are given up.
        """
        seconds = None
        if self.timeout is not None:
            first = min(since for *_, since in self._out.values())
            seconds = max(first + self.timeout - time.monotonic(), 0.0)
        came, lost = 0, _Lost()
        for future in wait(self._out, timeout=seconds, return_when=FIRST_COMPLETED).done:
            i, row, _ = self._out.pop(future)
            try:
                replies[i] = future.result()
                came += 1
            except BrokenExecutor:
                lost.append((i, row))
        if lost:  # the pool is broken, so those that are still out are lost too
            lost += [(i, row) for i, row, _ in self._out.values()]
            self._out.clear()
        for future, (i, _, since) in tuple(self._out.items()):
            if self.timeout is not None and since <= time.monotonic() - self.timeout:
                error = TimeoutError(f"the call took longer than timeout={self.timeout:g} seconds")
                say_place(error, None)
                replies[i] = Reply(error=error)
                del self._out[future]
                self._hung += 1
        return came, lost

    def _submit(self, function: Any, *arguments: Any) -> Future[Any]:
        try:
            future: Future[Any] = self._pool.submit(function, *arguments)
        except BrokenExecutor as error:  # a worker died while there was nothing to do
            future = Future()
            future.set_exception(error)
        return future

    def _kill(self, pool: Any) -> None:
        # a call that the pool has taken, but not handed out, would end its thread by an error
        end = time.monotonic() + 1.0
        while time.monotonic() < end and not all(f.running() or f.done() for f in self._out):
            time.sleep(0.001)  # futures do not tell when they begin
        pool.shutdown(wait=True, kill_workers=True)

    def _restart(self) -> None:
        self._kill(self._pool)
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
        seen: set[str] = set()
        pause = 0.02 if self.workers > 1 else 0.0  # which leaves the next such task to others
        for _ in range(200):
            arguments = (self._payload.key, None, whoami(), pause)
            for task in [self._submit(ready, *arguments) for _ in range(self.workers)]:
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


def _dead(n: int, row: FloatArray) -> WorkerError:
    where = ", ".join(f"{x:.6g}" for x in row[:10])
    return WorkerError(
        f"worker processes died {DEATHS} times in a row, the last time at work on {n} "
        f"position{'s' if n > 1 else ''}, one of them at ({where}), in the user's coordinates. Try "
        "that position in this process, without compute=; if memory ran out, pass fewer workers, "
        "as compute=sk.Compute(workers=2). A run with path=... can be resumed"
    )
