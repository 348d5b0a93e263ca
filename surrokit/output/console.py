"""Consoles on which tables are printed: a terminal, a file, or text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_WIDE = 10_000


def terminal() -> Console:
    """Return the console of standard output, wide enough for tables if that is a file."""
    import shutil
    import sys

    from rich.console import Console

    # a table that is cut to fit is of no use in a file
    width = None if sys.stdout.isatty() else max(160, shutil.get_terminal_size().columns)
    return Console(width=width, highlight=False, markup=False)


def text_console(file: IO[str]) -> Console:
    """Return a console that writes text without terminal codes, and never breaks a line.

    Parameters
    ----------
    file
        What it writes to.
    """
    from rich.console import Console

    return Console(
        file=file,
        width=_WIDE,
        color_system=None,
        force_terminal=False,
        highlight=False,
        markup=False,
    )


def plain_table(words: Sequence[str], figures: Sequence[str] = ()) -> Table:
    """Return a table without lines, whose titles are ``words`` and then ``figures``.

    Figures are set flush right.
    """
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in words:
        table.add_column(title)
    for title in figures:
        table.add_column(title, justify="right")
    return table
