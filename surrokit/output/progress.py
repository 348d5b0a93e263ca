"""The progress of a run: a bar in a terminal or a notebook, and lines where there is neither.

All of them say what the meter of the run counts, from its first call on.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from surrokit.limits import Meter
from surrokit.output import notebook
from surrokit.output.notebook import WIDTH, Display, in_notebook

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress, ProgressColumn, TaskID

    from surrokit.progress import IterationInfo, RoundInfo, RunInfo

ROOM_FOR_ACCEPTANCE, ROOM_FOR_SURROGATE = 90, 120
"""Characters in a line from which on it says how good draws are, and what the surrogate learnt."""

EVERY_LINE = 60.0
"""Seconds between two lines, at least, where there is no terminal."""

_FORGET = 0.98


@contextmanager
def progress_bar(meter: Meter, *, enabled: bool) -> Iterator[list[object]]:
    """Show how far a run is while the block lasts.

    In a notebook, or if standard error is a terminal, that is a bar; elsewhere it is a line on
    standard error once a minute, and none in the first.

    Parameters
    ----------
    meter
        Of the run.
    enabled
        Whether to show anything.

    Yields
    ------
    list
        The observers that drive it; empty where nothing is shown.
    """
    if not enabled:
        yield []
    elif in_notebook():
        with _below_cell(meter) as observers:
            yield observers
    elif sys.stderr is not None and sys.stderr.isatty():
        with _in_terminal(meter) as bar:
            yield [bar]
    else:
        meter.every(EVERY_LINE, lambda: _write(_said(meter)))
        yield [PriceLine()]


class PriceLine:
    """An observer that writes what a run will cost, where it is long."""

    def surrokit_run_started(self, run: RunInfo) -> None:
        """Write the sentence."""
        if run.estimate is not None and run.estimate.matters:
            _write(str(run.estimate))


def _said(meter: Meter) -> str:
    return meter.stage if meter.read is None else str(meter.read())


def _write(line: str) -> None:
    with suppress(OSError, ValueError):  # nobody reads standard error any more
        print(line, file=sys.stderr, flush=True)


@contextmanager
def _in_terminal(meter: Meter) -> Iterator[ProgressBar]:
    from rich.console import Console

    console = Console(stderr=True)
    with _bars(meter, console.width, console=console) as progress:
        yield ProgressBar(progress)


@contextmanager
def _below_cell(meter: Meter) -> Iterator[list[object]]:
    progress = _bars(meter, WIDTH)
    display = Display(progress)
    display.draw()
    meter.every(notebook.EVERY_CALL, display.draw)
    try:
        yield [ProgressBar(progress), display]
    finally:
        display.draw()


def _bars(meter: Meter, width: int, **settings: Any) -> Progress:
    """Return bars with what the meter counts in a line below, read anew at each drawing."""
    from rich.progress import Progress
    from rich.text import Text

    class Bars(Progress):
        def get_renderables(self) -> Iterator[RenderableType]:
            for task in self.tasks:
                if task.fields["price"]:
                    yield Text(task.fields["price"])
                yield self.make_tasks_table([task])
            yield Text(_said(meter))

    return Bars(*columns_for(width), **settings)


def columns_for(width: int) -> list[ProgressColumn]:
    """Return the columns of a bar that has room for so many characters in a line."""
    from rich.progress import BarColumn, TextColumn

    asides = [(ROOM_FOR_ACCEPTANCE, "said"), (ROOM_FOR_SURROGATE, "learnt")]
    return [
        BarColumn(bar_width=None if width >= ROOM_FOR_SURROGATE else 8),
        TextColumn("{task.completed:.0f}/{task.total:.0f} {task.fields[unit]}"),
        *(TextColumn(f"{{task.fields[{aside}]}}") for room, aside in asides if width >= room),
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
        price = run.estimate if run.estimate is not None and run.estimate.matters else ""
        self._task = self._progress.add_task(
            "",
            total=run.warmup + run.draws,
            unit="iterations",
            price=str(price),
            said="",
            learnt="",
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
        if self._weighs:
            calls = sum(n for kind, n in info.calls.items() if kind != "rows")
            self._progress.update(self._task, completed=calls)
            return
        expected = run.warmup + run.draws
        self._progress.update(
            self._task,
            completed=info.iteration,
            total=max(expected, info.iteration),  # draws that begin again make a run longer
            said="" if np.isnan(self._acceptance) else f"acceptance {self._acceptance:.2f}",
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
            unit="calls",
            said=f"error {info.error:.2g} sd{aim}",
        )
