"""Processor time, which other programs on the machine do not stretch."""

from __future__ import annotations

import time

from surrokit.records import ChainState, IterationInfo, RunInfo


class SamplingTime:
    """An observer that knows how long the kept draws of a run took the processor."""

    def __init__(self) -> None:
        self._began = time.process_time()
        self._ended = self._began

    @property
    def seconds(self) -> float:
        """Processor seconds, of all threads together, from the first kept iteration to the last."""
        return self._ended - self._began

    def surrokit_run_started(self, run: RunInfo) -> None:  # noqa: ARG002
        """Begin, for a run without warm-up."""
        self._began = time.process_time()

    def surrokit_transition_done(
        self,
        run: RunInfo,  # noqa: ARG002
        state: ChainState,  # noqa: ARG002
        info: IterationInfo,
    ) -> None:
        """Begin anew after every iteration that is not kept."""
        self._ended = time.process_time()
        if info.stage != "sampling":
            self._began = self._ended
