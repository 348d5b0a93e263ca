"""The progress bar over rows of experiments."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class RowBar:
    """Shows the row in progress, and the number of rows dealt with.

    Parameters
    ----------
    progress
        The display; None shows nothing.
    task
        Task of the display.
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
        """Count one more row, finished or impossible here."""
        self._update(advance=1)

    def _update(self, **fields: Any) -> None:
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, **fields)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Hide the bar while the block prints."""
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
        Rows that need not be done any more.
    enabled
        Whether to show anything.

    Yields
    ------
    RowBar
        The bar, to be told each row.
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
