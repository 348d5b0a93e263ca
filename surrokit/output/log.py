"""What happens in a run, told to Python's logging: the logger is ``surrokit``, the level INFO."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surrokit.progress import IterationInfo, RoundInfo, RunInfo

LOGGER = logging.getLogger("surrokit")

_EVERY = 10.0  # seconds between two lines about iterations


def log_observers() -> list[RunLog]:
    """Return the observer that writes to the log; none where nobody reads it."""
    return [RunLog()] if LOGGER.isEnabledFor(logging.INFO) else []


class RunLog:
    """An observer that logs a run: its parts, its surrogates, how far it is, and its verdict."""

    def __init__(self) -> None:
        self._told = 0.0

    def surrokit_run_started(self, run: RunInfo) -> None:
        """Log sizes and parts."""
        parts = ", ".join(f"{kind} {name}" for kind, name in run.parts.items())
        LOGGER.info("run of %d chains in %d dimensions: %s", run.chains, run.dim, parts)
        if run.estimate is not None and run.estimate.seconds_a_call is not None:
            LOGGER.info("%s", run.estimate)

    def surrokit_surrogate_deployed(self, evaluations: int, reason: str, **_: object) -> None:
        """Log what the surrogate learnt from."""
        LOGGER.info("surrogate of %d evaluations deployed: %s", evaluations, reason)

    def surrokit_transition_done(self, info: IterationInfo, **_: object) -> None:
        """Log how far the run is, every ten seconds."""
        if info.seconds < self._told + _EVERY:
            return
        self._told = info.seconds
        calls = ", ".join(f"{n} {kind}" for kind, n in info.calls.items() if n)
        LOGGER.info("%s, iteration %d: %s calls", info.stage, info.iteration, calls)

    def surrokit_round_weighed(self, info: RoundInfo, **_: object) -> None:
        """Log how large errors are."""
        LOGGER.info("errors up to %.2g sd after %g exact calls", info.error, info.calls)

    def surrokit_run_finished(self, outcome: Any, **_: object) -> None:
        """Log why the run ended, and its verdict."""
        LOGGER.info("run ended (%s) after %d exact calls", outcome.stopped, outcome.total_calls)
        for finding in outcome.verdict:
            LOGGER.info("%s: %s", finding.name, finding.message)
