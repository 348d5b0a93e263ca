"""Tables and pictures of experiments."""

from __future__ import annotations

import io
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surrokit.errors import ConfigurationError, MissingDependencyError
from surrokit.experiments.contract import Experiment, Finished
from surrokit.output.console import plain_table, terminal, text_console

if TYPE_CHECKING:
    from rich.console import Console

    from surrokit.experiments.contract import Cell, Report
    from surrokit.experiments.outcome import AllReproduced, Reproduction


_TEXT_WIDTH = 100


def print_reproduction(outcome: Reproduction) -> None:
    """Print the outcome of an experiment, with figures of the original beside ours.

    Output that is no terminal gets the text of ``NAME.txt``.
    """
    if not sys.stdout.isatty():
        sys.stdout.write(reproduction_text(outcome))
        return
    console = terminal()
    console.print(outcome.title)
    _print_tables(console, outcome.report)
    for note in outcome.notes:
        console.print(f"Note: {note}")


def reproduction_text(outcome: Reproduction) -> str:
    """Return the printed outcome of an experiment as text without terminal codes.

    Tables are as wide as they need to be; notes are broken at 100 characters.
    """
    file = io.StringIO()
    console = text_console(file)
    console.print(outcome.title)
    _print_tables(console, outcome.report)
    lines = [line.rstrip() for line in file.getvalue().splitlines()]
    if outcome.notes:
        lines.append("")
    for note in outcome.notes:
        lines += textwrap.wrap(
            f"Note: {note}",
            _TEXT_WIDTH,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(lines) + "\n"


def write_text(path: Path, outcome: Reproduction) -> None:
    """Write the printed outcome of an experiment to a file.

    Raises
    ------
    ConfigurationError
        If the file cannot be written.
    """
    try:
        path.write_text(reproduction_text(outcome), encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"cannot write {path}: {error.strerror}; give another folder with --out"
        ) from error


def _print_tables(console: Console, report: Report) -> None:
    for table in report.tables:
        console.print()
        if table.title:
            console.print(f"{table.title}:")
        console.print(_plain_table(table.columns, table.lines))
    if report.printed:
        columns = ("figure", "in the paper", "here")
        lines = [(figure.what, figure.printed, figure.ours) for figure in report.printed]
        console.print()
        console.print(_plain_table(columns, lines))


def print_all(outcome: AllReproduced) -> None:
    """Print the progress of every experiment, and what could not be done and why."""
    console = terminal()
    columns = ("experiment", "rows done", "of", "minutes")
    console.print(_plain_table(columns, outcome.lines()))
    for note in outcome.notes:
        console.print(f"Note: {note}", soft_wrap=True)


def _plain_table(columns: Sequence[str], lines: Iterable[Sequence[Cell]]) -> Any:
    table = plain_table(columns[:1], columns[1:])
    for line in lines:
        table.add_row(*map(_cell, line))
    return table


def _cell(value: Cell) -> str:
    if value is None or value != value:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def draw_picture(experiment: Experiment, finished: Sequence[Finished]) -> Any:
    """Return the picture of an experiment; None if it has none.

    Raises
    ------
    MissingDependencyError
        If Matplotlib is needed and not installed.
    """
    try:
        return experiment.draw(finished)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        raise MissingDependencyError(
            "Matplotlib is needed to draw pictures and is not installed; run "
            "python -m pip install 'surrokit[figures]'"
        ) from error
