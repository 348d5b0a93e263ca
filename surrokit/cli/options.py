"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

NAMED = {
    "sampler": "Move chains by this sampler.  [default: picked]",
    "surrogate": 'Propose on this surrogate, or on the exact potential with "none".  '
    "[default: picked, or none where a sampler is named]",
    "explorer": "Explore by this part before there is a surrogate.  [default: picked]",
    "schedule": "Learn by this schedule.  [default: once]",
    "correction": "Accept or reject by this correction.  [default: metropolis]",
    "policy": "Let this policy pick the parts that are not named.  [default: automatic]",
}
"""Kinds of parts that options name, with what each option does."""


class Limit(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A number, or ``none`` to remove a limit."""

    name = "NUMBER|none"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or ``"none"``."""
        try:
            return value if value == "none" else int(value) if value.isdigit() else float(value)
        except ValueError:
            self.fail(f"{value!r} is neither a number nor none", param, ctx)


FILE = click.Path(path_type=Path)

# decorators that are click's option, with what is alike in many
whole = partial(click.option, type=int, default=None)
number = partial(click.option, type=float, default=None)
file = partial(click.option, type=FILE)
several = partial(click.option, multiple=True)
limit = partial(
    click.option,
    type=Limit(),
    help="Limit the whole run so from here on; none removes it.  [default: as before]",
)
settings = partial(several, "--set", "settings", metavar="KEY=VALUE")
json_path = partial(file, "--json", "json_path")


def together(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return what gives a command several options, in this order."""

    def add(command: Command) -> Command:
        """Give a command the options."""
        for option in reversed(options):
            command = option(command)
        return command

    return add


with_parts = together(*(click.option(f"--{kind}", help=said) for kind, said in NAMED.items()))

with_workers = together(
    whole("--workers", help="Make exact calls side by side in so many processes.  [default: none]"),
    click.option(
        "--executor",
        type=click.Choice(["processes", "threads"]),
        help="Use processes or threads as workers.  [default: processes, with --workers]",
    ),
    number("--timeout", help="Give up a call in a process after so many seconds, as failed."),
    click.option(
        "--one-by-one",
        is_flag=True,
        help="Evaluate a target of rows one position at a time, so that workers can share them.",
    ),
)

quiet = click.option(
    "--quiet", is_flag=True, help="Show no bar and no table; warnings are shown all the same."
)

wide = click.option(
    "--wide", is_flag=True, help="Show all columns, and not those alone that 80 characters hold."
)

with_outputs = together(
    file(
        "--out",
        help="Save the draws here: as netCDF (.nc), or a table (.csv).",
    ),
    file(
        "--report",
        metavar="PAGE",
        help="Write a page about the run here (.html): verdict, pictures and cost.",
    ),
)
