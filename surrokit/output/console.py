"""Consoles on which tables are printed: a terminal, a file, or text."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

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
