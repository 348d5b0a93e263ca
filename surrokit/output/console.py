"""What is printed, and where: names and messages as text alone, tables on consoles."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_WIDE = 10_000

# All but the ends of lines and tabs that a terminal would obey or not show: control characters, and
# those that change the direction of text. Surrogates stand for bytes that are no text.
_NO_TEXT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def printable(text: str) -> str:
    """Return a text that a terminal shows as it is: names and messages come from anywhere."""
    return _NO_TEXT.sub(lambda found: ascii(found[0])[1:-1], text)


def say(message: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a message of a command, as text alone.

    Parameters
    ----------
    message
        What is printed.
    err
        Whether it goes to standard error.
    nl
        Whether the line ends there.
    """
    import click

    click.echo(printable(str(message)), err=err, nl=nl)


def terminal() -> Console:
    """Return the console of standard output, wide enough for tables if that is a file."""
    import shutil
    import sys

    # a table that is cut to fit is of no use in a file
    width = None if sys.stdout.isatty() else max(160, shutil.get_terminal_size().columns)
    return _plain_console()(width=width, highlight=False, markup=False)


def text_console(file: IO[str]) -> Console:
    """Return a console that writes text without terminal codes, and never breaks a line.

    Parameters
    ----------
    file
        What it writes to.
    """
    return _plain_console()(
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


@cache
def _plain_console() -> type[Console]:
    """Return the class of consoles that print text as it is."""
    from rich.console import Console  # late: importing the package stays fast

    class PlainConsole(Console):
        def render_str(self, text: str, **settings: Any) -> Text:
            return super().render_str(printable(text), **settings)

    return PlainConsole
