"""The command line: ``plugins``, ``sample``, ``resume``, ``show`` and others."""

from __future__ import annotations

import io
import signal
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surrokit.cli import options
from surrokit.cli.glm import glm_command
from surrokit.cli.parts import plugins
from surrokit.cli.show import print_run, report, show, verdict_once
from surrokit.cli.target import name_or_target, parse_settings, specs_of
from surrokit.errors import PluginError, SurrokitError
from surrokit.output.console import say
from surrokit.output.files import check_folder, write_json
from surrokit.scaffold.distribution import new
from surrokit.studies.command import COMMANDS

if TYPE_CHECKING:
    from surrokit.result.run import Run

INTERRUPTED = 130  #: Exit status of a command that Ctrl-C or a termination ended.


class _WithPlugins(click.Group):
    """Commands of this program, and those that plugins offer."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        offered = dict[str, click.Command]()
        with suppress(PluginError):  # one that is broken is reported where it is needed
            offered = _offered_commands()
        return sorted({*super().list_commands(ctx), *offered})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, cmd_name) or _offered_commands().get(cmd_name)


def _offered_commands() -> dict[str, click.Command]:
    from surrokit.registry.discovery import default_plugins

    offered = default_plugins().hook.surrokit_commands()
    return {str(command.name): command for commands in offered for command in commands}


@click.group(cls=_WithPlugins, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="surrokit")
def cli() -> None:
    """Exact posterior draws from expensive models, driven by cheap learned surrogates."""


for _command in (*COMMANDS, show, report, new, plugins):
    cli.add_command(_command)


@cli.command(short_help="Draw from a target.")
@click.argument("target")
@options.with_parts
@click.option("--chains", default=4, show_default=True, help="Run so many chains, as one batch.")
@options.whole(
    "--warmup", help="Tune in so many iterations, and keep none of their draws.  [default: 1000]"
)
@options.whole("--draws", help="Keep so many draws of each chain.  [default: 1000]")
@options.number(
    "--max-calls",
    callback=lambda _, __, value: int(value) if value and value.is_integer() else value,
    help="Stop before there are more exact calls; inf lifts the default limit.",
)
@options.number("--max-seconds", help="Stop after so many seconds.")
@options.number("--target-ess", help="Stop when every ESS is this high.")
@options.number("--target-rhat", help="Stop when every R-hat is this low.")
@options.number(
    "--target-mcse", help="Stop when no mean, sd or quantile has a larger error, in posterior sds."
)
@options.number("--step-size", help="Take steps of this size.  [default: tuned]")
@options.whole("--n-steps", help="Take so many steps a path at most.  [default: tuned]")
@click.option(
    "--on-error",
    type=click.Choice(["reject", "raise", "retry"]),
    default="reject",
    show_default=True,
    help="Where the target fails, reject and count it, stop (raise), or try again (retry).",
)
@options.whole(
    "--retries", help="Try a failed position again so often, with --on-error retry.  [default: 2]"
)
@options.whole("--seed", help="Seed the random numbers, for reproducible draws.")
@options.settings(
    help="Set a part's setting, as surrogate.n_nodes=500 or target.path=FILE; repeatable."
)
@options.file(
    "--path", help="Write every exact evaluation to this file, from which the run can be resumed."
)
@options.several(
    "--warm-start",
    type=options.FILE,
    help="Learn from the file of an earlier run, and evaluate nothing in it again; repeatable.",
)
@click.option(
    "--modes",
    type=click.Choice(["weighted", "as found"]),
    help="Weight draws of chains that stay at modes, or leave them as found.  [default: weighted]",
)
@options.with_workers
@options.quiet
@options.wide
@click.option(
    "--dry-run", is_flag=True, help="Time a few calls, and say what the run would cost, alone."
)
@click.option("--compare", is_flag=True, help="Also run plain HMC, and show its cost.")
@options.json_path(help="Write the figures as JSON here.")
@options.with_outputs
def sample(
    target: str,
    settings: tuple[str, ...],
    path: Path | None,
    warm_start: tuple[Path, ...],
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
    from surrokit.output.saving import check_can_save
    from surrokit.registry.catalogue import default_catalogue
    from surrokit.report.page import check_report

    checks = ((json_path, check_folder), (out, check_can_save), (report, check_report))
    for file, check in checks:  # before a long run
        if file is not None:
            check(file)
    exact, specs = _target_and_parts(target, settings, sizes, one_by_one=one_by_one)
    files = {"path": path, "warm_start": warm_start or None}
    sizes["progress"] = not quiet
    if dry_run:
        _estimate(exact, json_path, **specs, **files, **sizes)
        return
    run = _sample(exact, quiet=quiet, **specs, **files, **sizes)
    baseline = None
    if compare and run.stopped != "interrupted":
        plain = default_catalogue().pick("sampler")
        baseline = _sample(exact, quiet=quiet, sampler=plain, **sizes)
    if not quiet:
        print_run(run, baseline, wide=wide)
    if json_path is not None:
        compared = {} if baseline is None else {"compare": baseline.to_dict()}
        write_json(json_path, {**run.to_dict(), **compared})
    writes = ((out, run.save, "draws saved"), (report, run.report, "report written"))
    for file, write, said in writes:
        if file is not None:
            write(file)
            if not quiet:
                say(f"{said} to {file}")
    if "interrupted" in (run.stopped, baseline and baseline.stopped):
        sys.exit(INTERRUPTED)


cli.add_command(glm_command(sample))


@cli.command()
@click.argument("path", metavar="FILE", type=options.FILE)
@click.argument("target", required=False)
@options.whole("--draws", help="Keep so many draws of each chain in all.")
@options.limit("--max-calls")
@options.limit("--max-seconds")
@options.limit("--target-ess")
@options.limit("--target-rhat")
@options.limit("--target-mcse")
@options.settings(
    help="Set what the target was given, such as target.path=FILE, or a setting of a part "
    "that the file cannot hold, such as surrogate.estimator=NAME; repeatable."
)
@options.with_parts
@options.with_workers
@options.quiet
@options.wide
@options.json_path(help="Write the figures as JSON here.")
def resume(
    path: Path,
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
    from surrokit.compose import regroup
    from surrokit.sessions import resume as go_on

    exact, again = _target_and_parts(target, settings, sizes, one_by_one=one_by_one)
    with verdict_once(quiet=quiet) as observers:
        given = {name: sizes.pop(name) for name in _LIMITS}
        limits: dict[str, Any] = {
            name: None if limit == "none" else limit
            for name, limit in given.items()
            if limit is not None  # else it is as before
        }
        more = {**regroup({**again, **sizes}), "progress": not quiet, "observers": observers}
        run = go_on(path, exact, **limits, **more)
    if not quiet:
        print_run(run, wide=wide)
    if json_path is not None:
        write_json(json_path, run.to_dict())
    if run.stopped == "interrupted":
        sys.exit(INTERRUPTED)


_LIMITS = ("max_calls", "max_seconds", "target_ess", "target_rhat", "target_mcse")


def _target_and_parts(
    target: Any, settings: tuple[str, ...], given: dict[str, Any], *, one_by_one: bool
) -> tuple[Any, dict[str, Any]]:
    """Return a target, and parts whose names are taken from ``given``, as ``sample`` takes them."""
    from surrokit.registry.catalogue import default_catalogue

    parts = parse_settings(settings)
    exact = name_or_target(target, parts.pop("target", {}), one_by_one=one_by_one)
    names = {kind: given.pop(kind) for kind in options.NAMED}
    return exact, specs_of(names, parts, default_catalogue())


def _sample(target: Any, *, quiet: bool, **arguments: Any) -> Run:
    from surrokit.compose import regroup
    from surrokit.compose import sample as draw

    with verdict_once(quiet=quiet) as observers:
        return draw(target, observers=observers, **regroup(arguments))


def _estimate(target: Any, json_path: Path | None, **arguments: Any) -> None:
    from surrokit.compose import regroup
    from surrokit.forecast import estimate

    expected = estimate(target, **regroup(arguments))
    say(expected)
    if json_path is not None:
        write_json(json_path, expected.to_dict())


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
