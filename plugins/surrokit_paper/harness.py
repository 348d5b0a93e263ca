"""The frame of all tables and figures: cases that are done once, kept, reported and drawn.

A figure is a grid of cases, a function that does one, a report of those that are done, and a
picture. A case, and what came out of it, are plain data: finished cases are kept in a file, a line
each, so that an interrupted command goes on.
"""

from __future__ import annotations

import hashlib
import io
import json
import sys
import textwrap
import traceback
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import attrs
import numpy as np

from surrokit.arguments import not_negative_integer
from surrokit.errors import ConfigurationError, SurrokitError, TargetError
from surrokit.output.console import plain_table, say, text_console
from surrokit.output.files import plain, write_json, write_pictures
from surrokit.types import FloatArray

Cell: TypeAlias = str | int | float | None
"""Content of a cell in a table; None for an empty cell."""

Case: TypeAlias = dict[str, str | int]
"""What sets a case apart, from coarse to fine; its values, joined by slashes, are its name."""

Row: TypeAlias = dict[str, Any]
"""A finished case and its result, as plain data in one mapping."""


@attrs.frozen(kw_only=True)
class Conditions:
    """The seed of all randomness, and the folder with the user's data files."""

    seed: int = attrs.field(default=1, validator=not_negative_integer)
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


@attrs.frozen(kw_only=True)
class Report:
    """What finished cases say, without a picture.

    ``tables`` go from titles to lines, each from titles of columns to cells; those without lines
    are not shown. ``printed`` are figures that the paper prints: what it is, in the paper, and
    here. ``notes`` are sentences for the reader.
    """

    tables: Mapping[str, Sequence[Mapping[str, Cell]]]
    printed: Sequence[tuple[str, Cell, Cell]] = ()
    notes: Sequence[str] = ()


@attrs.frozen(kw_only=True)
class Figure(ABC):
    """A table or figure of the paper, whose settings are the fields of its class."""

    name: ClassVar[str]
    """Also of its files."""

    title: ClassVar[str]
    """What it shows, in one line."""

    quick: ClassVar[Mapping[str, Any]]
    """Settings of a small form that takes a minute or two."""

    grid: ClassVar[tuple[str, ...]] = ("repeats",)
    """Settings that only say which cases there are; a case's result depends on all others."""

    @abstractmethod
    def cases(self) -> list[Case]:
        """Return all cases, in the order in which they are done."""

    @abstractmethod
    def run(self, case: Case, conditions: Conditions) -> Mapping[str, Any]:
        """Do a case and return its result as plain data.

        It raises KeyboardInterrupt if the user interrupts, as half a chain is no result to keep,
        and a SurrokitError if a file or package is missing here.
        """

    @abstractmethod
    def report(self, rows: Sequence[Row]) -> Report:
        """Return the report of finished cases, at least one."""

    @abstractmethod
    def draw(self, rows: Sequence[Row]) -> Any:
        """Return a :class:`matplotlib.figure.Figure` of finished cases, at least one."""

    def mark(self, name: str, seed: int) -> str:
        """Return a short text that differs whenever the result of a case may differ."""
        settings = attrs.asdict(self, filter=lambda field, _: field.name not in self.grid)
        facts = [self.name, name, plain(settings), seed, _versions()]
        return hashlib.sha256(json.dumps(facts).encode("utf-8")).hexdigest()[:16]


def _versions() -> dict[str, str]:
    return {name: version(name) for name in ("surrokit", "numpy", "scipy")}


