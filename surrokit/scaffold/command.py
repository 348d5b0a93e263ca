"""``surrokit new``: files to begin from."""

from __future__ import annotations

from pathlib import Path

import click

from surrokit.output.console import say
from surrokit.scaffold.distribution import SUMMARIES, Distribution


@click.group()
def new() -> None:
    """Write files to begin from."""


@new.command()
@click.argument("name")
@click.option(
    "--kind",
    type=click.Choice(list(SUMMARIES)),
    default="surrogate",
    show_default=True,
    help="Make its part of this kind.",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=Path(),
    help="Put the folder of the plugin here.  [default: the current one]",
)
def plugin(name: str, kind: str, folder: Path) -> None:
    """Write a distribution surrokit-NAME with a part NAME, and tests that it passes."""
    written = Distribution(name, kind).write(folder)
    say(f"{written} has a {kind} that works; install it, and put yours in its place:")
    say(f"    python -m pip install --editable '{written}[testing]'")
    say(f"    surrokit plugins {kind} {name}")
    say(f"    python -m pytest {written}")
