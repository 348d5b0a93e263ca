"""The progress bar: acceptance or errors, exact calls spent, time left."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from surrokit.output.notebook import WIDTH, Display, in_notebook

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, TaskID

    from surrokit.contracts.observation import IterationInfo, RoundInfo, RunInfo

ROOM_FOR_ACCEPTANCE, ROOM_FOR_SURROGATE = 90, 120
"""Characters in a line from which on it says how good draws are, and what the surrogate learnt."""

_FORGET = 0.98


@contextmanager
def progress_bar(*, enabled: bool) -> Iterator[list[ProgressBar | Display]]:
    """Show a bar while the block runs, in a notebook or if standard error is a terminal.

    Yields
    ------
    list of ProgressBar or Display
        The observers that drive the bar; empty where none is shown.
    """
    if enabled and in_notebook():
        with _below_cell() as observers:
            yield observers
    elif enabled and sys.stderr.isatty():
        with _in_terminal() as bar:
            yield [bar]
    else:
        yield []


@contextmanager
def _in_terminal() -> Iterator[ProgressBar]:
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(*columns_for(console.width), console=console) as progress:
        yield ProgressBar(progress)


@contextmanager
def _below_cell() -> Iterator[list[ProgressBar | Display]]:
    from rich.progress import Progress

    progress = Progress(*columns_for(WIDTH))
    display = Display(progress)
    try:
        yield [ProgressBar(progress), display]
    finally:
        display.draw()


def columns_for(width: int) -> list[ProgressColumn]:
    """Return the columns of a bar that has room for so many characters in a line."""
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

    asides = [(ROOM_FOR_ACCEPTANCE, "said"), (ROOM_FOR_SURROGATE, "learnt")]
    return [
        TextColumn("{task.fields[stage]:<11}"),
        BarColumn(bar_width=None if width >= ROOM_FOR_SURROGATE else 8),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        *(TextColumn(f"{{task.fields[{aside}]}}") for room, aside in asides if width >= room),
        TextColumn("{task.fields[calls]} exact calls"),
        TimeRemainingColumn(),
    ]


class ProgressBar:
    """An observer that moves a bar."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task: TaskID | None = None
        self._acceptance = float("nan")
        self._surrogates = 0
        self._weighs = False

    def surrokit_run_started(self, run: RunInfo) -> None:
        """Draw the bar."""
        self._task = self._progress.add_task(
            "", total=run.warmup + run.draws, stage="starting", said="", learnt="", calls=0
        )

    def surrokit_surrogate_deployed(self, evaluations: int, reason: str, **_: object) -> None:
        """Say how many surrogates there were, and whether the last was a repair."""
        assert self._task is not None
        self._surrogates += 1
        repaired = ", repaired" if reason.startswith("safety net") else ""
        learnt = f"surrogate {self._surrogates} of {evaluations} rows{repaired}"
        self._progress.update(self._task, learnt=learnt)

    def surrokit_transition_done(self, run: RunInfo, info: IterationInfo, **_: object) -> None:
        """Move the bar."""
        assert self._task is not None
        if info.step is not None:
            now = float(info.step.move_probability.mean())
            before = now if np.isnan(self._acceptance) else self._acceptance
            self._acceptance = _FORGET * before + (1 - _FORGET) * now
        calls = sum(n for kind, n in info.calls.items() if kind != "rows")
        if self._weighs:
            self._progress.update(self._task, completed=calls, calls=calls)
            return
        expected = run.warmup + run.draws
        self._progress.update(
            self._task,
            completed=info.iteration,
            total=max(expected, info.iteration),  # draws that begin again make a run longer
            stage=info.stage,
            said="" if np.isnan(self._acceptance) else f"acceptance {self._acceptance:.2f}",
            calls=calls,
        )

    def surrokit_round_weighed(self, info: RoundInfo, **_: object) -> None:
        """Say how large errors are, and count calls from here on."""
        assert self._task is not None
        self._weighs = info.draws > 0
        if not self._weighs:
            return
        aim = "" if info.aim is None else f", aim {info.aim:g}"
        self._progress.update(
            self._task,
            completed=info.calls,
            total=info.expected_calls,
            stage="weighing",
            said=f"error {info.error:.2g} sd{aim}",
        )
