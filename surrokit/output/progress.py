"""The progress of a run: a bar in a terminal or a notebook, lines elsewhere, and Python's log.

All of them show what the meter of the run counts, from its first call on. The logger is
``surrokit``, the level INFO.
"""

from __future__ import annotations

import io
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from surrokit.limits import Meter

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress, ProgressColumn, TaskID

    from surrokit.progress import IterationInfo, RoundInfo, RunInfo

LOGGER = logging.getLogger("surrokit")

ROOM_FOR_ACCEPTANCE, ROOM_FOR_SURROGATE = 90, 120
"""Characters in a line from which on it has the acceptance, and what the surrogate learnt from."""

EVERY_LINE = 60.0  #: Seconds between two lines, at least, where there is no terminal.
WIDTH = 120  #: Characters in a line of a notebook; a narrower one wraps it.

EVERY_DRAWING, EVERY_CALL = 0.25, 1.0
"""Seconds between two drawings in a notebook, at least, that iterations and calls cause."""


@contextmanager
def progress_bar(meter: Meter, *, enabled: bool) -> Iterator[list[object]]:
    """Show how far the run of a meter is while the block lasts, and yield the observers for that.

    In a notebook, or if standard error is a terminal, that is a bar; elsewhere it is a line on
    standard error once a minute, and none in the first.
    """
    if not enabled:
        yield []
    elif _in_notebook():
        bar = ProgressBar(bars := _bars(meter, WIDTH), _output_of(bars))
        bar.draw()
        meter.every(EVERY_CALL, bar.draw)
        try:
            yield [bar]
        finally:
            bar.draw()
    elif sys.stderr is not None and sys.stderr.isatty():
        from rich.console import Console

        console = Console(stderr=True)
        with _bars(meter, console.width, console=console) as bars:
            yield [ProgressBar(bars)]
    else:
        meter.every(EVERY_LINE, lambda: _write(_state(meter)))
        yield [SimpleNamespace(surrokit_run_started=lambda run: _write(_price(run)))]


def _in_notebook() -> bool:
    if "IPython" not in sys.modules:
        return False
    from rich.console import Console

    return Console().is_jupyter


def _state(meter: Meter) -> str:
    return meter.stage if meter.read is None else str(meter.read())


def _write(line: str) -> None:
    with suppress(OSError, ValueError):  # nobody reads standard error any more
        if line:
            print(line, file=sys.stderr, flush=True)


def _price(run: RunInfo) -> str:
    """Return what a run will cost, where it is long."""
    return str(run.estimate) if run.estimate is not None and run.estimate.matters else ""


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
            yield Text(_state(meter))

    return Bars(*columns_for(width), **settings)


def columns_for(width: int) -> list[ProgressColumn]:
    """Return the columns of a bar that has room for so many characters in a line."""
    from rich.progress import BarColumn, TextColumn

    more = [(ROOM_FOR_ACCEPTANCE, "said"), (ROOM_FOR_SURROGATE, "learnt")]
    return [
        BarColumn(bar_width=None if width >= ROOM_FOR_SURROGATE else 8),
        TextColumn("{task.completed:.0f}/{task.total:.0f} {task.fields[unit]}"),
        *(TextColumn(f"{{task.fields[{field}]}}") for room, field in more if width >= room),
    ]


def _output_of(progress: Progress) -> Callable[[], None]:
    """Return what draws bars below a cell of a notebook, again and again in the same place.

    Rich itself draws in notebooks by widgets, which need ipywidgets and are not in a notebook that
    is saved. The bars are not started, so that they write nothing by themselves.
    """
    from IPython.display import display
    from rich.console import Console

    font = "font-family:Menlo,'DejaVu Sans Mono',Consolas,'Courier New',monospace"
    line = f'<pre style="margin:0;white-space:pre-wrap;{font}">{{code}}</pre>'
    handle: Any = None

    def draw() -> None:
        nonlocal handle
        # a terminal in memory: the rest of a bar is drawn in colours alone
        console = Console(
            file=io.StringIO(),
            width=WIDTH,
            record=True,
            force_terminal=True,
            force_jupyter=False,
            color_system="truecolor",
            legacy_windows=False,
        )
        console.print(progress)
        page = console.export_html(clear=False, code_format=line, inline_styles=True)
        shown = {"text/html": page, "text/plain": console.export_text().rstrip()}
        if handle is None:
            handle = display(shown, raw=True, display_id=True)
        else:
            handle.update(shown, raw=True)

    return draw


class ProgressBar:
    """An observer that moves a bar, and draws it where Rich does not do so by itself."""

    def __init__(self, progress: Progress, draw: Callable[[], None] | None = None) -> None:
        self._progress, self._draw, self._next = progress, draw, 0.0
        self._task: TaskID | None = None
        self._acceptance, self._surrogates, self._weighs = float("nan"), 0, False

    def draw(self) -> None:
        """Draw the bar as it is."""
        if self._draw is not None:
            self._draw()
            self._next = time.monotonic() + EVERY_DRAWING

    def surrokit_run_started(self, run: RunInfo) -> None:
        """Begin the bar."""
        fields: dict[str, Any] = {"unit": "iterations", "said": "", "learnt": ""}
        total = run.warmup + run.draws
        self._task = self._progress.add_task("", total=total, price=_price(run), **fields)

    def _update(self, **fields: Any) -> None:
        assert self._task is not None
        self._progress.update(self._task, **fields)

    def surrokit_surrogate_deployed(self, evaluations: int, reason: str, **_: object) -> None:
        """Show how many surrogates there were, and whether the last was a repair."""
        self._surrogates += 1
        repaired = ", repaired" if reason.startswith("safety net") else ""
        self._update(learnt=f"surrogate {self._surrogates} of {evaluations} rows{repaired}")

    def surrokit_transition_done(self, run: RunInfo, info: IterationInfo, **_: object) -> None:
        """Move the bar."""
        if info.step is not None:
            now = float(info.step.move_probability.mean())
            before = now if np.isnan(self._acceptance) else self._acceptance
            self._acceptance = 0.98 * before + 0.02 * now
        if self._weighs:
            self._update(completed=sum(n for kind, n in info.calls.items() if kind != "rows"))
        else:
            self._update(
                completed=info.iteration,
                # draws that begin again make a run longer
                total=max(run.warmup + run.draws, info.iteration),
                said="" if np.isnan(self._acceptance) else f"acceptance {self._acceptance:.2f}",
            )
        if time.monotonic() >= self._next:
            self.draw()

    def surrokit_round_weighed(self, info: RoundInfo, **_: object) -> None:
        """Show how large errors are, and count calls from here on."""
        self._weighs = info.draws > 0
        if self._weighs:
            aim = "" if info.aim is None else f", aim {info.aim:g}"
            said = f"error {info.error:.2g} sd{aim}"
            total = info.expected_calls
            self._update(completed=info.calls, total=total, unit="calls", said=said)
        self.draw()


def log_observers() -> list[RunLog]:
    """Return the observer that writes to the log; none where nobody reads it."""
    return [RunLog()] if LOGGER.isEnabledFor(logging.INFO) else []


class RunLog:
    """An observer that logs a run: its parts, its surrogates, how far it is, and its verdict."""

    def __init__(self) -> None:
        self._last = 0.0

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
        if info.seconds < self._last + 10.0:
            return
        self._last = info.seconds
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
