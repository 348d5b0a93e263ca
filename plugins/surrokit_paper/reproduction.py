"""Several tables and figures in turn: which, with which settings, and what is printed of each."""

from __future__ import annotations

import ast
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from surrokit.errors import ConfigurationError, SurrokitError
from surrokit.output.console import plain_table, say, terminal
from surrokit.registry.components import settings_of
from surrokit_paper.figure_1 import Figure1
from surrokit_paper.figure_2 import Figure2
from surrokit_paper.figure_3 import Figure3
from surrokit_paper.figure_4 import Figure4, Figure5
from surrokit_paper.figure_6 import Figure6
from surrokit_paper.figure_7 import Figure7
from surrokit_paper.figure_8 import Figure8
from surrokit_paper.harness import Experiment, Row, Work, hint, not_done, to_be_done
from surrokit_paper.table_1 import Table1

EXPERIMENTS: Mapping[str, type[Experiment]] = {
    cls.name: cls
    for cls in (Figure1, Figure2, Figure3, Figure4, Figure5, Figure6, Figure7, Figure8, Table1)
}
"""By name, in the order in which ``all`` does them."""


def choose(only: Iterable[str]) -> dict[str, list[str]]:
    """Return experiment to names of its chosen rows, in order; no name means all rows.

    ``only`` has experiments, or rows of one such as ``figure-7/simulated``, or nothing for all.
    """
    chosen: dict[str, list[str]] = {}
    for item in only:
        name, _, row = item.partition("/")
        if name not in EXPERIMENTS:
            raise ConfigurationError(
                f"there is no experiment {name!r}; {hint(name, EXPERIMENTS)}--only takes one of "
                f"{', '.join(EXPERIMENTS)}, or rows of one such as figure-1/ROW"
            )
        chosen.setdefault(name, []).append(row)
    if not chosen:
        return {name: [] for name in EXPERIMENTS}
    return {
        name: [] if "" in chosen[name] else chosen[name] for name in EXPERIMENTS if name in chosen
    }


def make(
    classes: Mapping[str, type[Experiment]], settings: Iterable[str], *, quick: bool = False
) -> dict[str, Experiment]:
    """Make experiments, each with those of the items ``setting=value`` that it has.

    A value that is no Python literal is text. Settings win over small sizes.
    """
    given: dict[str, Any] = {}
    for item in settings:
        setting, equals, value = item.partition("=")
        if not (equals and setting.isidentifier()):
            raise ConfigurationError(
                f"--set takes setting=value, got {item!r}; for example n_points=100"
            )
        try:
            given[setting] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            given[setting] = value
    known = {name: [field.name for field in attrs.fields(cls)] for name, cls in classes.items()}
    everywhere = sorted({setting for own in known.values() for setting in own})
    for setting in given:
        if setting not in everywhere:
            raise ConfigurationError(
                f"none of {', '.join(classes)} has a setting {setting!r}; "
                f"{hint(setting, everywhere)}settings are: {', '.join(everywhere)}"
            )
    made = {}
    for name, cls in classes.items():
        own = {setting: value for setting, value in given.items() if setting in known[name]}
        try:
            made[name] = cls(**{**(cls.quick if quick else {}), **own})
        except ConfigurationError as error:
            raise ConfigurationError(f"{name}: {error}") from error
    return made


def check_folders(data: Path | None, json_path: Path | None) -> None:
    """Raise a ConfigurationError where a folder is missing, before hours are spent."""
    if data is not None and not data.is_dir():
        raise ConfigurationError(
            f"there is no folder {data}; give the one that holds your data files with --data, or "
            "with the environment variable SURROKIT_DATA"
        )
    if json_path is not None and not json_path.parent.is_dir():
        raise ConfigurationError(f"cannot write {json_path}: there is no folder {json_path.parent}")


def list_settings(classes: Iterable[type[Experiment]]) -> None:
    """Print the settings of experiments, with their defaults and small sizes."""
    for cls in classes:
        table = plain_table(("setting", "default", "quick", "what it is"))
        for each in settings_of(cls).values():
            small = cls.quick.get(each.name, "")
            table.add_row(each.name, str(each.default), str(small), each.help.replace("`", ""))
        say(cls.title)
        terminal().print(table)


