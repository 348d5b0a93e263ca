"""A pool of worker processes of our own, which can be killed and made anew."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from typing import Any

from surrokit.coordinates.rowwise import RowSource
from surrokit.errors import WorkerError
from surrokit.executors.cargo import pack, refuse
from surrokit.executors.reply import Reply
from surrokit.executors.worker import Cargo, Conditions, evaluate, ready, settle, whoami
from surrokit.failures.cause import say_place
from surrokit.types import FloatArray

DEATHS = 3
"""Times in a row that workers may die before any position is done."""

_ONE_THREAD = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)
_PAUSE = 0.02  # seconds for which a worker that is ready leaves the next such task to others
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
        self._busy = False

    @property
    def closed(self) -> bool:
        """Whether they have gone."""
        return self._pool is None

    def take(self, source: RowSource) -> None:
        """Start the workers with a target.

        Raises
        ------
        ConfigurationError
            If it cannot be pickled, or a worker cannot load it.
        WorkerError
            If workers die at once.
        """
        self._cargo = pack(source)
        self._start()

    def evaluate(self, what: str, rows: FloatArray) -> Sequence[Reply]:
        """Return the reply for each row; those whose worker dies are given to others.

        Raises
        ------
        WorkerError
            If workers die time and again.
        """
        conditions = Conditions.now()
        batch = _Batch(rows, self.timeout)
        self._busy, deaths, hung = True, 0, 0
        while batch.left:
            if hung == self.workers:
                self._renew()
                hung = 0
            while batch.waiting and len(batch.out) < self.workers - hung:
                i = batch.waiting.popleft()
                batch.send(i, self._submit(evaluate, self._key, None, what, rows[i], conditions))
            done, lost = batch.gather()
            hung += batch.give_up()
            if lost:
                deaths = 1 if done else deaths + 1
                if deaths == DEATHS:
                    raise _dead(len(lost), rows[lost[0]])
                self._renew()
                hung = 0
        if hung:
            self._renew()
        self._busy = False
        return batch.replies

    def close(self) -> None:
        """End the workers, by force if they are at work."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True, kill_workers=self._busy)

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

    def _renew(self) -> None:
        self._pool.shutdown(wait=True, kill_workers=True)
        self._start()

    def _start(self) -> None:
        from joblib.externals.loky import ProcessPoolExecutor  # late: importing stays fast

        self._pool = ProcessPoolExecutor(
            max_workers=self.workers, initializer=settle, initargs=(self._cargo,), env=_ONE_THREAD
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


class _Batch:
    """Rows of which some wait, some are out, and some have a reply."""

    def __init__(self, rows: FloatArray, timeout: float | None) -> None:
        self.waiting = deque(range(len(rows)))
        self.out: dict[Future[Reply], tuple[int, float]] = {}
        self._timeout = timeout
        self._replies: dict[int, Reply] = {}
        self._n = len(rows)

    @property
    def left(self) -> bool:
        """Whether some have no reply yet."""
        return len(self._replies) < self._n

    @property
    def replies(self) -> list[Reply]:
        """The replies in the order of the rows."""
        return [self._replies[i] for i in range(self._n)]

    def send(self, i: int, future: Future[Reply]) -> None:
        """Note that a row is out."""
        self.out[future] = i, time.monotonic()

    def gather(self) -> tuple[int, list[int]]:
        """Wait for replies; return how many came, and the rows whose worker died."""
        seconds = None
        if self._timeout is not None and self.out:
            first = min(since for _, since in self.out.values())
            seconds = max(first + self._timeout - time.monotonic(), 0.0)
        came, lost = 0, []
        for future in wait(self.out, timeout=seconds, return_when=FIRST_COMPLETED).done:
            i, _ = self.out.pop(future)
            try:
                self._replies[i] = future.result()
                came += 1
            except BrokenExecutor:
                lost.append(i)
        if lost:  # the pool is broken, so those that are still out are lost too
            for future, (i, _) in self.out.items():
                if _has_result(future):
                    self._replies[i] = future.result()
                else:
                    lost.append(i)
            self.out = {}
            self.waiting.extendleft(sorted(lost, reverse=True))
        return came, sorted(lost)

    def give_up(self) -> int:
        """Give up rows that have been out for too long, and return how many."""
        if self._timeout is None:
            return 0
        late = time.monotonic() - self._timeout
        hung = [future for future, (_, since) in self.out.items() if since <= late]
        for future in hung:
            i, _ = self.out.pop(future)
            error = TimeoutError(f"the call took longer than timeout={self._timeout:g} seconds")
            say_place(error, None)
            self._replies[i] = Reply(error=error)
        return len(hung)


def _has_result(future: Future[Reply]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


def _dead(n: int, row: FloatArray) -> WorkerError:
    where = ", ".join(f"{x:.6g}" for x in row[:10])
    return WorkerError(
        f"worker processes died {DEATHS} times in a row, the last time at work on {n} "
        f"position{'s' if n > 1 else ''}, one of them at ({where}), in the user's coordinates. Try "
        "that position in this process, without executor and workers; if memory ran out, pass "
        "fewer workers. A run with path=... can be resumed"
    )
