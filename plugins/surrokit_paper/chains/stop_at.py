"""Ending a run when enough was spent."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TypeVar

from surrokit.contracts.observation import IterationInfo
from surrokit.types import IntArray

Counts = TypeVar("Counts", int, IntArray)
"""One count, or those after each iteration."""

FOREVER = 10**9
"""Iterations of a run that something else ends."""


class StopAt:
    """An observer that interrupts a run once it has taken so long, or paid so much.

    The run then returns what was drawn, as after Ctrl-C; ``reached`` tells the two apart.

    Parameters
    ----------
    seconds
        Of the processor, all threads together, which other programs on the machine do not
        stretch; None for no limit.
    evaluations
        Positions at which the target was evaluated; None for no limit.
    """

    def __init__(self, *, seconds: float | None = None, evaluations: int | None = None) -> None:
        self._seconds = seconds
        self._evaluations = evaluations
        self._began = time.process_time()
        self.reached = False
        self.elapsed: list[float] = []
        """Processor seconds since the run began, after each iteration."""

    def surrokit_run_started(self, **_: object) -> None:
        """Begin."""
        self._began = time.process_time()

    def surrokit_transition_done(self, info: IterationInfo, **_: object) -> None:
        """Note the time, and interrupt if enough was spent."""
        self.elapsed.append(time.process_time() - self._began)
        late = self._seconds is not None and self.elapsed[-1] >= self._seconds
        dear = self._evaluations is not None and evaluations(info.calls) >= self._evaluations
        if late or dear:
            self.reached = True
            raise KeyboardInterrupt


def evaluations(calls: Mapping[str, Counts]) -> Counts:
    """Return at how many positions U or its forward map was evaluated, with derivatives or not.

    Parameters
    ----------
    calls
        Counts by kind, as a run has them.
    """
    return calls["value"] + calls["gradient"] + calls["forward"] + calls["jacobian"] + calls["vjp"]