class Series:
    """Does experiments one after the other, and prints and writes each at its end into a folder."""

    def __init__(self, works: Sequence[Work], out: Path) -> None:
        self._works, self._out = works, out
        self._left = sum(len(work.waiting) for work in works)
        self._reported: dict[str, Work] = {}
        self._failures: dict[str, str] = {}
        self._waiting: list[str] = []

    def do(self) -> None:
        """Do all of them, until an interrupt."""
        names = [work.experiment.name for work in self._works]
        for i, work in enumerate(self._works):
            try:
                interrupted = self._do(names[i], work)
            except KeyboardInterrupt:
                interrupted = True
            except Exception as error:
                self._failed(names[i], error)
                interrupted = False
            if interrupted:
                self._waiting = names[i:]
                return

    def _do(self, name: str, work: Work) -> bool:
        """Do an experiment, print and write it; return whether it was interrupted."""

        def begin(row: Row) -> None:
            if sys.stderr.isatty():
                say(f"{name} {row.name} ({self._left} rows to go)", err=True)
            self._left -= 1

        work.do(begin, lambda row, error: self._failed(f"{name}/{row.name}", error))
        text = work.text()  # a report that breaks is no outcome
        self._reported[name] = work
        if work.finished:
            say(text, nl=False)
            say(f"figures written to {' and '.join(map(str, work.write(self._out)))}")
            try:
                say(f"picture written to {' and '.join(map(str, work.draw(self._out)))}")
            except ModuleNotFoundError as error:
                if (error.name or "").partition(".")[0] != "matplotlib":
                    raise
                say(
                    "Note: Matplotlib is needed to draw pictures and is not installed; run python "
                    "-m pip install 'surrokit[figures]'"
                )
            say()
        return bool(work.waiting)

    def _failed(self, what: str, error: Exception) -> str:
        """Show an unexpected error, and return it in a line."""
        if isinstance(error, SurrokitError | OSError):
            reason = shown = str(error)
        else:
            reason = f"it ended in {type(error).__name__}: {error}"
            shown = f"{reason}\n{''.join(traceback.format_exception(error))}"
        say(f"Error in {what}: {shown}", err=True)
        self._failures[what] = reason
        return reason

    @property
    def notes(self) -> list[str]:
        """Sentences on what could not be done and why, and on what is still to be done."""
        reasons = dict(self._failures)
        for name, work in self._reported.items():
            for row, reason in work.not_run.items():
                reasons.setdefault(f"{name}/{row}", reason)
        found = not_done(reasons)
        if self._waiting:
            fresh = any(work.fresh for work in self._works)
            found.append(to_be_done(", ".join(self._waiting), fresh=fresh))
        return found

    @property
    def status(self) -> int:
        """Exit status: 0 if some row is done and nothing failed unexpectedly, as with make -k."""
        if self._waiting:
            return 130  # the shell's exit status after Ctrl-C
        done = any(work.n_done for work in self._reported.values())
        return 0 if done and not self._failures else 1

    def summarize(self, *, together: bool) -> None:
        """Print how far each experiment is, and the notes; the text of a single one has these."""
        if not together and any(work.finished for work in self._reported.values()):
            return
        table = plain_table(["experiment"], ("rows done", "of", "minutes"))
        for name, work in self._reported.items():
            minutes = sum(row.seconds for row in work.finished) / 60
            table.add_row(name, str(work.n_done), str(len(work.asked)), f"{minutes:.1f}")
        terminal().print(table)
        for note in self.notes:
            say(f"Note: {note}")

    def to_dict(self) -> dict[str, Any]:
        """Return all outcomes as plain data for JSON."""
        return {
            "experiments": {name: each.to_dict() for name, each in self._reported.items()},
            "failures": self._failures,
            "waiting": self._waiting,
            "notes": self.notes,
        }
