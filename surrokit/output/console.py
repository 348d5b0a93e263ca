"""What is printed, and where: names and messages as text alone, tables on consoles."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

# All but the ends of lines and tabs that a terminal would obey or not show: control characters, and
# those that change the direction of text. Surrogates stand for bytes that are no text.
_NO_TEXT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def printable(text: str) -> str:
    """Return a text with escapes for what is no text: names and messages come from anywhere."""
    return _NO_TEXT.sub(lambda found: ascii(found[0])[1:-1], text)


def say(message: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a message of a command, as text alone, to standard output or error."""
    import click

    click.echo(printable(str(message)), err=err, nl=nl)


def terminal() -> Console:
    """Return the console of standard output, wide enough for tables if that is a file."""
    import shutil
    import sys

    # a table that is cut to fit is of no use in a file
    width = None if sys.stdout.isatty() else max(160, shutil.get_terminal_size().columns)
    return _plain_console()(width=width, highlight=False, markup=False)


def plain_table(words: Sequence[str], figures: Sequence[str] = ()) -> Table:
    """Return a table without lines, with titles of words, then of figures set flush right."""
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in words:
        table.add_column(title)
    for title in figures:
        table.add_column(title, justify="right")
    return table


@cache
def _plain_console() -> type[Console]:
    from rich.console import Console  # late: importing the package stays fast

    class PlainConsole(Console):
        def render_str(self, text: str, **settings: Any) -> Text:
            return super().render_str(printable(text), **settings)

    return PlainConsole
