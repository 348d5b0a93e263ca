"""Runs as their files tell of them, for the command line."""

from __future__ import annotations

import time
from pathlib import Path

from surrokit.cli.report import print_run
from surrokit.errors import LedgerError
from surrokit.ledger.reader import Ledger
from surrokit.ledger.salvage import salvage
from surrokit.output.console import say
from surrokit.sessions import open_run
from surrokit.studies.description import waits_for

SECONDS = 2.0
"""Between two looks at a run that is followed."""


def show_run(path: Path, *, follow: bool = False, wide: bool = False) -> None:
    """Print the summary, the costs and the verdict of a run so far.

    Parameters
    ----------
    path
        Its file.
    follow
        Whether to print them again until the run ends.
    wide
        Whether all columns of the summary are printed.

    Raises
    ------
    LedgerError
        If the file cannot be read.
    """
    seen = -1
    while True:
        with Ledger(path) as ledger:
            account, progress = ledger.account or {}, ledger.progress
            waits = waits_for(ledger)
        if waits is not None:
            say(f"{path}: {waits}")
            _print_run(path, wide=wide)
            return
        state, iteration = account.get("state", "starting"), account.get("iteration", 0)
        goes_on = state in ("starting", "running")
        said = progress if goes_on else None
        if iteration != seen or not goes_on:
            _print(path, state, iteration, said, wide=wide)
        elif said is not None:
            say(said)
        if not (follow and goes_on):
            return
        seen = iteration
        time.sleep(SECONDS)


def _print(path: Path, state: str, iteration: int, progress: str | None, *, wide: bool) -> None:
    say(f"{path}: {state}, {iteration} iterations")
    if progress is not None:
        say(progress)
    _print_run(path, wide=wide, silent=progress is not None, ended=state == "ended")


def _print_run(path: Path, *, wide: bool, silent: bool = False, ended: bool = False) -> None:
    try:
        run = open_run(path)
    except LedgerError as error:
        if not silent:
            say(str(error))
        return
    if len(run.kept) > 1:
        print_run(run, wide=wide)
    else:
        paid = ", ".join(f"{n} {kind}" for kind, n in run.calls.items() if n)
        say(f"no draws{'' if ended else ' yet'}; exact calls: {paid or 'none'}")
        if ended:
            say(str(run.verdict))


def salvage_to(path: Path, new: Path) -> None:
    """Write what can be read of a damaged file to a new one, and say how much it was.

    Raises
    ------
    LedgerError
        If nothing can be read, or the new file exists.
    """
    told = salvage(path, new)
    say(
        f"{new}: {told.replayable} events from which the run can be resumed, {told.apart} later "
        f"ones that serve a new run as warm start; at {told.lost} places nothing could be read"
    )


def export_table(path: Path, table: Path) -> None:
    """Write all evaluations of a file as a table.

    Raises
    ------
    LedgerError
        If the file cannot be read.
    ConfigurationError
        If the ending of the table's name is unknown.
    """
    with Ledger(path) as ledger:
        ledger.export(table)
        say(f"{len(ledger)} evaluations saved to {table}")
