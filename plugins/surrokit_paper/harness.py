"""The frame of all tables and figures: rows of work that are kept, reports, files.

An experiment names independent pieces of work, its rows, and does one when asked. The result of a
row is plain data, kept on disk, so that an interrupted command goes on. The report and the picture
are made from whatever rows are finished.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import io
import json
import textwrap
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
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


@attrs.frozen
class Row:
    """One independent piece of work.

    Its name has words joined by slashes, from coarse to fine, such as ``gp/3000/2``; ``--only gp``
    selects all rows that begin with ``gp/``. Settings are everything besides the seed that the
    result depends on, as plain data: a kept result is used again only if they are the same.
    """

    name: str
    settings: Mapping[str, Any]


@attrs.frozen(kw_only=True)
class Finished(Row):
    """A finished row: its result as plain data, and the seconds that it took."""

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


def _with_lines(tables: Mapping[str, Any]) -> dict[str, Any]:
    return {title: lines for title, lines in tables.items() if lines}


@attrs.frozen(kw_only=True)
class Report:
    """Results of finished rows, without a picture.

    ``tables`` go from titles to lines, each from titles of columns to cells; those without lines
    are left out. ``printed`` are figures that the paper prints: what it is, in the paper, and here.
    ``figures`` are all other results, as plain data, and ``notes`` sentences for the reader.
    """

    tables: Mapping[str, Sequence[Mapping[str, Cell]]] = attrs.field(converter=_with_lines)
    printed: Sequence[tuple[str, Cell, Cell]] = ()
    figures: Mapping[str, Any] = attrs.field(factory=dict)
    notes: Sequence[str] = ()


@attrs.frozen(kw_only=True)
class Experiment(ABC):
    """A table or figure of the paper, whose settings are the fields of its class."""

    name: ClassVar[str]
    """Also of its files."""

    title: ClassVar[str]
    """What it shows, in one line."""

    quick: ClassVar[Mapping[str, Any]]
    """Settings of a small form that takes a minute or two."""

    def settings_without(self, *names: str) -> dict[str, Any]:
        """Return all settings but some, which differ from row to row."""
        return {name: value for name, value in attrs.asdict(self).items() if name not in names}

    @abstractmethod
    def rows(self) -> list[Row]:
        """Return all rows, in the order in which they are done."""

    @abstractmethod
    def run(self, row: Row, conditions: Conditions) -> Mapping[str, Any]:
        """Do one row and return its result as plain data.

        It raises KeyboardInterrupt if the user interrupts, as half a chain is no result to keep,
        and a SurrokitError if a file or package is missing here.
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


def names_field(what: str, known: Iterable[str]) -> Any:
    """Return a field that takes one or several of the known names, by default all."""
    choices = tuple(known)

    def chosen(value: Any) -> tuple[str, ...]:
        names = (value,) if isinstance(value, str) else value
        if not isinstance(names, list | tuple) or not names or not set(names) <= set(choices):
            raise ConfigurationError(
                f"{what} must be one or several of {', '.join(choices)}, got {value!r}"
            )
        return tuple(name for name in choices if name in names)

    return attrs.field(default=choices, converter=chosen)


_several = Limits(
    "a whole number of at least 1, or several as in (10, 20)",
    lambda value: len(value) > 0 and all(is_whole(size, 1) for size in value),
)


def _sizes(value: Any) -> tuple[int, ...]:
    found = tuple(value) if isinstance(value, list | tuple) else (value,)
    return tuple(sorted(set(found))) if _several.hold(found) else found


def sizes_field(*default: int) -> Any:
    """Return a field that takes one size or several, in rising order."""
    return attrs.field(default=default, converter=_sizes, validator=_several)


