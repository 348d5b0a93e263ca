"""The progress bar over rows of experiments."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class RowBar:
    """Says which row is at work, and how many are dealt with.

    Parameters
    ----------
    progress
        The display; None shows nothing.
    task
        Its task.
    """

    def __init__(self, progress: Progress | None = None, task: TaskID | None = None) -> None:
        self._progress = progress
        self._task = task

    def experiment(self, label: str) -> None:
        """Name the experiment that the next rows belong to."""
        self._update(experiment=label, row="")

    def begin(self, row: str) -> None:
        """Name the row that begins."""
        self._update(row=row)

    def end(self) -> None:
        """Count one row more, finished or not to be done here."""
        self._update(advance=1)

    def _update(self, **fields: Any) -> None:
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, **fields)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Leave the terminal to what is printed in the block."""
        if self._progress is None:
            yield
            return
        self._progress.stop()
        try:
            yield
        finally:
            self._progress.start()


@contextmanager
def row_bar(total: int, finished: int = 0, *, enabled: bool) -> Iterator[RowBar]:
    """Show a bar over rows of experiments, if standard error is a terminal.

    Parameters
    ----------
    total
        Rows in all.
    finished
        Those of them that need not be done any more.
    enabled
        Whether to show anything.

    Yields
    ------
    RowBar
        To be told the rows.
    """
    if not (enabled and total > finished and sys.stderr.isatty()):
        yield RowBar()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.fields[experiment]}"),
        TextColumn("{task.fields[row]:<20}"),
        BarColumn(bar_width=20),
        TextColumn("{task.completed:.0f} of {task.total:.0f} rows"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("", total=total, completed=finished, experiment="", row="")
        yield RowBar(progress, task)
