"""The command line: ``plugins``, ``sample``, ``resume``, ``show`` and others."""

from __future__ import annotations

import io
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from surrokit.cli.exit_status import INTERRUPTED
from surrokit.cli.glm import glm_command, predict
from surrokit.cli.pages import PAGES, check_outputs, with_outputs, write_outputs
from surrokit.cli.parts import bench
from surrokit.cli.types import (
    FIRST,
    NAMED,
    GroupedCommand,
    Limit,
    PartName,
    TargetName,
    with_parts,
)
from surrokit.cli.workers import with_workers
from surrokit.errors import PluginError, SurrokitError
from surrokit.output.console import say
from surrokit.scaffold.command import new
from surrokit.sessions import AS_BEFORE
from surrokit.studies.command import COMMANDS

if TYPE_CHECKING:
    from surrokit.result.run import Run


QUIET = click.option(
    "--quiet", is_flag=True, help="Show no bar and no table; warnings are shown all the same."
)

WIDE = click.option(
    "--wide",
    is_flag=True,
    help="Show all columns, and not those alone that 80 characters hold.",
)

_LIMIT = Limit()
_LIMIT_HELP = "Limit the whole run so from here on; none removes it.  [default: as before]"


class _WithPlugins(click.Group):
    """Commands of this program, and those that plugins offer."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        try:
            offered = _offered_commands()
        except PluginError:
            offered = {}  # a plugin that is broken is told of where one is needed
        return sorted({*super().list_commands(ctx), *offered})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, cmd_name) or _offered_commands().get(cmd_name)


def _offered_commands() -> dict[str, click.Command]:
    from surrokit.registry.discovery import default_plugins

    offered = default_plugins().manager.hook.surrokit_commands()
    return {str(command.name): command for commands in offered for command in commands}


@click.group(cls=_WithPlugins, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="surrokit")
def cli() -> None:
    """Exact posterior draws from expensive models, driven by cheap learned surrogates."""


for _command in (*COMMANDS, *PAGES, new, predict, bench):
    cli.add_command(_command)


@cli.command(short_help="List the parts, or show the settings of some.")
@click.argument("names", nargs=-1, type=PartName())
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Also write JSON here.")
def plugins(names: tuple[str, ...], json_path: Path | None) -> None:
    """List every part: its kind, name and plugin; or show the settings of the parts NAMES.

    A kind before them, such as "sampler hmc", leaves out parts of other kinds with these names.
    """
    from surrokit.cli.parts import kind_and_names, part_rows, print_parts, print_settings
    from surrokit.output.files import write_json
    from surrokit.registry.catalogue import default_catalogue

    kind, names = kind_and_names(names)
    entries = default_catalogue().find(names, kind)
    rows = part_rows(entries) if names or json_path is not None else []
    if names:
        print_settings(rows)
    else:
        print_parts(entries)
    if json_path is not None:
        write_json(json_path, rows)


@cli.command(cls=GroupedCommand, first=FIRST, short_help="Draw from a target.")
@click.argument("target", type=TargetName())
@with_parts
@click.option("--chains", default=4, show_default=True, help="Run so many chains, as one batch.")
@click.option(
    "--warmup",
    type=int,
    default=None,
    help="Tune in so many iterations, of which no draw is kept.  [default: 1000]",
)
@click.option(
    "--draws", type=int, default=None, help="Keep so many draws of each chain.  [default: 1000]"
)
@click.option(
    "--max-calls",
    type=float,
    default=None,
    callback=lambda _, __, value: int(value) if value and value.is_integer() else value,
    help="Stop before there are more exact calls; inf lifts the default limit.",
)
@click.option("--max-seconds", type=float, default=None, help="Stop after so many seconds.")
@click.option("--target-ess", type=float, default=None, help="Stop when every ESS is this high.")
@click.option("--target-rhat", type=float, default=None, help="Stop when every R-hat is this low.")
@click.option(
    "--target-mcse",
    type=float,
    default=None,
    help="Stop when no mean, sd or quantile has a larger error, in posterior sds.",
)
@click.option(
    "--step-size", type=float, default=None, help="Take steps of this size.  [default: tuned]"
)
@click.option(
    "--n-steps", type=int, default=None, help="Take so many steps a path at most.  [default: tuned]"
)
@click.option(
    "--on-error",
    type=click.Choice(["reject", "raise", "retry"]),
    default="reject",
    show_default=True,
    help="Where the target fails, reject and count it, stop (raise), or try again (retry).",
)
@click.option(
    "--retries",
    type=int,
    default=None,
    help="Try a failed position again so often, with --on-error retry.  [default: 2]",
)
@click.option(
    "--seed", type=int, default=None, help="Seed the random numbers, for reproducible draws."
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a part's setting, as surrogate.n_nodes=500 or target.path=FILE; repeatable.",
)
@click.option(
    "--path",
    type=click.Path(path_type=Path),
    help="Write every exact evaluation to this new file, from which the run can be resumed.",
)
@click.option(
    "--warm-start",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Learn from the file of an earlier run, and evaluate nothing in it again; repeatable.",
)
@click.option(
    "--keep",
    type=click.Choice(["memory", "file"]),
    default="memory",
    show_default=True,
    help="Hold draws in memory, or in a file beside that of --path, which has room for more.",
)
@with_workers
@QUIET
@WIDE
@click.option(
    "--dry-run", is_flag=True, help="Time a few calls, and say what the run would cost, alone."
)
@click.option("--compare", is_flag=True, help="Also run plain HMC, and show its cost.")
@click.option(
    "--json", "json_path", type=click.Path(path_type=Path), help="Write the figures as JSON here."
)
@with_outputs
def sample(
    target: str,
    settings: tuple[str, ...],
    path: Path | None,
    warm_start: tuple[Path, ...],
    keep: str,
    one_by_one: bool,
    quiet: bool,
    wide: bool,
    dry_run: bool,
    compare: bool,
    json_path: Path | None,
    out: Path | None,
    report: Path | None,
    **sizes: Any,
) -> None:
    """Draw from TARGET: a registered name, path/to/file.py:object, or path/to/program.toml.

    The target decides every acceptance exactly; a surrogate only proposes. Where neither a sampler
    nor a surrogate is named, the cost of the target's calls decides which parts are picked.
    """
    from surrokit.cli.report import print_run, verdict_once
    from surrokit.cli.settings import parse_settings, specs_of
    from surrokit.cli.target import name_or_target
    from surrokit.output.files import check_folder
    from surrokit.registry.catalogue import default_catalogue

    parts = parse_settings(settings)
    if json_path is not None:
        check_folder(json_path)
    check_outputs(out, report)
    exact = name_or_target(target, parts.pop("target", {}), one_by_one=one_by_one)
    names = {kind: sizes.pop(kind) for kind in NAMED}
    catalogue = default_catalogue()
    files = {"path": path, "warm_start": warm_start or None, "keep": keep}
    sizes["progress"] = not quiet
    specs = specs_of(names, parts, catalogue)
    if dry_run:
        _estimate(exact, json_path, **specs, **files, **sizes)
        return
    with verdict_once(quiet=quiet) as observers:
        run = _sample(exact, **specs, **files, observers=observers, **sizes)
    baseline = None
    if compare and run.stopped != "interrupted":
        with verdict_once(quiet=quiet) as observers:
            plain = catalogue.pick("sampler")
            baseline = _sample(exact, sampler=plain, observers=observers, **sizes)
    if not quiet:
        print_run(run, baseline, wide=wide)
    compared = {} if baseline is None else {"compare": baseline.to_dict()}
    _write_figures(json_path, lambda: {**run.to_dict(), **compared})
    write_outputs(run, out, report, quiet=quiet)
    if "interrupted" in (run.stopped, baseline and baseline.stopped):
        sys.exit(INTERRUPTED)


cli.add_command(glm_command(cast(GroupedCommand, sample)))


@cli.command(cls=GroupedCommand, first=("draws", "max_calls", "max_seconds", "workers"))
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("target", type=TargetName(), required=False)
@click.option("--draws", type=int, default=None, help="Keep so many draws of each chain in all.")
@click.option("--max-calls", type=_LIMIT, default=AS_BEFORE, help=_LIMIT_HELP)
@click.option("--max-seconds", type=_LIMIT, default=AS_BEFORE, help=_LIMIT_HELP)
@click.option("--target-ess", type=_LIMIT, default=AS_BEFORE, help=_LIMIT_HELP)
@click.option("--target-rhat", type=_LIMIT, default=AS_BEFORE, help=_LIMIT_HELP)
@click.option("--target-mcse", type=_LIMIT, default=AS_BEFORE, help=_LIMIT_HELP)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set what the target was given, such as target.path=FILE, or a setting of a part "
    "that the file cannot hold, such as surrogate.estimator=NAME; repeatable.",
)
@with_parts
@with_workers
@QUIET
@WIDE
@click.option(
    "--json", "json_path", type=click.Path(path_type=Path), help="Write the figures as JSON here."
)
def resume(
    file: Path,
    target: str | None,
    settings: tuple[str, ...],
    one_by_one: bool,
    quiet: bool,
    wide: bool,
    json_path: Path | None,
    **sizes: Any,
) -> None:
    """Go on with the run that wrote FILE, or extend it by --draws.

    TARGET is given as to "surrokit sample", and may be left out where it was a registered name: a
    file is data, and no code is ever run from it. Parts are in the file, except those with settings
    that are more than plain data.
    """
    from surrokit.cli.report import print_run, verdict_once
    from surrokit.cli.settings import parse_settings, specs_of
    from surrokit.cli.target import name_or_target
    from surrokit.registry.catalogue import default_catalogue
    from surrokit.sessions import resume as go_on

    parts = parse_settings(settings)
    exact = name_or_target(target, parts.pop("target", {}), one_by_one=one_by_one)
    names = {kind: sizes.pop(kind) for kind in NAMED}
    again = specs_of(names, parts, default_catalogue())
    with verdict_once(quiet=quiet) as observers:
        run = go_on(file, exact, progress=not quiet, observers=observers, **again, **sizes)
    if not quiet:
        print_run(run, wide=wide)
    _write_figures(json_path, run.to_dict)
    if run.stopped == "interrupted":
        sys.exit(INTERRUPTED)


@cli.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--follow", is_flag=True, help="Show the run anew every few seconds, until it ends.")
@click.option(
    "--salvage",
    type=click.Path(path_type=Path),
    metavar="NEW_FILE",
    help="Write what can be read of a damaged file to a new one.",
)
@click.option(
    "--export",
    type=click.Path(path_type=Path),
    metavar="TABLE",
    help="Write all evaluations as a table (.csv, .parquet).",
)
@WIDE
def show(file: Path, follow: bool, salvage: Path | None, export: Path | None, wide: bool) -> None:
    """Show a run so far, from the FILE that it writes."""
    from surrokit.cli.show import export_table, salvage_to, show_run

    if salvage is not None:
        salvage_to(file, salvage)
    elif export is not None:
        export_table(file, export)
    else:
        show_run(file, follow=follow, wide=wide)


def _sample(target: Any, **arguments: Any) -> Run:
    from surrokit.compose import sample as draw

    return draw(target, **arguments)


def _estimate(target: Any, json_path: Path | None, **arguments: Any) -> None:
    """Print what a run would cost."""
    from surrokit.forecast import estimate

    expected = estimate(target, **arguments)
    say(expected)
    _write_figures(json_path, expected.to_dict)


def _write_figures(path: Path | None, figures: Callable[[], dict[str, Any]]) -> None:
    from surrokit.output.files import write_json

    if path is not None:
        write_json(path, figures())


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    say(f"Warning: {message}", err=True)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def main() -> None:
    """Run the command line; an error of surrokit's own ends in one line, without a traceback.

    A termination, as batch systems send it before a kill, is an interrupt: the run so far is shown.
    """
    warnings.showwarning = _show_warning
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        sys.exit(cli(standalone_mode=False) or 0)
    except SurrokitError as error:
        say(f"Error: {error}", err=True)
        sys.exit(1)
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(file=shown)
        say(shown.getvalue(), err=True, nl=False)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        say("Interrupted.", err=True)
        sys.exit(INTERRUPTED)
