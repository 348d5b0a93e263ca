"""Rows of a target, evaluated by workers: threads, any executor, processes of our own."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from multiprocessing import connection
from typing import Any

import attrs
import numpy as np

from surrokit.errors import ConfigurationError, WorkerError
from surrokit.executors.worker import (
    Payload,
    Reply,
    evaluate,
    pack,
    try_at,
    work,
)
from surrokit.limits import current_meter
from surrokit.model.model import Model, change_model
from surrokit.model.outcome import Outcome, say_place
from surrokit.model.source import EachRow, Source, one_after_another, row_by_row
from surrokit.potentials import Potential
from surrokit.types import FloatArray

DEATHS = 3
"""Times that workers may die at one position."""

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

        with _of_executor():
            self._out = {self._executor.submit(reply, row.copy()): i for i, row in enumerate(rows)}
        return _replies(self._out)

    def close(self) -> None:
        """End the threads if they are our own, without waiting for those at work.

        A target with a method ``give_up`` is notified that nobody waits for its calls any more.
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

    def take(self, source: Source) -> None:
        """Pack a target, which workers get when they lack it."""
        self._payload = pack(source)

    def evaluate(self, what: str, rows: FloatArray) -> list[Reply]:
        """Give rows to workers, and once more with the target where one lacks it."""
        errors: dict[str, Any] = dict(np.geterr())

        def send(i: int, payload: Payload | None = None) -> Future[Reply]:
            task = (self._payload.key, payload, what, rows[i].copy(), errors)
            with _of_executor():
                return self._executor.submit(evaluate, *task)

        def again(i: int, reply: Reply) -> Future[Reply] | None:
            return send(i, self._payload) if reply.is_empty else None

        return _replies({send(i): i for i in range(len(rows))}, again)

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
                i = out.pop(future)
                with _of_executor():
                    replies[i] = future.result()
                if again and (sent := again(i, replies[i])) is not None:
                    out[sent] = i
            meter.left(len(out))
    finally:
        for future in out:
            future.cancel()
    return [replies[i] for i in range(len(replies))]


@contextmanager
def _of_executor() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise WorkerError(
            f"the executor that was given failed: {type(error).__name__}: {error}. Make a new one "
            "whose workers can import surrokit; a run with path=... can be resumed"
        ) from error


# --- processes of our own ---


class Worker:
    """A process of our own with a target, which is at work on one row, or on None."""

    def __init__(self, payload: Payload) -> None:
        from joblib.externals.loky.backend import get_context  # late: importing stays fast

        context = get_context("loky")  # which does not run the user's script again
        self.row: int | None = None
        self.since = 0.0
        self.connection, other = context.Pipe()
        self._process = context.Process(
            target=work, args=(other, payload, os.getpid()), env=_ONE_THREAD
        )
        self._process.start()
        other.close()

    def await_start(self) -> None:
        """Wait until it has the target; ConfigurationError is raised if it cannot load it."""
        try:
            failure = self.connection.recv()
        except (EOFError, OSError) as error:
            raise WorkerError(
                "worker processes die as soon as they have the target; try one position in "
                "this process, without compute=, or pass compute=sk.Compute(executor='threads')"
            ) from error
        if failure is not None:
            raise ConfigurationError(
                f"a worker cannot load the target: {failure}. Install what it imports where "
                "workers run, with its data files, or pass compute=sk.Compute(executor='threads')"
            )

    def begin(self, i: int, *task: Any) -> None:
        """Begin with row i."""
        self.row, self.since = i, time.monotonic()
        with suppress(OSError):  # it has died, as is found out where its reply is read
            self.connection.send(task)

    def reply(self) -> Reply | None:
        """Return its reply; None if it has died."""
        try:
            found: Reply = self.connection.recv()
        except (EOFError, OSError):
            return None
        self.row = None
        return found

    def end(self) -> None:
        """Let it go, by force if it is at work."""
        from joblib.externals.loky.backend.utils import kill_process_tree

        self.connection.close()
        if self.row is None:
            self._process.join(5.0)
        if self._process.is_alive():
            kill_process_tree(self._process)
        self._process.join()


class Processes(WorkerPool):
    """Worker processes of our own, which can be killed and started anew.

    Each has one call at a time, which is given up after ``timeout`` seconds.
    """

    def __init__(self, workers: int, timeout: float | None = None) -> None:
        self.workers, self.timeout = workers, timeout
        self._workers: list[Worker] = []

    def take(self, source: Source) -> None:
        """Start the workers with a target."""
        self._payload = pack(source)
        try:
            for _ in range(self.workers):
                self._workers.append(Worker(self._payload))
            for worker in self._workers:
                worker.await_start()
        except BaseException:
            self.close()
            raise

    def evaluate(self, what: str, rows: FloatArray) -> list[Reply]:
        """Give rows to workers; those whose worker dies are given to others.

        Raises
        ------
        WorkerError
            If workers die time and again.
        """
        waiting, replies, deaths = deque(range(len(rows))), dict[int, Reply](), Counter[int]()
        errors, meter = dict(np.geterr()), current_meter()
        while len(replies) < len(rows):
            for worker in self._workers:
                if waiting and worker.row is None:
                    i = waiting.popleft()
                    worker.begin(i, what, rows[i].copy(), errors)
            busy = [(worker, worker.row) for worker in self._workers if worker.row is not None]
            came = connection.wait([worker.connection for worker, _ in busy], self._left(busy))
            for worker, i in busy:
                if worker.connection in came:
                    reply = worker.reply()
                elif self.timeout is not None and worker.since <= time.monotonic() - self.timeout:
                    reply = Reply(error=_too_long(self.timeout))
                else:
                    continue
                if reply is None:
                    deaths[i] += 1
                    waiting.appendleft(i)
                    if deaths[i] == DEATHS:
                        raise _dead(rows[i])
                else:
                    replies[i] = reply
                if worker.row is not None:
                    self._replace(worker)
            meter.left(len(rows) - len(replies))
        return [replies[i] for i in range(len(rows))]

    def close(self) -> None:
        """End the workers, by force if they are at work."""
        self.closed = True
        former, self._workers = self._workers, []
        for worker in former:
            worker.end()

    def _left(self, busy: list[tuple[Worker, int]]) -> float | None:
        if self.timeout is None:
            return None
        return max(min(worker.since for worker, _ in busy) + self.timeout - time.monotonic(), 0.0)

    def _replace(self, worker: Worker) -> None:
        worker.end()
        new = Worker(self._payload)
        self._workers[self._workers.index(worker)] = new
        new.await_start()


def _too_long(timeout: float) -> TimeoutError:
    error = TimeoutError(f"the call took longer than timeout={timeout:g} seconds")
    say_place(error, None)
    return error


def _dead(row: FloatArray) -> WorkerError:
    where = ", ".join(f"{x:.6g}" for x in row[:10])
    return WorkerError(
        f"worker processes died {DEATHS} times at work on the position ({where}), in the user's "
        "coordinates. Try it in this process, without compute=; if memory ran out, pass fewer "
        "workers, as compute=sk.Compute(workers=2). A run with path=... can be resumed"
    )
