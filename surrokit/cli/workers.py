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
        help="Processes that make exact calls side by side.  [default: none]",
    ),
    click.option(
        "--executor",
        type=click.Choice(["processes", "threads"]),
        default=None,
        help="What workers are.  [default: processes, with --workers]",
    ),
    click.option(
        "--timeout", type=float, default=None, help="Seconds after which a process's call fails."
    ),
    click.option(
        "--prefetch",
        type=int,
        default=None,
        help="Positions that idle workers evaluate ahead at most.  [default: one for each worker]",
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
