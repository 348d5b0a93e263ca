"""What commands write of a run: draws and pages; ``report`` and ``watch``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surrokit.errors import ConfigurationError
from surrokit.output.console import say

if TYPE_CHECKING:
    from surrokit.result.run import Run

Callback = Callable[..., Any]


def _with_known_ending(_: click.Context, __: click.Parameter, path: Path | None) -> Path | None:
    from surrokit.output.saving import check_ending

    try:
        if path is not None:
            check_ending(path)
    except ConfigurationError as error:
        raise click.BadParameter(str(error)) from error
    return path


def with_outputs(command: Callback) -> Callback:
    """Give a command the options ``--out`` and ``--report``."""
    out = click.option(
        "--out",
        type=click.Path(path_type=Path),
        callback=_with_known_ending,
        help="Save the draws here: as netCDF (.nc), or a table (.csv, .parquet).",
    )
    report = click.option(
        "--report",
        type=click.Path(path_type=Path),
        metavar="PAGE",
        help="Write a page about the run here (.html): verdict, pictures and cost.",
    )
    return out(report(command))


def check_outputs(out: Path | None, report: Path | None) -> None:
    """Check, before a long run, that draws and page can be written.

    Parameters
    ----------
    out, report
        Files; None for none.

    Raises
    ------
    ConfigurationError
        If an ending is unknown, or there is no such folder.
    MissingDependencyError
        If a library that is needed is not installed.
    """
    from surrokit.output.saving import check_can_save

    if out is not None:
        check_can_save(out)
    if report is not None:
        from surrokit.report.page import check_report

        check_report(report)


def write_outputs(run: Run, out: Path | None, report: Path | None, *, quiet: bool) -> None:
    """Write draws and page of a run, and say where.

    Parameters
    ----------
    run
        The run.
    out, report
        Files; None for none.
    quiet
        Whether to say nothing.
    """
    said = []
    if out is not None:
        run.save(out)
        said.append(f"draws saved to {out}")
    if report is not None:
        run.report(report)
        said.append(f"report written to {report}")
    for line in () if quiet else said:
        say(line)


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="PAGE",
    help="Write the page here.  [default: beside FILE, with the ending .html]",
)
@click.option(
    "--interval",
    type=float,
    default=0.9,
    show_default=True,
    help="Show highest-density intervals of this probability.",
)
def report(file: Path, out: Path | None, interval: float) -> None:
    """Write a page about the run in FILE, which may be going on.

    The page is one file: verdict, posterior, what tells whether it is to be trusted, and cost.
    """
    from surrokit.live import look_at
    from surrokit.report.page import check_report, write_report

    page = file.with_suffix(".html") if out is None else out
    check_report(page)
    run, note = look_at(file)
    write_report(run, page, interval=interval, note=note)
    say(f"report written to {page}")


@click.command(short_help="Serve a page about a run while it goes on.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--port", type=int, default=0, help="Listen at this port.  [default: a free one]")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Listen at this address of the machine; 0.0.0.0 is all of them.",
)
@click.option(
    "--every",
    type=click.FloatRange(min=0.1),
    default=5.0,
    show_default=True,
    help="Wait so many seconds between two looks at FILE, at least.",
)
def watch(file: Path, port: int, host: str, every: float) -> None:
    """Serve a page about the run in FILE, while it goes on, until Ctrl-C.

    Nobody but this machine can ask for it, unless --host is given: then whoever has the address
    that is printed, which has a token in it, may read the page. The run is not touched.
    """
    import os

    from surrokit.live import Server, Watched
    from surrokit.plots.panel import drawing

    with drawing():  # Matplotlib is needed
        pass
    if hasattr(os, "nice"):
        os.nice(10)  # the run comes first
    with Server(Watched(file, every), port, host) as server:
        say(f"look at {server.url}; end with Ctrl-C")
        if server.token is not None:
            say("whoever has this address may read the page; it is sent without encryption")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            say("ended; the run goes on")


PAGES = (report, watch)
"""Commands of this file."""
