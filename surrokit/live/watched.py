"""The page about a run as its file tells, made again when there is more in it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from threading import Lock

import attrs

from surrokit.errors import SurrokitError
from surrokit.ledger.reader import Ledger
from surrokit.report.page import page_of, waiting_page
from surrokit.result.records import Verdict
from surrokit.result.run import Run
from surrokit.sessions import open_run

PART = 0.1
"""Part of the time that is spent on pages at most, however many readers there are."""

RUNNING = "running"


@attrs.frozen
class _Account:
    """How far a run is, by its file."""

    state: str
    iteration: int
    written: float
    progress: str | None = None

    @property
    def goes_on(self) -> bool:
        return self.state in ("starting", RUNNING)


class Watched:
    """A run that is watched; any number of readers share one page.

    Reading has no effect on the run, which another process may write, kill or resume meanwhile.

    Parameters
    ----------
    path
        The file of the run.
    every
        Seconds between two pages at least. Where pages take longer than a tenth of that to make,
        they are made more rarely.
    """

    def __init__(self, path: str | os.PathLike[str], every: float) -> None:
        self.path, self.every = Path(path).absolute(), every
        self._lock = Lock()
        self._page, self._of = "", _Account("", -1, 0.0)
        self._next = 0.0

    def page(self) -> str:
        """Return the page about the run as it is, or was a moment ago."""
        with self._lock:
            now = time.monotonic()
            if now >= self._next:
                self._look(now)
            return self._page

    def _look(self, begun: float) -> None:
        try:
            account = _read(self.path)
            if account != self._of or not self._page:
                self._page, self._of = self._write(account), account
        except SurrokitError as error:
            self._page, self._of = waiting_page(str(error), self._refresh), _Account("", -1, 0.0)
        ended = time.monotonic()
        self._next = ended + max(self.every, (ended - begun) * (1.0 / PART - 1.0))

    @property
    def _refresh(self) -> int:
        return max(round(self.every), 1)

    def _write(self, account: _Account) -> str:
        if account.state == "starting":
            what = account.progress or "No iteration is written yet."
            return waiting_page(what, self._refresh)
        run, note = _open(self.path, account)
        if note is None:
            return page_of(run)
        again = f"This page is read again every {self._refresh} seconds."
        return page_of(run, refresh=self._refresh, note=f"{note} {again}")


def look_at(path: str | os.PathLike[str]) -> tuple[Run, str | None]:
    """Return a run as far as it is written, and what a page says of one that goes on.

    Parameters
    ----------
    path
        The file of the run.

    Raises
    ------
    LedgerError
        If the file cannot be read, or nothing is written yet.
    """
    return _open(Path(path), _read(Path(path)))


def _read(path: Path) -> _Account:
    with Ledger(path) as ledger:
        account, progress = ledger.account or {}, ledger.progress
    files = [path, path.with_name(f"{path.name}-wal")]
    written = max(each.stat().st_mtime for each in files if each.exists())
    state, iteration = account.get("state", "starting"), account.get("iteration", 0)
    return _Account(state, iteration, written, progress)


def _open(path: Path, account: _Account) -> tuple[Run, str | None]:
    run = open_run(path)
    if not account.goes_on:
        return run, None
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(account.written))
    doing = "" if account.progress is None else f" Its last note: {account.progress}."
    note = (
        f"The run goes on, or was killed: {account.iteration} iterations are done, and its file "
        f"was last written at {when}.{doing}"
    )
    # that it was interrupted is not known
    findings = tuple(each for each in run.verdict if each.name != "stopped")
    return attrs.evolve(run, verdict=Verdict(findings)), note
