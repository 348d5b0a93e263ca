"""Processor time, which other programs on the machine do not stretch."""

from __future__ import annotations

import time

from surrokit.contracts.observation import IterationInfo


class SamplingTime:
    """An observer that knows how long the kept draws of a run took the processor."""

    def __init__(self) -> None:
        self._began = time.process_time()
        self._ended = self._began
        self._draws = False

    @property
    def seconds(self) -> float:
        """Processor seconds, of all threads together, from the first kept iteration to the last."""
        return self._ended - self._began

    @property
    def ended(self) -> float:
        """The processor's clock after the last iteration."""
        return self._ended

    def surrokit_run_started(self, **_: object) -> None:
        """Begin, for a run without warm-up."""
        self._began = time.process_time()

    def surrokit_transition_done(self, info: IterationInfo, **_: object) -> None:
        """Begin anew after every iteration that is not kept."""
        self._ended = time.process_time()
        self._draws = info.stage == "sampling"
        if not self._draws:
            self._began = self._ended

    def surrokit_surrogate_deployed(self, **_: object) -> None:
        """Begin anew after a fit that comes between warm-up and kept iterations."""
        if not self._draws:
            self._began = self._ended = time.process_time()
