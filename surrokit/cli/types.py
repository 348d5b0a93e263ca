"""Types of what the command line takes: parts and targets, which a shell completes, and limits."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from surrokit.registry.kinds import KINDS
from surrokit.sessions import AS_BEFORE

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