def groups(rows: Sequence[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """Return the rows for each combination of what sets them apart, in order."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return found


def over_repeats(rows: Sequence[Row], name: str, low: float = 0.1) -> dict[str, float] | None:
    """Return a ``low`` quantile, the median and a ``high`` quantile of a number over rows.

    By default 80 % lie between. None where no row knows it.
    """
    known = [row[name] for row in rows if row.get(name) is not None]
    if not known:
        return None
    found = np.quantile(known, [low, 0.5, 1 - low]).tolist()
    return dict(zip(("low", "median", "high"), found, strict=True))


def median(rows: Sequence[Row], name: str) -> float | None:
    """Return the median of a number over the rows that know it."""
    found = over_repeats(rows, name)
    return None if found is None else found["median"]


def array(numbers: Any) -> FloatArray:
    """Return numbers of a row as an array; None becomes NaN."""
    return np.array(numbers, dtype=np.float64)


@attrs.frozen(kw_only=True)
class Outcome:
    """Finished cases of a figure, whether asked for or not, and what became of the others."""

    figure: Figure
    seed: int
    rows: list[Row]
    reasons: Mapping[str, str]  # case to why it could not be done
    waiting: list[str]  # cases that an interrupt left
    others: list[str]  # cases that were not asked for
    broken: bool  # was there an unexpected error?

    def report(self) -> Report:
        """Return what the figure reports, and notes on what is missing."""
        found = self.figure.report(self.rows) if self.rows else Report(tables={})
        by_reason: dict[str, list[str]] = {}
        for name, reason in self.reasons.items():
            by_reason.setdefault(reason, []).append(name)
        missing = [f"not done: {_listed(names)}; {why}" for why, names in by_reason.items()]
        if self.waiting:
            missing.append(f"still to be done: {_listed(self.waiting)}; the same command goes on.")
        if self.others:
            missing.append(f"not asked for: {_listed(self.others)}.")
        page = (
            f"what is run, and what differs from the paper: docs/experiments/{self.figure.name}.md."
        )
        return attrs.evolve(found, notes=(*found.notes, *missing, page))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data for JSON."""
        report = self.report()
        made: dict[str, Any] = plain(
            {
                "figure": self.figure.name,
                "title": self.figure.title,
                "complete": not (self.reasons or self.waiting or self.others),
                "seed": self.seed,
                "settings": attrs.asdict(self.figure),
                "versions": _versions(),
                **attrs.asdict(report),
                "rows": self.rows,
            },
            self.figure.name,
        )
        return made

    def text(self) -> str:
        """Return tables, figures of the paper beside ours, and notes, without terminal codes."""
        report, file = self.report(), io.StringIO()
        console = text_console(file)
        console.print(self.figure.title)
        titles = ("figure", "in the paper", "here")
        beside = [dict(zip(titles, each, strict=True)) for each in report.printed]
        for title, lines in [*report.tables.items(), ("", beside)]:
            if lines:
                console.print(f"\n{title}:" if title else "")
                table = plain_table([next(iter(lines[0]))], list(lines[0])[1:])
                for line in lines:
                    table.add_row(*map(_cell, line.values()))
                console.print(table)
        text = [line.rstrip() for line in file.getvalue().splitlines()]
        text += [""] if report.notes else []
        wrapped = textwrap.TextWrapper(
            100, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
        for note in report.notes:
            text += wrapped.wrap(f"Note: {note}")
        return "\n".join(text) + "\n"

    def write(self, out: Path) -> list[Path]:
        """Write ``NAME.txt``, ``NAME.json`` and, with Matplotlib, pictures into a folder."""
        stem = out / self.figure.name
        data, text = (stem.with_name(f"{stem.name}.{ending}") for ending in ("json", "txt"))
        write_json(data, self.to_dict())
        text.write_text(self.text(), encoding="utf-8")
        try:
            return [text, data, *write_pictures(self.figure.draw(self.rows), stem)]
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "matplotlib":
                raise
            say("Note: pictures need Matplotlib; run python -m pip install 'surrokit[figures]'")
            return [text, data]


def _cell(value: Cell) -> str:
    if value is None or value != value:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _listed(names: Sequence[str]) -> str:
    if len(names) <= 3:
        return ", ".join(names)
    return f"{names[0]}, {names[1]} and {len(names) - 2} more"


def chosen(figure: Figure, only: Iterable[str]) -> dict[str, Case]:
    """Return the cases, by name, that names or first words of names select; "" selects all.

    Raises
    ------
    ConfigurationError
        If a name selects nothing.
    """
    cases = {"/".join(map(str, case.values())): case for case in figure.cases()}
    wanted: set[str] = set()
    for start in only:
        found = {name for name in cases if not start or f"{name}/".startswith(f"{start}/")}
        if not found:
            first = dict.fromkeys(name.partition("/")[0] for name in cases)
            raise ConfigurationError(
                f"{figure.name} has no case {start!r}; its cases are such as {next(iter(cases))}, "
                f"and begin with {', '.join(first)}"
            )
        wanted |= found
    return {name: case for name, case in cases.items() if name in wanted}


def reproduce(
    figure: Figure,
    out: Path,
    conditions: Conditions,
    only: Iterable[str] = ("",),
) -> Outcome:
    """Do the cases of a figure, such as ``Figure1(n_refits=3)``, that are not kept yet.

    An interrupt (Ctrl-C) keeps the finished cases; the same call goes on from there. What lacks a
    file or package is left out, and so is a case that ends in an unexpected error, which is shown.

    Parameters
    ----------
    out
        Folder for the finished cases.
    only
        Names of the cases to do, or their first words; by default all.

    Raises
    ------
    ConfigurationError
        If there is no such case, or the folder cannot be written to.
    """
    asked = chosen(figure, only)
    marks = {name: figure.mark(name, conditions.seed) for name in chosen(figure, [""])}
    path = out / f"{figure.name}.rows.jsonl"
    try:
        out.mkdir(parents=True, exist_ok=True)
        path.touch()
    except OSError as error:
        raise ConfigurationError(f"{error}; give another folder with --out") from error
    kept, reasons, broken = _read(path), dict[str, str](), False
    try:
        for name, case in asked.items():
            if marks[name] in kept:
                continue
            if sys.stderr.isatty():
                say(f"{figure.name}/{name}", err=True)
            try:
                row = plain({**case, **figure.run(case, conditions)}, name)
            except SurrokitError as error:
                reasons[name] = str(error)
                continue
            except Exception as error:
                reasons[name] = f"it ended in {type(error).__name__}: {error}"
                say(f"Error in {figure.name}/{name}: {traceback.format_exc()}", err=True)
                broken = True
                continue
            kept[marks[name]] = row
            with path.open("a", encoding="utf-8") as file:
                # a line that was cut short ends here
                file.write("\n" + json.dumps({"mark": marks[name], "row": row}, allow_nan=False))
    except KeyboardInterrupt:
        pass
    left = [name for name, mark in marks.items() if mark not in kept and name not in reasons]
    return Outcome(
        figure=figure,
        seed=conditions.seed,
        rows=[kept[mark] for mark in marks.values() if mark in kept],
        reasons=reasons,
        waiting=[name for name in left if name in asked],
        others=[name for name in left if name not in asked],
        broken=broken,
    )


def _read(path: Path) -> dict[str, Row]:
    kept = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            record = json.loads(line)
            kept[record["mark"]] = dict(record["row"])
        except (ValueError, KeyError, TypeError):
            continue
    return kept
