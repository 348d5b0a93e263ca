"""What commands show and write of runs: ``show``, ``report``, and what others use."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import attrs
import click

from surrokit.cli.options import FILE, file, wide
from surrokit.errors import LedgerError, SamplingWarning
from surrokit.output.console import plain_table, say, terminal

if TYPE_CHECKING:
    from surrokit.result.run import Run

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
    for title, reported in columns[0].items():
        if reported is not None:
            table.add_row(title, *(column[title] or "-" for column in columns))
    console.print(table)
    for line in map(str, run.verdict) if wide else str(run.verdict).splitlines():
        warns = line.startswith("Warning")
        console.print(line, style="yellow" if warns else None, soft_wrap=warns)
    for line in run.describe_modes():
        console.print(line, soft_wrap=True)
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
@wide
def show(path: Path, wide: bool) -> None:
    """Show a run so far, from the FILE that it writes."""
    from surrokit.ledger.reader import Ledger
    from surrokit.report.words import calls
    from surrokit.sessions import Watch, open_run
    from surrokit.studies.study import waits_for

    with Ledger(path) as ledger:
        waits = waits_for(ledger)
    watch = Watch.of(path)
    say(f"{path}: {waits or f'{watch.state}, {watch.iteration} iterations'}")
    if waits is None and watch.goes_on and watch.note is not None:
        say(watch.note)
    try:
        found = open_run(path)
    except LedgerError as error:
        say(error)
        return
    if len(found.kept) > 1:
        print_run(found, wide=wide)
    elif watch.goes_on:
        say(f"no draws yet; exact calls: {calls(found)}")
    else:
        say(f"no draws; exact calls: {calls(found)}")
        say(found.verdict)


@click.command("report")
@click.argument("path", metavar="FILE", type=FILE)
@file(
    "--out",
    metavar="PAGE",
    help="Write the page here.  [default: beside FILE, with the ending .html]",
)
def report(path: Path, out: Path | None) -> None:
    """Write a page about the run in FILE, which may be going on.

    The page is one file: verdict, posterior, diagnostics, and cost.
    """
    from surrokit.report.page import check_report, write_report
    from surrokit.result.records import Verdict
    from surrokit.sessions import Watch, open_run

    page = path.with_suffix(".html") if out is None else out
    check_report(page)
    watch, run, note = Watch.of(path), open_run(path), None
    if watch.goes_on:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(watch.written))
        doing = "" if watch.note is None else f" Its last note: {watch.note}."
        note = (
            f"The run goes on, or was killed: {watch.iteration} iterations are done, and its file "
            f"was last written at {when}.{doing}"
        )
        # that it was interrupted is not known
        findings = tuple(each for each in run.verdict if each.name != "stopped")
        run = attrs.evolve(run, verdict=Verdict(findings))
    write_report(run, page, note=note)
    say(f"report written to {page}")
