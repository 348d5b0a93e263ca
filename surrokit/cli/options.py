"""Options of commands, what they take, and commands whose help is short at first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import click
from click.shell_completion import CompletionItem

from surrokit.errors import ConfigurationError
from surrokit.sessions import AS_BEFORE

Command = TypeVar("Command", bound=Callable[..., Any])

NAMED = {
    "sampler": "Move chains by this sampler.  [default: picked]",
    "surrogate": 'Propose on this surrogate, or on the exact potential with "none".  '
    "[default: picked, or none where a sampler is named]",
    "explorer": "Explore by this part before there is a surrogate.  [default: picked]",
    "schedule": "Learn when this schedule says so.  [default: once]",
    "correction": "Accept or reject by this correction.  [default: metropolis]",
    "policy": "Let this policy pick the parts that are not named.  [default: automatic]",
}
"""Kinds of parts that options name, with what each option does."""


Complete: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def names_of(kind: str | None, *others: str) -> Complete:
    """Return what completes the names of parts of a kind, or of any, and others."""

    def complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from surrokit.registry.catalogue import default_catalogue

        parts = [each for each in default_catalogue() if kind in (None, each.kind)]
        words = dict.fromkeys(others, "") | {each.name: each.summary for each in parts}
        found = sorted(word for word in words if word.startswith(incomplete))
        return [CompletionItem(word, help=words[word]) for word in found]

    return complete


def complete_target(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return names of targets, and what lets a shell complete the name of a file."""
    named = names_of("potential")(context, parameter, incomplete)
    return [*named, CompletionItem(incomplete, type="file")]


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


FILE = click.Path(path_type=Path)

# decorators that are click's option, with what is alike in many
whole = partial(click.option, type=int, default=None)
number = partial(click.option, type=float, default=None)
file = partial(click.option, type=FILE)
several = partial(click.option, multiple=True)
limit = partial(
    click.option,
    type=Limit(),
    default=AS_BEFORE,
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


def _with_known_ending(_: click.Context, __: click.Parameter, path: Path | None) -> Path | None:
    from surrokit.output.saving import form_of

    try:
        if path is not None:
            form_of(path)
    except ConfigurationError as error:
        raise click.BadParameter(str(error)) from error
    return path


def part_option(kind: str, **settings: Any) -> Callable[[Command], Command]:
    """Return an option that names a part of a kind."""
    others = ("none",) if kind == "surrogate" else ()
    return click.option(f"--{kind}", shell_complete=names_of(kind, *others), **settings)


with_parts = together(*(part_option(kind, help=said) for kind, said in NAMED.items()))

with_workers = together(
    whole("--workers", help="Make exact calls side by side in so many processes.  [default: none]"),
    click.option(
        "--executor",
        type=click.Choice(["processes", "threads"]),
        default=None,
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
        callback=_with_known_ending,
        help="Save the draws here: as netCDF (.nc), or a table (.csv, .parquet).",
    ),
    file(
        "--report",
        metavar="PAGE",
        help="Write a page about the run here (.html): verdict, pictures and cost.",
    ),
)

FIRST = (
    *("surrogate", "seed", "max_calls", "max_seconds", "target_ess", "draws", "chains"),
    *("workers", "path", "out"),
)
"""Options of a run that people use first."""

_SHOWS_ALL = "surrokit.help_all"


class LongCommand(click.Command):
    """A command with many options: ``--help`` shows those named first, ``--help-all`` all."""

    def __init__(self, *arguments: Any, first: Sequence[str], **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.first = tuple(first)
        everything = click.Option(
            ["--help-all"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_all,
            help="Show all options and exit.",
        )
        self.params.append(everything)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, in the order in which they are declared."""
        options = [each for each in self.get_params(ctx) if isinstance(each, click.Option)]
        every = ctx.meta.get(_SHOWS_ALL, False)
        # those without a value are about help
        shown = [o for o in options if every or o.name in self.first or not o.expose_value]
        with formatter.section("Options"):
            formatter.write_dl([*filter(None, (each.get_help_record(ctx) for each in shown))])
        if left := len(options) - len(shown):
            formatter.write_paragraph()
            formatter.write_text(f"{ctx.command_path} --help-all shows {left} more options.")


def _show_all(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[_SHOWS_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()
