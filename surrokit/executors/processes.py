"""A pool of worker processes of our own, which can be killed and made anew."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, Future
from typing import Any

from surrokit.errors import ConfigurationError, WorkerError
from surrokit.executors.cargo import pack, refuse
from surrokit.executors.outstanding import Key, Outstanding
from surrokit.executors.reply import Reply
from surrokit.executors.worker import Cargo, Conditions, evaluate, ready, settle, whoami
from surrokit.limits import current_meter
from surrokit.model.source import Source
from surrokit.types import FloatArray

DEATHS = 3
"""Times in a row that workers may die before any position is done."""

_ONE_THREAD = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)
_PAUSE = 0.02  # seconds for which a worker that is ready leaves the next such task to others
_PATIENCE = 1.0  # seconds for which calls that are out may wait to be handed to workers
_ROUNDS = 200  # of such tasks, until every worker has been seen


class Processes:
    """Worker processes.

    As many calls are out at a time as there are workers, so that each begins at once, and its
    time can be told.

    Parameters
    ----------
    workers
        How many.
    timeout
        Seconds after which a call is given up; None for never.
    """

    def __init__(self, workers: int, timeout: float | None = None) -> None:
        self.workers, self.timeout = workers, timeout
        self._pool: Any = None
        self._cargo: Cargo | None = None
        self._calls = Outstanding(timeout)
        self._busy = False

    @property
    def closed(self) -> bool:
        """Whether they have gone."""
        return self._pool is None

    def take(self, source: Source) -> None:
        """Start the workers with a target.

        Raises
        ------
        ConfigurationError
            If it cannot be pickled, or a worker cannot load it, or this process may start none.
        WorkerError
            If workers die at once.
        """
        if multiprocessing.current_process().daemon:
            raise ConfigurationError(
                "a worker process of multiprocessing may start no processes of its own, so that "
                "there can be no workers here; leave executor and workers out, or pass "
                "executor='threads'"
            )
        self._cargo = pack(source)
        self._start()

    def evaluate(self, what: str, rows: FloatArray) -> Sequence[Reply]:
        """Return the reply for each row; those whose worker dies are given to others.

        Raises
        ------
        WorkerError
            If workers die time and again.
        """
        errands = [self._calls.ask(what, row) for row in rows]
        self._busy, deaths, hung, meter = True, 0, 0, current_meter()
        while any(errand.reply is None for errand in errands):
            if hung == self.workers:
                self._renew()
                hung = 0
            self._send(self.workers - hung)
            done, lost = self._calls.gather()
            meter.left(sum(errand.reply is None for errand in errands))
            hung += self._calls.give_up()
            if lost:
                deaths = 1 if done else deaths + 1
                if deaths == DEATHS:
                    raise _dead(len(lost), lost[0].row)
                self._renew()
                hung = 0
        if hung:
            self._renew()
        self._busy = False
        return [errand.reply for errand in errands if errand.reply is not None]

    def begin(self, what: str, row: FloatArray) -> None:
        """Evaluate a row as soon as a worker has nothing else to do."""
        self._calls.begin(what, row)
        self._gather()
        self._send(self.workers)

    def withdraw(self, key: Key) -> bool:
        """Take back a row that was begun, unless a worker has it; return whether it is no more."""
        return self._calls.withdraw(key)

    def has_reply(self, key: Key) -> bool:
        """Return whether a row that was begun is done."""
        self._gather()
        return self._calls.has_reply(key)

    @property
    def unfinished(self) -> int:
        """Rows that were begun and are not done."""
        self._gather()
        return self._calls.unfinished

    def close(self) -> None:
        """End the workers, by force if they are at work."""
        pool, self._pool = self._pool, None
        if pool is None:
            return
        if self._busy or self._calls.out:
            self._kill(pool)
        else:
            pool.shutdown(wait=True)

    def _send(self, most: int) -> None:
        conditions = None
        while self._calls.waiting and len(self._calls.out) < most:
            conditions = conditions or Conditions.now()
            errand = self._calls.waiting.popleft()
            task = (self._key, None, errand.what, errand.row, conditions)
            self._calls.send(errand, self._submit(evaluate, *task))

    def _gather(self) -> None:
        """Take in what has come back by now; what is lost was not asked for."""
        _, lost = self._calls.gather(0.0)
        if lost:
            self._renew()

    @property
    def _key(self) -> str:
        assert self._cargo is not None
        return self._cargo.key

    def _submit(self, function: Any, *arguments: Any) -> Future[Any]:
        try:
            future: Future[Any] = self._pool.submit(function, *arguments)
        except BrokenExecutor as error:  # a worker died while there was nothing to do
            future = Future()
            future.set_exception(error)
        return future

    def _kill(self, pool: Any) -> None:
        # a call that the pool has taken, but not handed out, would end its thread by an error
        self._calls.await_start(_PATIENCE)
        pool.shutdown(wait=True, kill_workers=True)

    def _renew(self) -> None:
        self._kill(self._pool)
        self._calls.drop()
        self._start()

    def _start(self) -> None:
        from joblib.externals.loky import ProcessPoolExecutor  # late: importing stays fast

        self._pool = ProcessPoolExecutor(
            max_workers=self.workers,
            initializer=settle,
            initargs=(self._cargo, os.getpid()),
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
        for _ in range(_ROUNDS):
            pause = _PAUSE if self.workers > 1 else 0.0
            arguments = (self._key, None, whoami(), pause)
            tasks = [self._submit(ready, *arguments) for _ in range(self.workers)]
            for task in tasks:
                try:
                    name, failure = task.result()
                except BrokenExecutor as error:
                    raise WorkerError(
                        "worker processes die as soon as they have the target; try one position in "
                        "this process, without executor and workers, or pass executor='threads'"
                    ) from error
                if failure is not None:
                    raise refuse(failure)
                seen.add(name)
            if len(seen) >= self.workers:
                return


def _dead(n: int, row: FloatArray) -> WorkerError:
    where = ", ".join(f"{x:.6g}" for x in row[:10])
    return WorkerError(
        f"worker processes died {DEATHS} times in a row, the last time at work on {n} "
        f"position{'s' if n > 1 else ''}, one of them at ({where}), in the user's coordinates. Try "
        "that position in this process, without executor and workers; if memory ran out, pass "
        "fewer workers. A run with path=... can be resumed"
    )
