"""What commands show and write of runs: ``show``, ``report``, ``watch``, and what others use."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import click

from surrokit.cli.options import FILE, file, number, wide
from surrokit.errors import LedgerError, SamplingWarning
from surrokit.modes import describe_searches
from surrokit.output.console import plain_table, say, terminal

if TYPE_CHECKING:
    from surrokit.result.run import Run

SECONDS = 2.0  #: Between two looks at a run that is followed.

_COLUMNS = {
    "mean": "mean",
    "mcse": "error",
    "sd": "sd",
    "q05": "5 %",
    "q50": "50 %",
    "q95": "95 %",
    "ess": "ESS",
    "ess_bulk": "of means",
    "rhat": "R-hat",
}


def print_run(run: Run, baseline: Run | None = None, *, wide: bool = False) -> None:
    """Print the summary, the costs and the verdict of a run, and of any baseline the costs.

    All columns of the summary are printed if ``wide``, else those that fit 80 characters.
    """
    from surrokit.report.words import costs

    console = terminal()
    if run.choice is not None:
        console.print(f"Picked: {run.choice}", soft_wrap=True)
        console.print()
    summary = run.summary(wide=wide)
    left_out = "mcse" if run.exact else "ess_bulk"
    titles = {name: title for name, title in _COLUMNS.items() if name != left_out}
    if wide:
        titles = {name: titles.get(name, name) for name in summary.columns}
    console.print(summary.table(titles, "parameter"), soft_wrap=True)
    console.print()
    runs = [run] if baseline is None else [run, baseline]
    columns = [*map(costs, runs)]
    table = plain_table(["cost"], ("this run", "plain HMC")[: len(runs)])
    for title, told in columns[0].items():
        if told is not None:
            table.add_row(title, *(column[title] or "-" for column in columns))
    console.print(table)
    for finding in run.verdict:
        if finding.warns:
            console.print(f"Warning: {finding.message}.", style="yellow", soft_wrap=True)
        else:
            console.print(f"Note: {finding.message}.")
    console.print(describe_searches(run.adaptation.searches), soft_wrap=True)
    for finding in () if baseline is None else baseline.verdict.warnings:
        message = f"Warning, of plain HMC: {finding.message}."
        console.print(message, style="yellow", soft_wrap=True)


@contextmanager
def verdict_once(*, quiet: bool) -> Iterator[list[object]]:
    """Yield observers of a run, by which its verdict comes with its table and not as warnings too.

    What is warned of before the run has ended is shown at once. If ``quiet``, there is no table, so
    that the verdict is warned of.
    """

    def keep_back(**_: object) -> None:
        warnings.simplefilter("ignore", SamplingWarning)

    with warnings.catch_warnings():
        yield [] if quiet else [SimpleNamespace(surrokit_run_finished=keep_back)]


# --- runs as their files tell of them ---


@click.command()
@click.argument("path", metavar="FILE", type=FILE)
@click.option("--follow", is_flag=True, help="Show the run anew every few seconds, until it ends.")
@click.option("--run", type=int, help="Show the run of this number, not the last one.")
@wide
def show(path: Path, follow: bool, run: int | None, wide: bool) -> None:
    """Show a run so far, from the FILE that it writes."""
    from surrokit.ledger.reader import Ledger
    from surrokit.sessions import Watch
    from surrokit.studies.description import waits_for

    seen = -1
    while True:
        with Ledger(path, run) as ledger:
            waits = waits_for(ledger)
        if waits is not None:
            say(f"{path}: {waits}")
            _print_file(path, run, wide=wide)
            return
        watch = Watch.of(path, run)
        said = watch.note if watch.goes_on else None
        changed = watch.iteration != seen or not watch.goes_on
        if changed:
            say(f"{path}: {watch.state}, {watch.iteration} iterations")
        if said is not None:
            say(said)
        if changed:
            ended = watch.state == "ended"
            _print_file(path, run, wide=wide, silent=said is not None, ended=ended)
        if not (follow and watch.goes_on):
            return
        seen = watch.iteration
        time.sleep(SECONDS)


def _print_file(
    path: Path, number: int | None, *, wide: bool, silent: bool = False, ended: bool = False
) -> None:
    from surrokit.report.words import calls
    from surrokit.sessions import open_run

    try:
        run = open_run(path, number)
    except LedgerError as error:
        if not silent:
            say(error)
        return
    if len(run.kept) > 1:
        print_run(run, wide=wide)
        return
    say(f"no draws{'' if ended else ' yet'}; exact calls: {calls(run)}")
    if ended:
        say(run.verdict)


@click.command("report")
@click.argument("path", metavar="FILE", type=FILE)
@file(
    "--out",
    metavar="PAGE",
    help="Write the page here.  [default: beside FILE, with the ending .html]",
)
@number(
    "--interval",
    default=0.9,
    show_default=True,
    help="Show highest-density intervals of this probability.",
)
def report(path: Path, out: Path | None, interval: float) -> None:
    """Write a page about the run in FILE, which may be going on.

    The page is one file: verdict, posterior, what tells whether it is to be trusted, and cost.
    """
    from surrokit.live import look_at
    from surrokit.report.page import check_report, write_report
    from surrokit.sessions import Watch

    page = path.with_suffix(".html") if out is None else out
    check_report(page)
    run, note = look_at(path, Watch.of(path))
    write_report(run, page, interval=interval, note=note)
    say(f"report written to {page}")


@click.command(short_help="Serve a page about a run while it goes on.")
@click.argument("path", metavar="FILE", type=FILE)
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
def watch(path: Path, port: int, host: str, every: float) -> None:
    """Serve a page about the run in FILE, while it goes on, until Ctrl-C.

    Nobody but this machine can ask for it, unless --host is given: then whoever has the address
    that is printed, which has a token in it, may read the page. The run is not touched.
    """
    from surrokit.live import Server, Watched
    from surrokit.plots.panel import drawing

    with drawing():  # Matplotlib is needed
        pass
    if hasattr(os, "nice"):
        os.nice(10)  # the run comes first
    with Server(Watched(path, every), port, host) as server:
        say(f"look at {server.url}; end with Ctrl-C")
        if server.token is not None:
            say("whoever has this address may read the page; it is sent without encryption")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            say("ended; the run goes on")
