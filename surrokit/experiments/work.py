"""Running an experiment row by row, with every finished row kept."""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

import attrs

from surrokit.errors import ConfigurationError, NothingReportedError, SurrokitError
from surrokit.experiments.bar import RowBar, row_bar
from surrokit.experiments.contract import Conditions, Experiment, Finished, Report, Row
from surrokit.experiments.kept import KeptRows, fingerprint
from surrokit.experiments.outcome import Reproduction
from surrokit.experiments.report import write_text
from surrokit.output.json import plain, write_json

Failed: TypeAlias = Callable[[str, Exception], None]
"""Called with the name of a row, and the error, not one of surrokit's own, that ended it."""

_MANY = 24
"""Most rows that a message lists by their full names."""


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
    """Do the rows of an experiment that are not kept yet, and write its figures.

    An interrupt (Ctrl-C) keeps the finished rows; the same call goes on from there.

    Parameters
    ----------
    experiment
        Result of ``surrokit.make("experiment", ...)``.
    out
        Folder for ``NAME.json``, for the tables as text in ``NAME.txt``, and for the finished rows
        in ``NAME.rows.jsonl``.
    seed
        Seed of all randomness.
    only
        Names of the rows to do, or their first words; by default all. Other kept rows are reported
        too.
    data
        Folder with the user's data files.
    fresh
        Whether to do kept rows again.
    progress
        Whether to show a progress bar, if output is a terminal.

    Raises
    ------
    ConfigurationError
        If there is no such row, the folder cannot be written to, or no row could be finished.
    """
    conditions = Conditions(seed=seed, data=data)
    work = plan(experiment, out, conditions, only=only, fresh=fresh)
    with row_bar(len(work.asked), work.n_kept(), enabled=progress) as bar:
        bar.experiment(experiment.name)
        outcome = report(work, do_rows(work, conditions, bar))
    if not outcome.finished:
        raise _nothing(experiment, outcome.not_run)
    write_figures(outcome, out)
    return outcome


@attrs.frozen(kw_only=True)
class Work:
    """An experiment, and which of its rows are to be done.

    Parameters
    ----------
    experiment
        The experiment.
    seed
        Seed of all randomness.
    versions
        Package to version.
    rows
        All rows of the experiment.
    asked
        Rows that were asked for.
    marks
        Row to fingerprint.
    kept
        Finished rows on disk.
    fresh
        Whether kept rows are done again.
    """

    experiment: Experiment
    seed: int
    versions: Mapping[str, str]
    rows: tuple[Row, ...]
    asked: tuple[Row, ...]
    marks: Mapping[str, str]
    kept: KeptRows
    fresh: bool

    def finished(self, row: Row) -> Finished | None:
        """Return the kept result of a row, or None."""
        return self.kept.get(self.marks[row.name], row)

    def n_kept(self) -> int:
        """Return the number of rows asked for that need not be done."""
        return 0 if self.fresh else sum(self.finished(row) is not None for row in self.asked)


def plan(
    experiment: Experiment,
    out: Path,
    conditions: Conditions,
    *,
    only: Iterable[str] = (),
    fresh: bool = False,
) -> Work:
    """Plan the work, without doing it; parameters are those of :func:`reproduce`.

    Raises
    ------
    ConfigurationError
        If there is no such row, or the folder cannot be written to.
    """
    rows = tuple(experiment.rows())
    asked = tuple(choose_rows(experiment, only))
    versions = {name: version(name) for name in ("surrokit", "numpy", "scipy")}
    seed = conditions.seed
    marks = {row.name: fingerprint(experiment.name, row, seed, versions) for row in rows}
    return Work(
        experiment=experiment,
        seed=seed,
        versions=versions,
        rows=rows,
        asked=asked,
        marks=marks,
        kept=KeptRows(_make_folder(out) / f"{experiment.name}.rows.jsonl"),
        fresh=fresh,
    )


def do_rows(
    work: Work, conditions: Conditions, bar: RowBar, failed: Failed | None = None
) -> dict[str, str]:
    """Do rows until an interrupt; return row to reason for those that could not be done.

    Parameters
    ----------
    work
        Rows to do.
    conditions
        Conditions that they share.
    bar
        Shows each row.
    failed
        Called with errors that are not surrokit's own, after which the other rows are done all the
        same. None lets such an error through.

    Raises
    ------
    ConfigurationError
        If a row cannot be kept.
    """
    not_run: dict[str, str] = {}
    try:
        if work.fresh:
            work.kept.drop(work.marks[row.name] for row in work.asked)
        for row in work.asked:
            if work.finished(row) is not None:
                continue
            bar.begin(row.name)
            try:
                done = _done(work.experiment, row, conditions)
            except SurrokitError as error:
                not_run[row.name] = str(error)
            except Exception as error:
                if failed is None:
                    raise
                failed(row.name, error)
                not_run[row.name] = f"it ended in {type(error).__name__}: {error}"
            else:
                work.kept.add(work.marks[row.name], done)
            bar.end()
    except KeyboardInterrupt:
        pass  # finished rows are kept, and the report names the rest
    return not_run


def report(work: Work, not_run: Mapping[str, str]) -> Reproduction:
    """Return the outcome of the finished rows.

    Parameters
    ----------
    work
        The rows.
    not_run
        Result of :func:`do_rows`.
    """
    found = {row.name: work.finished(row) for row in work.rows}
    finished = tuple(done for done in found.values() if done is not None)
    return Reproduction(
        name=work.experiment.name,
        title=work.experiment.title,
        settings=work.experiment.settings,
        seed=work.seed,
        versions=work.versions,
        finished=finished,
        asked=tuple(row.name for row in work.asked),
        not_run=not_run,
        left=tuple(name for name in found if found[name] is None and name not in not_run),
        report=work.experiment.report(finished) if finished else Report(tables=()),
        fresh=work.fresh,
    )


def write_figures(outcome: Reproduction, out: Path) -> None:
    """Write ``NAME.json`` and ``NAME.txt`` into a folder.

    Raises
    ------
    ConfigurationError
        If a file cannot be written.
    """
    write_json(out / f"{outcome.name}.json", outcome.to_dict())
    write_text(out / f"{outcome.name}.txt", outcome)


def choose_rows(experiment: Experiment, only: Iterable[str]) -> Sequence[Row]:
    """Return the rows of an experiment that names, or first words of names, select.

    Raises
    ------
    ConfigurationError
        If a name selects no row; the message lists the rows.
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
        listed = f"{len(rows)} in all, such as {rows[0]}; they begin with {', '.join(leading)}"
    else:
        listed = ", ".join(rows)
    return f"{experiment.name} has no row {name!r}; {hint}its rows are: {listed}"


def _make_folder(out: Path) -> Path:
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


def _nothing(experiment: Experiment, not_run: Mapping[str, str]) -> ConfigurationError:
    if not not_run:
        return NothingReportedError(
            f"{experiment.name} was interrupted before any of its rows was finished"
        )
    row, reason = next(iter(not_run.items()))
    return ConfigurationError(f"no row of {experiment.name} could be done; {row}: {reason}")
