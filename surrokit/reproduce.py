"""Running an experiment: row by row, kept as it goes."""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import attrs

from surrokit.errors import ConfigurationError, SurrokitError
from surrokit.experiments import Conditions, Experiment, Finished, Report, Row
from surrokit.json_data import plain, write_json
from surrokit.kept_rows import KeptRows, fingerprint
from surrokit.progress import row_bar

_MANY = 24
"""A message lists so many rows by their full names."""


@attrs.frozen(kw_only=True)
class Reproduction:
    """What came of an experiment.

    Parameters
    ----------
    name, title, settings
        Those of the experiment.
    seed
        The seed.
    versions
        Packages to versions.
    finished
        Its finished rows, kept ones included.
    not_run
        Row to the reason why it could not be done here.
    left
        Rows that are still to be done.
    report
        What the finished rows say.
    """

    name: str
    title: str
    settings: Mapping[str, Any]
    seed: int
    versions: Mapping[str, str]
    finished: tuple[Finished, ...]
    not_run: Mapping[str, str]
    left: tuple[str, ...]
    report: Report

    @property
    def notes(self) -> list[str]:
        """What a reader must know: of the experiment itself, and of rows that are missing."""
        found = list(self.report.notes)
        reasons: dict[str, list[str]] = {}
        for row, reason in self.not_run.items():
            reasons.setdefault(reason, []).append(row)
        for reason, rows in reasons.items():
            found.append(f"not done: {_listed(rows)}; {reason}")
        if self.left:
            found.append(f"still to be done: {_listed(self.left)}; the same command goes on.")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain data for JSON."""
        report = self.report
        tables = [{"title": t.title, "lines": t.records()} for t in report.tables]
        figures = {
            "experiment": self.name,
            "title": self.title,
            "complete": not self.left and not self.not_run,
            "seed": self.seed,
            "settings": self.settings,
            "versions": self.versions,
            "tables": tables,
            "printed": [attrs.asdict(figure) for figure in report.printed],
            "figures": report.figures,
            "notes": self.notes,
            "rows": [attrs.asdict(row) for row in self.finished],
            "not_run": self.not_run,
            "left": self.left,
        }
        made: dict[str, Any] = plain(figures, self.name)
        return made


def reproduce(
    experiment: Experiment,
    out: Path,
    *,
    seed: int = 1,
    only: Iterable[str] = (),
    data: Path | None = None,
    fresh: bool = False,
    progress: bool = True,
) -> Reproduction:
    """Do the rows of an experiment that are not kept yet, and write its figures as JSON.

    An interrupt (Ctrl-C) ends with the rows that are finished; the same call goes on from there.

    Parameters
    ----------
    experiment
        As made by ``surrokit.make("experiment", ...)``.
    out
        Folder for ``NAME.json``, and for the finished rows in ``NAME.rows.jsonl``.
    seed
        From which all randomness comes.
    only
        Names of the rows to do, or their first words; by default all. Kept ones of other names
        are reported as well.
    data
        Folder with the files that a user brings.
    fresh
        Do the rows again, kept or not.
    progress
        Show a progress bar, if output is a terminal.

    Raises
    ------
    ConfigurationError
        If there is no such row, the folder cannot be written to, or no row could be finished.
    """
    chosen = chosen_rows(experiment, only)
    kept = KeptRows(_made_folder(out) / f"{experiment.name}.rows.jsonl")
    versions = {name: version(name) for name in ("surrokit", "numpy", "scipy")}
    marks = {
        row.name: fingerprint(experiment.name, row, seed, versions) for row in experiment.rows()
    }
    if fresh:
        kept.drop(marks[row.name] for row in chosen)
    not_run = _do(experiment, chosen, marks, kept, Conditions(seed=seed, data=data), progress)
    found = {row.name: kept.get(marks[row.name], row) for row in experiment.rows()}
    finished = tuple(done for done in found.values() if done is not None)
    if not finished:
        raise ConfigurationError(_nothing(experiment, not_run))
    outcome = Reproduction(
        name=experiment.name,
        title=experiment.title,
        settings=experiment.settings,
        seed=seed,
        versions=versions,
        finished=finished,
        not_run=not_run,
        left=tuple(name for name in found if found[name] is None and name not in not_run),
        report=experiment.report(finished),
    )
    write_json(out / f"{experiment.name}.json", outcome.to_dict())
    return outcome


def _do(
    experiment: Experiment,
    chosen: Sequence[Row],
    marks: Mapping[str, str],
    kept: KeptRows,
    conditions: Conditions,
    progress: bool,
) -> dict[str, str]:
    """Do the rows that are not kept, until an interrupt; return why some could not be done."""
    wanted = [row for row in chosen if kept.get(marks[row.name], row) is None]
    not_run: dict[str, str] = {}
    try:
        with row_bar(len(wanted), enabled=progress) as tell:
            for row in wanted:
                tell(row.name)
                try:
                    done = _done(experiment, row, conditions)
                except SurrokitError as error:
                    not_run[row.name] = str(error)
                else:
                    kept.add(marks[row.name], done)
    except KeyboardInterrupt:
        pass  # what is finished is kept, and the result says what is left
    return not_run


def chosen_rows(experiment: Experiment, only: Iterable[str]) -> Sequence[Row]:
    """Return the rows of an experiment that names, or their first words, stand for.

    Raises
    ------
    ConfigurationError
        If a name stands for none; the message lists the rows.
    """
    rows = experiment.rows()
    names = list(only)
    for name in names:
        if not any(_stands_for(name, row) for row in rows):
            raise ConfigurationError(_no_such_row(experiment, name, [row.name for row in rows]))
    if not names:
        return rows
    return [row for row in rows if any(_stands_for(name, row) for name in names)]


def _stands_for(name: str, row: Row) -> bool:
    return row.name == name or row.name.startswith(f"{name.rstrip('/')}/")


def _no_such_row(experiment: Experiment, name: str, rows: list[str]) -> str:
    near = difflib.get_close_matches(name, rows, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    if len(rows) > _MANY:
        leading = list(dict.fromkeys(row.partition("/")[0] for row in rows))
        listed = f"{len(rows)}, such as {rows[0]}, and begin with {', '.join(leading)}"
    else:
        listed = ", ".join(rows)
    return f"{experiment.name} has no row {name!r}; {hint}its rows are: {listed}"


def _made_folder(out: Path) -> Path:
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / ".surrokit-was-here"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ConfigurationError(
            f"cannot write to the folder {out}: {error.strerror}; give another with --out"
        ) from error
    return out


def _done(experiment: Experiment, row: Row, conditions: Conditions) -> Finished:
    began = time.perf_counter()
    result = experiment.run(row, conditions)
    seconds = time.perf_counter() - began
    return Finished(
        name=row.name,
        settings=plain(row.settings, row.name),
        result=plain(result, row.name),
        seconds=seconds,
    )


def _nothing(experiment: Experiment, not_run: Mapping[str, str]) -> str:
    if not not_run:
        return f"{experiment.name} was interrupted before any of its rows was finished"
    row, reason = next(iter(not_run.items()))
    return f"no row of {experiment.name} could be done; {row}: {reason}"


def _listed(rows: Sequence[str]) -> str:
    if len(rows) <= 3:
        return ", ".join(rows)
    return f"{rows[0]}, {rows[1]} and {len(rows) - 2} more"
