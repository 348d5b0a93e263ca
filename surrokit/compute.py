"""How exact calls are made: where, how many at once, and what happens where one fails."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

import attrs

from surrokit.arguments import check_seconds, is_whole
from surrokit.errors import ConfigurationError
from surrokit.executors.pools import Given, Processes, Threads, WorkerPool, spread
from surrokit.model.calls import OnError
from surrokit.potentials import Potential

RETRIES = 2
"""How often a position that failed is evaluated again, where only ``on_error="retry"`` is given."""

ExecutorSpec: TypeAlias = Executor | Literal["processes", "threads"]
"""An executor, or a word for one that lasts as long as a run."""


@attrs.frozen(kw_only=True)
class Compute:
    """How exact calls are made; workers change no draw.

    Parameters
    ----------
    executor
        Where calls are made: ``"processes"`` or ``"threads"``, which last as long as the run, or
        any :class:`concurrent.futures.Executor`. Each batch of positions is spread over its
        workers, with the same draws to the bit. None means in this process.
    workers
        Number of processes or threads; None means one for each core. Alone it means processes.
    timeout
        Seconds after which a call in one of ``"processes"`` is given up, and counts as a failure.
    on_error
        What to do where the target fails: ``"reject"`` rejects the position and counts it,
        ``"raise"`` stops at the first exception, and ``"retry"`` evaluates the position again, and
        rejects it if it fails each time. Exceptions and NaN are failures; U = inf, a density of
        zero, is none.
    retries
        How often a position is evaluated again at most, with ``on_error="retry"``; None means 2.
        Each attempt counts as a call.

    Raises
    ------
    ConfigurationError
        If settings cannot work.
    """

    executor: ExecutorSpec | None = None
    workers: int | None = None
    timeout: float | None = None
    on_error: OnError = "reject"
    retries: int | None = None

    def __attrs_post_init__(self) -> None:
        _check_executor(self.executor, self.workers)
        check_seconds("timeout", self.timeout)
        if self.timeout is not None and self._where != "processes":
            raise ConfigurationError(
                "a call that hangs is ended with its worker process, which surrokit must have "
                f"started; pass compute=sk.Compute(workers=4, timeout={self.timeout:g}), or raise "
                "TimeoutError in the target itself"
            )
        if self.on_error not in ("reject", "raise", "retry"):
            raise ConfigurationError(
                f"on_error must be 'reject', 'raise' or 'retry', got {self.on_error!r}"
            )
        if self.retries is not None and self.on_error != "retry":
            raise ConfigurationError(
                f"retries is given, but on_error is {self.on_error!r}, so that nothing is tried "
                "again; pass on_error='retry', or leave retries out"
            )
        if self.retries is not None and not is_whole(self.retries, 1):
            raise ConfigurationError(
                f"retries must be a whole number of at least 1, got {self.retries!r}"
            )

    @property
    def most_retries(self) -> int:
        """How often a position that failed is evaluated again."""
        if self.on_error != "retry":
            return 0
        return RETRIES if self.retries is None else int(self.retries)

    @property
    def _where(self) -> ExecutorSpec | None:
        return "processes" if self.executor is None and self.workers else self.executor

    @property
    def at_once(self) -> int:
        """Calls that may go on at once, as far as is known."""
        if self._where is None:
            return 1
        if isinstance(self._where, str):
            return self.workers or cores()
        return int(getattr(self.executor, "_max_workers", None) or cores())

    @contextmanager
    def spread(self, target: Potential) -> Iterator[Potential]:
        """Yield a target whose positions are evaluated by workers within the block.

        Raises
        ------
        ConfigurationError
            If it cannot be given to workers.
        WorkerError
            If there are none.
        """
        if self._where is None:
            yield target
            return
        pool = self._pool()
        try:
            yield spread(target, pool)
        finally:
            pool.close()

    def _pool(self) -> WorkerPool:
        if self._where == "processes":
            return Processes(self.at_once, self.timeout)
        if self._where == "threads":
            return Threads(ThreadPoolExecutor(self.at_once), own=True)
        if isinstance(self.executor, ThreadPoolExecutor):
            return Threads(self.executor, own=False)
        return Given(self.executor)  # type: ignore[arg-type]


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _check_executor(executor: object, workers: object) -> None:
    if workers is not None and not is_whole(workers, 1):
        raise ConfigurationError(f"workers must be a whole number of at least 1, got {workers!r}")
    is_one = callable(getattr(executor, "submit", None)) and not isinstance(executor, type)
    is_word = isinstance(executor, str) and executor in ("processes", "threads")
    if not (executor is None or is_word or is_one):
        raise ConfigurationError(
            "executor must be 'processes', 'threads', or a concurrent.futures.Executor, such as "
            f"ProcessPoolExecutor(4), got {executor!r}"
        )
    if workers is not None and is_one:
        raise ConfigurationError(
            "workers is given together with an executor, which has workers already; leave "
            "workers out, or pass compute=sk.Compute(executor='threads', workers=4), say"
        )


def check_compute(compute: Any) -> Compute:
    """Return how calls are made; the defaults for None.

    Raises
    ------
    ConfigurationError
        If something else is given.
    """
    if compute is None:
        return Compute()
    if not isinstance(compute, Compute):
        raise ConfigurationError(
            f"compute must be a surrokit.Compute(...), got {compute!r}; pass "
            "compute=sk.Compute(workers=4), say"
        )
    return compute
