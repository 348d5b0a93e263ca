"""The frame of all tables and figures: rows of work that are kept, reports, files.

An experiment names independent pieces of work, its rows, and does one when asked. The result of a
row is plain data, kept on disk, so that an interrupted command goes on. The report and the picture
are made from whatever rows are finished.
"""

from __future__ import annotations

import difflib
import hashlib
import io
import json
import textwrap
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import attrs
import numpy as np

from surrokit.arguments import Limits, is_whole, not_negative_integer
from surrokit.errors import ConfigurationError, SurrokitError, TargetError
from surrokit.output.console import plain_table, text_console
from surrokit.output.files import plain, write_json, write_pictures

Cell: TypeAlias = str | int | float | None
"""Content of a cell in a table; None for an empty cell."""

_MANY = 24  # rows that a message lists by their full names
_WIDTH = 100  # characters of a line of notes


# --- rows of work ---


@attrs.frozen
class Row:
    """One independent piece of work.

    Parameters
    ----------
    name
        Words joined by slashes, from coarse to fine, such as ``gp/3000/2``. ``--only gp`` selects
        all rows that begin with ``gp/``.
    settings
        Everything besides the seed that the result depends on, as plain data. A kept result is
        used again only if the settings are the same.
    """

    name: str
    settings: Mapping[str, Any]


@attrs.frozen(kw_only=True)
class Finished:
    """A finished row: name and settings, its result as plain data, the seconds that it took."""

    name: str
    settings: Mapping[str, Any]
    result: Mapping[str, Any]
    seconds: float


@attrs.frozen(kw_only=True)
class Conditions:
    """The seed of all randomness, and the folder with the user's data files."""

    seed: int = attrs.field(validator=not_negative_integer)
    data: Path | None = None

    def generator(self, *keys: str | int) -> np.random.Generator:
        """Return a generator that depends on nothing but the seed and these keys."""
        digest = hashlib.sha256(repr(keys).encode("utf-8")).digest()
        words = np.frombuffer(digest, dtype=np.uint32)
        return np.random.default_rng([self.seed, *(int(word) for word in words)])

    def data_file(self, name: str) -> Path:
        """Return the path of one of the user's data files, as it is or packed as ``.gz``.

        Raises
        ------
        TargetError
            If no folder was given, or the file is not in it.
        """
        if self.data is None:
            raise TargetError(f"this needs the file {name}; give its folder with --data")
        for path in (self.data / f"{name}.gz", self.data / name):
            if path.is_file():
                return path
        raise TargetError(
            f"this needs the file {name}, which is not in {self.data}; put it there, or give "
            "another folder with --data"
        )


# --- reports ---


@attrs.frozen
class Printed:
    """A figure that the paper prints, beside ours, which is None where there is none."""

    what: str
    printed: Cell
    ours: Cell


@attrs.frozen
class Table:
    """Lines under a title, each from titles of columns to cells, the same ones in each line."""

    title: str  # may be empty in a report of one table
    lines: Sequence[Mapping[str, Cell]]


def _tables(given: Mapping[str, Sequence[Mapping[str, Cell]]]) -> list[Table]:
    return [Table(title, lines) for title, lines in given.items() if lines]


def _printed(given: Iterable[tuple[str, Cell, Cell]]) -> list[Printed]:
    return [Printed(*each) for each in given]


@attrs.frozen(kw_only=True)
class Report:
    """Results of finished rows, without a picture: tables that have lines, in reading order."""

    tables: list[Table] = attrs.field(converter=_tables)  # from title to lines
    printed: list[Printed] = attrs.field(default=(), converter=_printed)  # from plain triples
    figures: Mapping[str, Any] = attrs.field(factory=dict)  # all other results, as plain data
    notes: Sequence[str] = ()  # sentences that a reader must know


@attrs.frozen(kw_only=True)
class Experiment(ABC):
    """A table or figure of the paper, whose settings are the fields of its class."""

    name: ClassVar[str]
    """Also of its files."""

    title: ClassVar[str]
    """What it shows, in one line."""

    quick: ClassVar[Mapping[str, Any]]
    """Settings of a small form that takes a minute or two."""

    @property
    def settings(self) -> dict[str, Any]:
        """All settings with their values."""
        return attrs.asdict(self)

    def settings_without(self, *names: str) -> dict[str, Any]:
        """Return all settings but some, which differ from row to row."""
        return {name: value for name, value in self.settings.items() if name not in names}

    @abstractmethod
    def rows(self) -> list[Row]:
        """Return all rows, in the order in which they are done."""

    @abstractmethod
    def run(self, row: Row, conditions: Conditions) -> Mapping[str, Any]:
        """Do one row and return its result as plain data.

        Raises
        ------
        KeyboardInterrupt
            If the user interrupts: half a chain is no result to keep.
        SurrokitError
            If a file or package is missing here; the other rows are done without it.
        """

    @abstractmethod
    def report(self, finished: Sequence[Finished]) -> Report:
        """Return the report of finished rows, at least one."""

    @abstractmethod
    def draw(self, finished: Sequence[Finished]) -> Any:
        """Return a :class:`matplotlib.figure.Figure` of finished rows, at least one."""