def choose_rows(experiment: Experiment, only: Iterable[str]) -> list[Row]:
    """Return the rows that names, or first words of names, select; an error lists the rows."""
    rows, chosen = experiment.rows(), set()
    for name in only:
        start = f"{name.rstrip('/')}/"
        found = {row.name for row in rows if row.name == name or row.name.startswith(start)}
        if not found:
            names = [row.name for row in rows]
            listed = ", ".join(names)
            if len(rows) > 24:
                leading = dict.fromkeys(each.partition("/")[0] for each in names)
                listed = f"{len(rows)} in all, such as {names[0]}; they begin with "
                listed += ", ".join(leading)
            raise ConfigurationError(
                f"{experiment.name} has no row {name!r}; {hint(name, names)}its rows are: {listed}"
            )
        chosen |= found
    return [row for row in rows if not chosen or row.name in chosen]


def hint(word: str, words: Iterable[str]) -> str:
    """Return a question about the nearest of some words, with a blank; nothing if none is near."""
    near = difflib.get_close_matches(word, list(words), n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}? " if near else ""


def fingerprint(experiment: str, row: Row, seed: int, versions: Mapping[str, str]) -> str:
    """Return a short text that differs whenever the result of a row may differ."""
    facts = [experiment, row.name, plain(row.settings, row.name), seed, dict(versions)]
    text = json.dumps(facts, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


class Work:
    """An experiment, which of its rows are to be done, and what came out of them.

    Finished rows are kept in a file, one per line, each with its fingerprint; rows of different
    settings, seeds and versions lie side by side. Of two with one fingerprint the later one counts,
    and a line that was cut short is ignored. Parameters and errors are those of :func:`reproduce`.
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
        self.rows = experiment.rows()
        self.asked = [row.name for row in choose_rows(experiment, only)]
        self.versions = {name: version(name) for name in ("surrokit", "numpy", "scipy")}
        self.not_run: dict[str, str] = {}
        """Row to the reason why it could not be done here."""
        self._marks = {
            row.name: fingerprint(experiment.name, row, conditions.seed, self.versions)
            for row in self.rows
        }
        out.mkdir(parents=True, exist_ok=True)
        self._path = out / f"{experiment.name}.rows.jsonl"
        self._kept: dict[str, dict[str, Any]] = {}
        self._read([self._marks[name] for name in self.asked] if fresh else [])

    def _read(self, dropped: Sequence[str]) -> None:
        """Read the kept rows; those of some fingerprints are dropped, in the file as well."""
        self._path.touch()
        text = self._path.read_text(encoding="utf-8", errors="replace")
        lines = [li for li in text.splitlines() if not any(f'"{mark}"' in li for mark in dropped)]
        kept = "".join(f"{line}\n" for line in lines)
        if kept != text:
            self._path.write_text(kept, encoding="utf-8")
        for line in lines:
            try:
                row = json.loads(line)
                found = {"result": dict(row["result"]), "seconds": float(row["seconds"])}
                self._kept[row["fingerprint"]] = found
            except (ValueError, KeyError, TypeError):
                continue

    def do(
        self,
        begin: Callable[[Row], None] = lambda _: None,
        failed: Callable[[Row, Exception], str] | None = None,
    ) -> None:
        """Do the rows that are asked for and not kept, until an interrupt.

        ``begin`` is called with each row before it is done, and ``failed`` with a row and an error,
        not one of surrokit's own, that ended it; it returns the reason in words. Without it such an
        error is raised.
        """
        with contextlib.suppress(KeyboardInterrupt):  # finished rows are kept
            for row in self.rows:
                if row.name not in self.waiting:
                    continue
                begin(row)
                began = time.perf_counter()
                try:
                    result = self.experiment.run(row, self.conditions)
                    self._keep(row, result, time.perf_counter() - began)
                except SurrokitError as error:
                    self.not_run[row.name] = str(error)
                except Exception as error:
                    if failed is None:
                        raise
                    self.not_run[row.name] = failed(row, error)

    def _keep(self, row: Row, result: Mapping[str, Any], seconds: float) -> None:
        mark, kept = self._marks[row.name], {"result": plain(result, row.name), "seconds": seconds}
        record = {"fingerprint": mark, "row": row.name, "settings": plain(row.settings), **kept}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record, allow_nan=False) + "\n")
        self._kept[mark] = kept

    @property
    def finished(self) -> list[Finished]:
        """Finished rows, whether asked for or not, in order."""
        return [
            Finished(name=row.name, settings=plain(row.settings), **self._kept[mark])
            for row in self.rows
            if (mark := self._marks[row.name]) in self._kept
        ]

    @property
    def left(self) -> list[str]:
        """Names of rows that are not finished, and that nothing keeps from being done."""
        marks = self._marks.items()
        return [name for name, mark in marks if mark not in self._kept and name not in self.not_run]

    @property
    def waiting(self) -> list[str]:
        """Those of them that are asked for: after an interrupt there are some."""
        return [name for name in self.left if name in self.asked]

    @property
    def n_done(self) -> int:
        """Number of rows asked for that are finished."""
        return len(set(self.asked).difference(self.not_run, self.left))

    @cached_property
    def report(self) -> Report:
        """The report of the rows that are finished when it is first asked for."""
        return self.experiment.report(self.finished) if self.finished else Report(tables={})

    @property
    def notes(self) -> list[str]:
        """Sentences that a reader must know, about the experiment and about missing rows."""
        found = [*self.report.notes, *not_done(self.not_run)]
        if self.waiting:
            found.append(to_be_done(list_names(self.waiting), fresh=self.fresh))
        others = [name for name in self.left if name not in self.asked]
        if others:
            found.append(f"not asked for: {list_names(others)}; without --only all are done.")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data for JSON."""
        report = self.report
        figures = {
            "experiment": self.experiment.name,
            "title": self.experiment.title,
            "complete": not self.left and not self.not_run,
            "seed": self.conditions.seed,
            "settings": attrs.asdict(self.experiment),
            "versions": self.versions,
            "tables": [{"title": title, "lines": lines} for title, lines in report.tables.items()],
            "printed": [
                dict(zip(("what", "printed", "ours"), each, strict=True)) for each in report.printed
            ],
            "figures": report.figures,
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
        titles = ("figure", "in the paper", "here")
        beside = [dict(zip(titles, each, strict=True)) for each in self.report.printed]
        for title, lines in [*self.report.tables.items(), ("", beside)]:
            if lines:
                console.print(*([f"\n{title}:"] if title else [""]))
                table = plain_table([next(iter(lines[0]))], list(lines[0])[1:])
                for line in lines:
                    table.add_row(*map(_cell, line.values()))
                console.print(table)
        text = [line.rstrip() for line in file.getvalue().splitlines()]
        text += [""] if self.notes else []
        wrapped = textwrap.TextWrapper(
            100, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
        for note in self.notes:
            text += wrapped.wrap(f"Note: {note}")
        return "\n".join(text) + "\n"

    def write(self, out: Path) -> list[Path]:
        """Write ``NAME.json`` and ``NAME.txt`` into a folder, and return their paths."""
        data, text = (out / f"{self.experiment.name}.{ending}" for ending in ("json", "txt"))
        write_json(data, self.to_dict())
        text.write_text(self.text(), encoding="utf-8")
        return [data, text]

    def draw(self, out: Path) -> list[Path]:
        """Draw ``NAME.png`` and ``NAME.svg`` into a folder, and return their paths."""
        return write_pictures(self.experiment.draw(self.finished), out / self.experiment.name)


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


def reproduce(
    experiment: Experiment,
    out: Path,
    *,
    seed: int = 1,
    only: Iterable[str] = (),
    data: Path | None = None,
    fresh: bool = False,
) -> Work:
    """Do the rows of an experiment, such as ``Figure1(repeats=3)``, that are not kept yet.

    An interrupt (Ctrl-C) keeps the finished rows; the same call goes on from there.

    Parameters
    ----------
    out
        Folder for the finished rows.
    only
        Names of the rows to do, or their first words; by default all.
    fresh
        Whether to do kept rows again.
    seed, data
        Seed of all randomness, and the folder with the user's data files.

    Raises
    ------
    ConfigurationError
        If there is no such row.
    OSError
        If the folder cannot be written to.
    """
    work = Work(experiment, out, Conditions(seed=seed, data=data), only=only, fresh=fresh)
    work.do()
    return work
