"""Options of commands whose exact calls may be made by workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--workers",
        type=int,
        default=None,
        help="Make exact calls side by side in so many processes.  [default: none]",
    ),
    click.option(
        "--executor",
        type=click.Choice(["processes", "threads"]),
        default=None,
        help="Use processes or threads as workers.  [default: processes, with --workers]",
    ),
    click.option(
        "--timeout",
        type=float,
        default=None,
        help="Give up a call in a process after so many seconds, as failed.",
    ),
    click.option(
        "--prefetch",
        type=int,
        default=None,
        help="Let idle workers evaluate so many positions ahead.  [default: one for each worker]",
    ),
    click.option(
        "--one-by-one",
        is_flag=True,
        help="Evaluate a target of rows one position at a time, so that workers can share them.",
    ),
)


def with_workers(command: Command) -> Command:
    """Add the options to a command, in this order."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
