"""What commands show and write of runs: ``show``, ``report``, ``watch``, and what others use."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from types import SimpleNamespace
from typing import TYPE_CHECKING

import click

from surrokit.cli.options import FILE, file, number, wide
from surrokit.errors import LedgerError, SamplingWarning, SurrokitError
from surrokit.output.console import plain_table, say, terminal

if TYPE_CHECKING:
    from surrokit.result.run import Run
    from surrokit.sessions import Watch

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
    from surrokit.modes import describe_searches
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
@wide
def show(path: Path, follow: bool, wide: bool) -> None:
    """Show a run so far, from the FILE that it writes."""
    from surrokit.ledger.reader import Ledger
    from surrokit.sessions import Watch
    from surrokit.studies.study import waits_for

    seen = -1
    while True:
        with Ledger(path) as ledger:
            waits = waits_for(ledger)
        if waits is not None:
            say(f"{path}: {waits}")
            _print_file(path, wide=wide)
            return
        watch = Watch.of(path)
        said = watch.note if watch.goes_on else None
        changed = watch.iteration != seen or not watch.goes_on
        if changed:
            say(f"{path}: {watch.state}, {watch.iteration} iterations")
        if said is not None:
            say(said)
        if changed:
            ended = watch.state == "ended"
            _print_file(path, wide=wide, silent=said is not None, ended=ended)
        if not (follow and watch.goes_on):
            return
        seen = watch.iteration
        sleep(SECONDS)


def _print_file(path: Path, *, wide: bool, silent: bool = False, ended: bool = False) -> None:
    from surrokit.report.words import calls
    from surrokit.sessions import open_run

    try:
        run = open_run(path)
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


out_page = file(
    "--out",
    metavar="PAGE",
    help="Write the page here.  [default: beside FILE, with the ending .html]",
)


@click.command("report")
@click.argument("path", metavar="FILE", type=FILE)
@out_page
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
    from surrokit.report.page import check_report, write_report
    from surrokit.sessions import Watch

    page = path.with_suffix(".html") if out is None else out
    check_report(page)
    run, note = _look_at(path, Watch.of(path))
    write_report(run, page, interval=interval, note=note)
    say(f"report written to {page}")


@click.command(short_help="Write a page about a run again and again while it goes on.")
@click.argument("path", metavar="FILE", type=FILE)
@out_page
@click.option(
    "--every",
    type=click.FloatRange(min=0.1),
    default=5.0,
    show_default=True,
    help="Wait so many seconds between two looks at FILE, at least.",
)
def watch(path: Path, out: Path | None, every: float) -> None:
    """Write a page about the run in FILE, again and again until the run ends.

    A browser that shows the page reads it anew by itself. FILE may come later, and the run is not
    touched.
    """
    from surrokit.output.files import replacing
    from surrokit.report.page import check_report

    page = path.with_suffix(".html") if out is None else out
    check_report(page)
    if hasattr(os, "nice"):
        os.nice(10)  # the run comes first
    say(f"open {page.absolute().as_uri()}; end with Ctrl-C")
    seen: object = None
    try:
        while True:
            begun = time.monotonic()
            text, state, ended = _page_now(path, max(round(every), 1), seen)
            if text is not None:
                with replacing(page) as file:  # a browser may read it
                    file.write_text(text, encoding="utf-8")
            if ended:
                return
            seen = state
            # no more than a tenth of the time is spent on pages
            sleep(max(every, 9.0 * (time.monotonic() - begun)))
    except KeyboardInterrupt:
        say("ended; the run goes on")


def _page_now(path: Path, refresh: int, seen: object) -> tuple[str | None, object, bool]:
    """Return a page, None where nothing is new; what it is of; and whether the run has ended."""
    from surrokit.report.page import page_of, waiting_page
    from surrokit.sessions import Watch

    try:
        state = Watch.of(path)
        if state == seen:
            return None, seen, False
        if state.state == "starting":
            waits = state.note or "No iteration is written yet."
            return waiting_page(waits, refresh), state, False
        run, note = _look_at(path, state)
    except SurrokitError as error:
        return waiting_page(str(error), refresh), None, False
    if note is None:
        return page_of(run), state, True
    again = f"This page is read again every {refresh} seconds."
    return page_of(run, refresh=refresh, note=f"{note} {again}"), state, False


def _look_at(path: Path, watch: Watch) -> tuple[Run, str | None]:
    """Return a run as far as its file is written, and the note on a page about one that goes on."""
    import attrs

    from surrokit.result.records import Verdict
    from surrokit.sessions import open_run

    run = open_run(path)
    if not watch.goes_on:
        return run, None
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(watch.written))
    doing = "" if watch.note is None else f" Its last note: {watch.note}."
    note = (
        f"The run goes on, or was killed: {watch.iteration} iterations are done, and its file "
        f"was last written at {when}.{doing}"
    )
    # that it was interrupted is not known
    findings = tuple(each for each in run.verdict if each.name != "stopped")
    return attrs.evolve(run, verdict=Verdict(findings)), note
