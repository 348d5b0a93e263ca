"""Who evaluates a target, how many of them, and for how long each time."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

import attrs

from surrokit.arguments import is_number, is_whole
from surrokit.errors import ConfigurationError
from surrokit.executors.pools import Given, Processes, Threads, WorkerPool
from surrokit.executors.spread import Ahead, Spread, spread
from surrokit.potentials import Potential

ExecutorSpec: TypeAlias = Executor | Literal["processes", "threads"]
"""An executor, or a word for one that lasts as long as a run."""

_WORDS = ("processes", "threads")


@attrs.frozen
class Terms:
    """What ``sample`` and ``resume`` were told of workers.

    Parameters
    ----------
    executor
        An executor, ``"processes"``, ``"threads"``, or None for the process itself.
    workers
        Number of processes or threads; None for one for each core.
    timeout
        Seconds after which a call in a worker process is given up; None for never.
    prefetch
        Most positions that are evaluated ahead; None for as many as there are workers, where their
        number is known.
    """

    executor: ExecutorSpec | None
    workers: int | None
    timeout: float | None
    prefetch: int | None = None

    @classmethod
    def check(
        cls, executor: object, workers: object, timeout: object, prefetch: object = None
    ) -> Terms:
        """Return terms; workers alone are processes.

        Raises
        ------
        ConfigurationError
            If they cannot work.
        """
        if workers is not None and not is_whole(workers, 1):
            raise ConfigurationError(
                f"workers must be a whole number of at least 1, got {workers!r}"
            )
        if executor is None and workers is not None:
            executor = "processes"
        is_word = isinstance(executor, str)
        if executor is not None and not (is_word or callable(getattr(executor, "submit", None))):
            raise ConfigurationError(_expected(executor))
        if isinstance(executor, type) or (is_word and executor not in _WORDS):
            raise ConfigurationError(_expected(executor))
        if workers is not None and not is_word:
            raise ConfigurationError(
                "workers is given together with an executor, which has workers already; leave "
                "workers out, or pass compute=sk.Compute(executor='threads', workers=4), say"
            )
        _check_timeout(timeout, executor)
        _check_prefetch(prefetch, executor)
        given: Any = (executor, workers, timeout, prefetch)
        return cls(*given)

    @property
    def settings(self) -> dict[str, Any]:
        """The terms as keywords."""
        return attrs.asdict(self, recurse=False)

    @contextmanager
    def spread(self, target: Potential) -> Iterator[tuple[Potential, Ahead | None]]:
        """Yield a target whose positions are evaluated by workers within the block.

        Beside it comes what evaluates positions ahead, if that is wanted.

        Raises
        ------
        ConfigurationError
            If it cannot be given to workers.
        WorkerError
            If there are none.
        """
        if self.executor is None:
            yield target, None
            return
        pool = self._pool()
        try:
            each_row = Spread(pool)
            parted, most = spread(target, each_row, pool), self._most_ahead
            asked = self.prefetch is not None
            yield parted, Ahead(parted, each_row, pool, most, asked=asked) if most else None
        finally:
            pool.close()

    @property
    def at_once(self) -> int:
        """Calls that may go on at once, as far as is known."""
        if self.executor is None:
            return 1
        if isinstance(self.executor, str):
            return self.workers or cores()
        return int(getattr(self.executor, "_max_workers", None) or cores())

    @property
    def _most_ahead(self) -> int:
        if self.prefetch is not None:
            return self.prefetch
        return self.workers or cores() if isinstance(self.executor, str) else 0

    def _pool(self) -> WorkerPool:
        if self.executor == "processes":
            return Processes(self.workers or cores(), self.timeout)
        if self.executor == "threads":
            return Threads(ThreadPoolExecutor(self.workers or cores()), own=True)
        if isinstance(self.executor, ThreadPoolExecutor):
            return Threads(self.executor, own=False)
        return Given(self.executor)  # type: ignore[arg-type]


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _expected(executor: object) -> str:
    return (
        "executor must be 'processes', 'threads', or a concurrent.futures.Executor, such as "
        f"ProcessPoolExecutor(4), got {executor!r}"
    )


def _check_prefetch(prefetch: object, executor: object) -> None:
    if prefetch is None:
        return
    if not is_whole(prefetch, 0):
        raise ConfigurationError(f"prefetch must be a whole number of at least 0, got {prefetch!r}")
    if prefetch and executor is None:
        raise ConfigurationError(
            "prefetch evaluates positions ahead by workers that have nothing else to do, and there "
            f"are none; pass compute=sk.Compute(workers=8, prefetch={prefetch}), say"
        )


def _check_timeout(timeout: object, executor: object) -> None:
    if timeout is None:
        return
    if not (is_number(timeout) and 0.0 < timeout < math.inf):  # type: ignore[operator]
        raise ConfigurationError(f"timeout must be a number of seconds above 0, got {timeout!r}")
    if executor != "processes":
        raise ConfigurationError(
            "timeout is kept by killing the worker process of a call that hangs, which can only be "
            "done to processes that surrokit has started; pass "
            f"compute=sk.Compute(executor='processes', timeout={timeout:g}), or raise TimeoutError "
            "in the target itself"
        )
