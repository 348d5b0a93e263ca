"""The progress of a run: a bar in a terminal or a notebook, and lines elsewhere.

All of them show what the meter of the run counts, from its first call on.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING

from surrokit.limits import Meter

if TYPE_CHECKING:
    from surrokit.progress import IterationInfo, RoundInfo, RunInfo

EVERY_LINE = 60.0  #: Seconds between two lines, at least, where there is no terminal.

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
        bar = ProgressBar(meter)
        bar.draw = _replacing(bar)
        meter.every(EVERY_CALL, bar.draw)
        try:
            yield [bar]
        finally:
            bar.draw()
    elif sys.stderr is not None and sys.stderr.isatty():
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        bar = ProgressBar(meter)
        with Live(get_renderable=lambda: Text(str(bar)), console=Console(stderr=True)):
            yield [bar]
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


def _replacing(shown: object) -> Callable[[], None]:
    """Return what shows a text below a cell of a notebook, again and again in the same place.

    Rich itself would do so by widgets, which are not in a notebook that is saved.
    """
    from IPython.display import display

    handle = display({"text/plain": str(shown)}, raw=True, display_id=True)
    return lambda: handle.update({"text/plain": str(shown)}, raw=True)


class ProgressBar:
    """An observer whose text is a bar, with what the meter counts in a line below."""

    def __init__(self, meter: Meter) -> None:
        self._meter, self._next = meter, 0.0
        self._price = self._said = self._learnt = ""
        self._done, self._total, self._unit = 0.0, 0.0, "iterations"
        self._acceptance: float | None = None
        self._surrogates = 0
        self.draw: Callable[[], None] = lambda: None  # where Rich does not draw by itself

    def __str__(self) -> str:
        full = round(20 * min(self._done / self._total, 1.0)) if self._total else 0
        bar = f"{'━' * full}{'─' * (20 - full)} {self._done:.0f}/{self._total:.0f} {self._unit}"
        line = ", ".join(filter(None, (bar, self._said, self._learnt))) if self._total else ""
        return "\n".join(filter(None, (self._price, line, _state(self._meter))))

    def surrokit_run_started(self, run: RunInfo) -> None:
        """Begin the bar."""
        self._price, self._total = _price(run), run.warmup + run.draws

    def surrokit_surrogate_deployed(self, evaluations: int, reason: str, **_: object) -> None:
        """Show how many surrogates there were, and whether the last was a repair."""
        self._surrogates += 1
        repaired = ", repaired" if reason.startswith("repair") else ""
        self._learnt = f"surrogate {self._surrogates} of {evaluations} rows{repaired}"

    def surrokit_transition_done(self, run: RunInfo, info: IterationInfo, **_: object) -> None:
        """Move the bar."""
        if self._unit == "calls":
            self._done = sum(n for kind, n in info.calls.items() if kind != "rows")
        else:
            self._done = info.iteration
            self._total = max(run.warmup + run.draws, info.iteration)
            if info.step is not None:
                now = float(info.step.move_probability.mean())
                before = now if self._acceptance is None else self._acceptance
                self._acceptance = 0.98 * before + 0.02 * now
                self._said = f"acceptance {self._acceptance:.2f}"
        if time.monotonic() >= self._next:
            self.draw()
            self._next = time.monotonic() + EVERY_DRAWING

    def surrokit_round_weighed(self, info: RoundInfo, **_: object) -> None:
        """Show how large errors are, and count calls from here on."""
        if info.draws:
            aim = "" if info.aim is None else f", aim {info.aim:g}"
            self._said, self._unit = f"error {info.error:.2g} sd{aim}", "calls"
            self._done, self._total = info.calls, info.expected_calls
        self.draw()
