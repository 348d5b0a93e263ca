"""Options of commands, what they take, and commands whose help shows options in groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from surrokit.errors import ConfigurationError
from surrokit.registry.components import KINDS
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

ENDINGS = (".py", ".toml", "/")
"""Of paths that lead to a target."""


class PartName(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """The name of a part, which a shell completes; it is looked up where the part is made.

    Parameters
    ----------
    kind
        Of which kind; None for any kind, and the kinds themselves.
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
    others = ["none"] if kind == "surrogate" else []
    return click.option(f"--{kind}", type=PartName(kind, others), **settings)


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

GROUPS = {
    "What is sampled, and by what": (
        *("family", "prior", "intercept_prior", "offset", "weights", "event", "levels"),
        *("drop_missing", "sampler", "surrogate", "explorer", "schedule", "correction", "policy"),
        *("step_size", "n_steps", "settings", "warm_start", "seed", "on_error", "retries"),
    ),
    "How long": (
        *("max_calls", "max_seconds", "target_ess", "target_rhat", "target_mcse"),
        *("draws", "warmup", "chains", "dry_run"),
    ),
    "Where": ("workers", "executor", "timeout", "one_by_one", "path"),
    "Output": ("out", "report", "json_path", "compare", "quiet", "wide"),
}
"""Heading to the options under it, in this order; others come last."""

FIRST = (
    *("surrogate", "seed", "max_calls", "max_seconds", "target_ess", "draws", "chains"),
    *("workers", "path", "out"),
)
"""Options of a run that people use first."""

_SHOWS_ALL = "surrokit.help_all"


class GroupedCommand(click.Command):
    """A command whose help shows its options in groups, and at first the most used alone.

    Parameters
    ----------
    first
        Names of the options that ``--help`` shows; ``--help-all`` shows all.
    *arguments, **settings
        As for :class:`click.Command`.
    """

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
        """Write the options under their headings."""
        *options, of_all, of_help = (
            each for each in self.get_params(ctx) if isinstance(each, click.Option)
        )
        shows_all = ctx.meta.get(_SHOWS_ALL, False)
        records = {
            str(each.name): each.get_help_record(ctx)
            for each in options
            if shows_all or each.name in self.first
        }
        left = len(options) - len(records)
        for heading, names in GROUPS.items():
            _write(formatter, heading, [records.pop(name, None) for name in names])
        _write(formatter, "Other options", records.values())
        _write(formatter, "Help", [each.get_help_record(ctx) for each in (of_all, of_help)])
        if left:
            formatter.write_paragraph()
            formatter.write_text(f"{ctx.command_path} --help-all shows {left} more options.")


def _write(
    formatter: click.HelpFormatter, heading: str, rows: Iterable[tuple[str, str] | None]
) -> None:
    if found := [row for row in rows if row is not None]:
        with formatter.section(heading):
            formatter.write_dl(found)


def _show_all(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[_SHOWS_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()
