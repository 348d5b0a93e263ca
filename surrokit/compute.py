"""How exact calls are made: where, how many at once, and what happens where one fails."""

from __future__ import annotations

from typing import Any

import attrs

from surrokit.arguments import is_whole
from surrokit.errors import ConfigurationError
from surrokit.executors.terms import ExecutorSpec, Terms
from surrokit.model.calls import OnError

RETRIES = 2
"""How often a position that failed is evaluated again, where only ``on_error="retry"`` is given."""


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
        _ = self.terms
        if self.on_error not in ("reject", "raise", "retry"):
            raise ConfigurationError(
                f"on_error must be 'reject', 'raise' or 'retry', got {self.on_error!r}"
            )
        if self.retries is None:
            return
        if self.on_error != "retry":
            raise ConfigurationError(
                f"retries is given, but on_error is {self.on_error!r}, so that nothing is tried "
                "again; pass on_error='retry', or leave retries out"
            )
        if not is_whole(self.retries, 1):
            raise ConfigurationError(
                f"retries must be a whole number of at least 1, got {self.retries!r}"
            )

    @property
    def terms(self) -> Terms:
        """Who evaluates, how many of them, and for how long each time."""
        return Terms.check(self.executor, self.workers, self.timeout)

    @property
    def most_retries(self) -> int:
        """How often a position that failed is evaluated again."""
        if self.on_error != "retry":
            return 0
        return RETRIES if self.retries is None else int(self.retries)


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
