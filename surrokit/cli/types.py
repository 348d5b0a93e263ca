"""Types of what the command line takes: parts and targets, which a shell completes, and limits.

Also the options that name parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from surrokit.registry.kinds import KINDS
from surrokit.sessions import AS_BEFORE

Command = TypeVar("Command", bound=Callable[..., Any])

ENDINGS = (".py", ".toml", "/")
"""Of paths that lead to a target."""


class PartName(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """The name of a part; whether there is one is found out where it is made.

    Parameters
    ----------
    kind
        Of which kind; None for any kind, and the kinds themselves.
    others
        Words beside names.
    """

    name = "text"

    def __init__(self, kind: str | None = None, others: Iterable[str] = ()) -> None:
        self.kind = kind
        self.others = tuple(others) if kind else KINDS

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Return the names that begin so, each with what it is."""
        from surrokit.registry.catalogue import default_catalogue

        words = dict.fromkeys(self.others, "") | {
            entry.component.name: entry.component.summary
            for entry in default_catalogue()
            if self.kind in (None, entry.component.kind)
        }
        found = sorted(word for word in words if word.startswith(incomplete))
        return [CompletionItem(word, help=words[word]) for word in found]


class TargetName(PartName):
    """A registered target, or a file that has one."""

    def __init__(self) -> None:
        super().__init__("potential")

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return names of targets, folders, and files that may have some, that begin so."""
        found = super().shell_complete(ctx, param, incomplete)
        return found + [CompletionItem(path) for path in _paths(incomplete)]


def _paths(incomplete: str) -> list[str]:
    folder, _, _ = incomplete.rpartition("/")
    try:
        there = sorted(Path(folder or ".").iterdir())
    except OSError:
        return []
    names = [f"{path}/" if path.is_dir() else str(path) for path in there]
    return [name for name in names if name.startswith(incomplete) and name.endswith(ENDINGS)]


class Limit(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A number, or ``none`` to remove a limit."""

    name = "NUMBER|none"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or None."""
        if value in (AS_BEFORE, None) or isinstance(value, int | float):
            return value
        if value == "none":
            return None
        try:
            return float(value) if not value.isdigit() else int(value)
        except ValueError:
            self.fail(f"{value!r} is neither a number nor none", param, ctx)


_PARTS = (
    click.option(
        "--sampler", type=PartName("sampler"), help="Name of a sampler.  [default: picked]"
    ),
    click.option(
        "--surrogate",
        type=PartName("surrogate", ["none"]),
        help='Name of a surrogate, or "none" for the exact potential throughout.  [default: '
        "picked, or none where a sampler is named]",
    ),
    click.option(
        "--explorer",
        type=PartName("explorer"),
        help="Part that explores before there is a surrogate.",
    ),
    click.option("--schedule", type=PartName("schedule"), help="When to learn.  [default: once]"),
    click.option(
        "--correction",
        type=PartName("correction"),
        help="Part that decides.  [default: metropolis]",
    ),
    click.option(
        "--policy",
        type=PartName("policy"),
        help="Part that picks the others.  [default: automatic]",
    ),
)

NAMED = ("sampler", "surrogate", "explorer", "schedule", "correction", "policy")
"""Kinds that these options name."""


def with_parts(command: Command) -> Command:
    """Add options to a command that name parts."""
    for option in reversed(_PARTS):
        command = option(command)
    return command