def groups(finished: Sequence[Finished], *names: str) -> dict[tuple[Any, ...], list[Finished]]:
    """Return the rows for each combination of some settings, in the order in which they come."""
    found: dict[tuple[Any, ...], list[Finished]] = {}
    for row in finished:
        found.setdefault(tuple(row.settings[name] for name in names), []).append(row)
    return found


# --- settings that are one or several ---


def names_among(value: Any, what: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return one or several of the known names, each once, in the order in which they are known.

    A ConfigurationError, which calls the setting ``what``, says what there is.
    """
    choices = tuple(known)
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not names or not set(names) <= set(choices):
        raise ConfigurationError(
            f"{what} must be one or several of {', '.join(choices)}, got {value!r}"
        )
    return tuple(name for name in choices if name in names)


def sizes(value: Any) -> tuple[int, ...]:
    """Return one size or several as a tuple, in rising order where :data:`several` takes them."""
    found = tuple(value) if isinstance(value, list | tuple) else (value,)
    return tuple(sorted(set(found))) if several.hold(found) else found


several = Limits(
    "a whole number of at least 1, or several as in (10, 20)",
    lambda value: len(value) > 0 and all(is_whole(size, 1) for size in value),
)
"""Takes at least one size."""


# --- work ---


class KeptRows:
    """A file of finished rows, one per line, each with its fingerprint; it is made if need be.

    Rows of different settings, seeds and versions lie side by side; of two with one fingerprint the
    later one counts. A line that was cut short is ignored.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: dict[str, dict[str, Any]] = {}
        path.touch()
        text = path.read_text(encoding="utf-8", errors="replace")
        self._cut = bool(text) and not text.endswith("\n")
        for line in text.splitlines():
            try:
                kept = json.loads(line)
                found = {"result": dict(kept["result"]), "seconds": float(kept["seconds"])}
                self._rows[kept["fingerprint"]] = found
            except (ValueError, KeyError, TypeError):
                continue

    def get(self, mark: str, row: Row) -> Finished | None:
        """Return the finished row of a fingerprint, if it is kept."""
        kept = self._rows.get(mark)
        settings = plain(row.settings)
        return None if kept is None else Finished(name=row.name, settings=settings, **kept)

    def drop(self, marks: Iterable[str]) -> None:
        """Forget the rows of some fingerprints, in the file as well."""
        dropped = {mark for mark in marks if self._rows.pop(mark, None) is not None}
        if dropped:
            lines = self._path.read_text(encoding="utf-8", errors="replace").splitlines()
            left = [line for line in lines if not any(f'"{mark}"' in line for mark in dropped)]
            self._path.write_text("".join(f"{line}\n" for line in left), encoding="utf-8")
            self._cut = False

    def add(self, mark: str, row: Row, result: Mapping[str, Any], seconds: float) -> None:
        """Write the result of a row under its fingerprint at once."""
        kept = {"result": plain(result, row.name), "seconds": seconds}
        record = {"fingerprint": mark, "row": row.name, "settings": plain(row.settings), **kept}
        line = json.dumps(record, allow_nan=False)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(("\n" if self._cut else "") + line + "\n")
        self._cut = False
        self._rows[mark] = kept


def fingerprint(experiment: str, row: Row, seed: int, versions: Mapping[str, str]) -> str:
    """Return a short text that differs whenever the result of a row may differ."""
    facts = [experiment, row.name, plain(row.settings, row.name), seed, dict(versions)]
    text = json.dumps(facts, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def choose_rows(experiment: Experiment, only: Iterable[str]) -> list[Row]:
    """Return the rows that names, or first words of names, select; an error lists the rows."""
    rows, chosen = experiment.rows(), list(only)
    for name in chosen:
        if not any(_selects(name, row) for row in rows):
            raise ConfigurationError(_no_such_row(experiment, name, [row.name for row in rows]))
    return [row for row in rows if not chosen or any(_selects(name, row) for name in chosen)]


def _selects(name: str, row: Row) -> bool:
    return row.name == name or row.name.startswith(f"{name.rstrip('/')}/")


def _no_such_row(experiment: Experiment, name: str, rows: list[str]) -> str:
    near = difflib.get_close_matches(name, rows, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    listed = ", ".join(rows)
    if len(rows) > _MANY:
        leading = dict.fromkeys(row.partition("/")[0] for row in rows)
        listed = f"{len(rows)} in all, such as {rows[0]}; they begin with {', '.join(leading)}"
    return f"{experiment.name} has no row {name!r}; {hint}its rows are: {listed}"


class Work:
    """An experiment, and which of its rows are to be done.

    Parameters
    ----------
    experiment
        The experiment.
    out
        Folder for the finished rows.
    conditions
        Seed and data.
    only
        Names of the rows to do, or their first words; by default all.
    fresh
        Whether to do kept rows again.

    Raises
    ------
    ConfigurationError
        If there is no such row.
    OSError
        If the folder cannot be written to.
    """

    def __init__(
        self,
        experiment: Experiment,
        out: Path,
        conditions: Conditions,
        *,
        only: Iterable[str] = (),
        fresh: bool = False,
    ) -> None:
        self.experiment, self.conditions, self.fresh = experiment, conditions, fresh
        self.rows, self.asked = experiment.rows(), choose_rows(experiment, only)
        self.versions = {name: version(name) for name in ("surrokit", "numpy", "scipy")}
        self._marks = {
            row.name: fingerprint(experiment.name, row, conditions.seed, self.versions)
            for row in self.rows
        }
        out.mkdir(parents=True, exist_ok=True)
        self._kept = KeptRows(out / f"{experiment.name}.rows.jsonl")
        if fresh:
            self._kept.drop(self._marks[row.name] for row in self.asked)

    def finished(self, row: Row) -> Finished | None:
        """Return the kept result of a row, or None."""
        return self._kept.get(self._marks[row.name], row)

    def left(self) -> list[Row]:
        """Return the rows asked for that are still to be done."""
        return [row for row in self.asked if self.finished(row) is None]

    def do(self, row: Row) -> None:
        """Do a row, and keep it; errors are those of :meth:`Experiment.run`."""
        began = time.perf_counter()
        result = self.experiment.run(row, self.conditions)
        self._kept.add(self._marks[row.name], row, result, time.perf_counter() - began)


class Outcome:
    """What came out of an experiment.

    Parameters
    ----------
    work
        Its rows, some of them finished.
    not_run
        Row to the reason why it could not be done here.
    """

    def __init__(self, work: Work, not_run: Mapping[str, str]) -> None:
        found = {row.name: work.finished(row) for row in work.rows}
        self.work, self.not_run = work, not_run
        self.experiment = work.experiment
        self.asked = [row.name for row in work.asked]
        self.finished = [row for row in found.values() if row is not None]
        self.left = [name for name in found if found[name] is None and name not in not_run]
        self.report = work.experiment.report(self.finished) if self.finished else Report(tables={})

    @property
    def interrupted(self) -> bool:
        """Whether any row asked for is still to be done."""
        return not set(self.left).isdisjoint(self.asked)

    @property
    def n_done(self) -> int:
        """Number of rows asked for that are finished."""
        return len(set(self.asked).difference(self.not_run, self.left))

    @property
    def notes(self) -> list[str]:
        """Sentences that a reader must know, about the experiment and about missing rows."""
        found = [*self.report.notes, *not_done(self.not_run)]
        stopped = [row for row in self.left if row in self.asked]
        if stopped:
            found.append(to_be_done(list_names(stopped), fresh=self.work.fresh))
        others = [row for row in self.left if row not in self.asked]
        if others:
            found.append(f"not asked for: {list_names(others)}; without --only all are done.")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data for JSON."""
        figures = {
            "experiment": self.experiment.name,
            "title": self.experiment.title,
            "complete": not self.left and not self.not_run,
            "seed": self.work.conditions.seed,
            "settings": self.experiment.settings,
            "versions": self.work.versions,
            "tables": [attrs.asdict(table) for table in self.report.tables],
            "printed": [attrs.asdict(figure) for figure in self.report.printed],
            "figures": self.report.figures,
            "notes": self.notes,
            "rows": [attrs.asdict(row) for row in self.finished],
            "not_run": self.not_run,
            "left": self.left,
        }
        made: dict[str, Any] = plain(figures, self.experiment.name)
        return made

    def text(self) -> str:
        """Return tables, figures of the paper beside ours, and notes, without terminal codes."""
        file = io.StringIO()
        console = text_console(file)
        console.print(self.experiment.title)
        beside = [
            {"figure": each.what, "in the paper": each.printed, "here": each.ours}
            for each in self.report.printed
        ]
        for table in [*self.report.tables, Table("", beside)]:
            if table.lines:
                console.print()
                if table.title:
                    console.print(f"{table.title}:")
                console.print(as_text(table))
        lines = [line.rstrip() for line in file.getvalue().splitlines()]
        lines += [""] if self.notes else []
        for note in self.notes:
            lines += textwrap.wrap(
                f"Note: {note}",
                _WIDTH,
                subsequent_indent="  ",
                break_long_words=False,
                break_on_hyphens=False,
            )
        return "\n".join(lines) + "\n"

    def write(self, out: Path) -> list[Path]:
        """Write ``NAME.json`` and ``NAME.txt`` into a folder, and return their paths."""
        data, text = (out / f"{self.experiment.name}.{ending}" for ending in ("json", "txt"))
        write_json(data, self.to_dict())
        text.write_text(self.text(), encoding="utf-8")
        return [data, text]

    def draw(self, out: Path) -> list[Path]:
        """Draw ``NAME.png`` and ``NAME.svg`` into a folder, and return their paths."""
        return write_pictures(self.experiment.draw(self.finished), out / self.experiment.name)


def as_text(table: Table) -> Any:
    """Return a table as rich prints it, with numbers of four digits."""
    first, *others = table.lines[0]
    made = plain_table([first], others)
    for line in table.lines:
        made.add_row(*map(_cell, line.values()))
    return made


def _cell(value: Cell) -> str:
    if value is None or value != value:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def not_done(reasons: Mapping[str, str]) -> list[str]:
    """Return a note for each reason why something could not be done, with all that it kept."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        by_reason.setdefault(reason, []).append(name)
    return [f"not done: {list_names(names)}; {reason}" for reason, names in by_reason.items()]


def to_be_done(names: str, *, fresh: bool) -> str:
    """Return the note on what an interrupt left."""
    how = " without --fresh" if fresh else ""
    return f"still to be done: {names}; the same command{how} goes on."


def list_names(names: Sequence[str]) -> str:
    """Return names in one line; of more than three, the first two and a count of the others."""
    if len(names) <= 3:
        return ", ".join(names)
    return f"{names[0]}, {names[1]} and {len(names) - 2} more"


def do_rows(
    work: Work,
    begin: Callable[[Row], None] = lambda _: None,
    failed: Callable[[Row, Exception], str] | None = None,
) -> dict[str, str]:
    """Do rows that are left until an interrupt; return row to reason for those that cannot be done.

    ``begin`` is called with each row before it is done, and ``failed`` with a row and an error, not
    one of surrokit's own, that ended it; it returns the reason in words. Without it such an error
    is raised.
    """
    not_run = {}
    try:
        for row in work.left():
            begin(row)
            try:
                work.do(row)
            except SurrokitError as error:
                not_run[row.name] = str(error)
            except Exception as error:
                if failed is None:
                    raise
                not_run[row.name] = failed(row, error)
    except KeyboardInterrupt:
        pass  # finished rows are kept, and the notes name the rest
    return not_run


def reproduce(
    experiment: Experiment,
    out: Path,
    *,
    seed: int = 1,
    only: Iterable[str] = (),
    data: Path | None = None,
    fresh: bool = False,
) -> Outcome:
    """Do the rows of an experiment that are not kept yet.

    An interrupt (Ctrl-C) keeps the finished rows; the same call goes on from there.

    Parameters
    ----------
    experiment
        Such as ``Figure1(repeats=3)``.
    out
        Folder for ``NAME.rows.jsonl``; methods of the outcome write the other files.
    seed
        Seed of all randomness.
    only
        Names of the rows to do, or their first words; by default all. Other kept rows are reported
        too.
    data
        Folder with the user's data files.
    fresh
        Whether to do kept rows again.

    Raises
    ------
    ConfigurationError
        If there is no such row.
    OSError
        If the folder cannot be written to.
    """
    work = Work(experiment, out, Conditions(seed=seed, data=data), only=only, fresh=fresh)
    return Outcome(work, do_rows(work))
