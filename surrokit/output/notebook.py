"""The progress bar in a notebook: one output, which each drawing replaces."""

from __future__ import annotations

import io
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress

WIDTH = 120
"""Characters in a line: all that the bar tells. A narrower notebook wraps it."""

EVERY = 0.25
"""Seconds between two drawings at least."""

EVERY_CALL = 1.0
"""Seconds between two drawings, at least, that calls within an iteration cause."""

_LINE = (
    '<pre style="margin:0;white-space:pre-wrap;'
    "font-family:Menlo,'DejaVu Sans Mono',Consolas,'Courier New',monospace\">{code}</pre>"
)


def in_notebook() -> bool:
    """Return whether this is the kernel of a notebook."""
    if "IPython" not in sys.modules:
        return False
    from rich.console import Console

    return Console().is_jupyter


class Display:
    """An observer that draws bars below a cell, again and again in the same place.

    Rich itself draws in notebooks by widgets, which need ipywidgets and are not in a notebook that
    is saved. What is drawn here needs nothing else, and is saved as it was last.

    Parameters
    ----------
    progress
        The bars; it is not started, so that it writes nothing by itself.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._handle: Any = None
        self._next = 0.0

    def surrokit_transition_done(self, **_: object) -> None:
        """Draw the bars, unless they were drawn a moment ago."""
        if time.monotonic() >= self._next:
            self.draw()

    def surrokit_round_weighed(self, **_: object) -> None:
        """Draw the bars."""
        self.draw()

    def draw(self) -> None:
        """Draw the bars as they are."""
        from IPython.display import display

        shown = _draw(self._progress)
        if self._handle is None:
            self._handle = display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)
        self._next = time.monotonic() + EVERY


def _draw(progress: Progress) -> dict[str, str]:
    from rich.console import Console

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
    page = console.export_html(clear=False, code_format=_LINE, inline_styles=True)
    return {"text/html": page, "text/plain": console.export_text().rstrip()}
