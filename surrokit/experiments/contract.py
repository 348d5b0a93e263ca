"""Experiments: tables and figures that ``surrokit reproduce`` makes again.

An experiment is a frozen part. It names independent pieces of work, its rows, and does one when
asked. The result of a row is plain data, kept on disk. A report and a picture are made from the
finished rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

import attrs
import numpy as np

from surrokit.errors import TargetError
from surrokit.settings import not_negative_integer

Cell: TypeAlias = str | int | float | None
"""Content of a cell in a table; None for an empty cell."""

_Item = TypeVar("_Item")


@attrs.frozen(kw_only=True)
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
class Conditions:
    """Conditions that all rows share.

    Parameters
    ----------
    seed
        Seed of all randomness.
    data
        Folder with the user's data files.
    """

    seed: int = attrs.field(validator=not_negative_integer)
    data: Path | None = None

    def generator(self, *keys: str | int) -> np.random.Generator:
        """Return a generator that depends on nothing but the seed and these keys.

        Rows that ask for the same keys get the same numbers, whichever rows run.
        """
        digest = hashlib.sha256(repr(keys).encode("utf-8")).digest()
        words = np.frombuffer(digest, dtype=np.uint32)
        return np.random.default_rng([self.seed, *(int(word) for word in words)])

    def data_file(self, name: str) -> Path:
        """Return the path of one of the user's data files.

        Raises
        ------
        TargetError
            If no folder was given, or the file is not in it.
        """
        if self.data is None:
            raise TargetError(f"this needs the file {name}; give its folder with --data")
        path = self.data / name
        if not path.is_file():
            raise TargetError(
                f"this needs the file {name}, which is not in {self.data}; put it there, or give "
                "another folder with --data"
            )
        return path


@attrs.frozen(kw_only=True)
class Finished:
    """A finished row.

    Parameters
    ----------
    name, settings
        Name and settings of the row.
    result
        Result of the row, as plain data.
    seconds
        Time that the row took.
    """

    name: str
    settings: Mapping[str, Any]
    result: Mapping[str, Any]
    seconds: float


@attrs.frozen(kw_only=True)
class Printed:
    """A figure that the original prints, beside ours.

    Parameters
    ----------
    what
        Description of the figure.
    printed
        Figure in the original.
    ours
        Figure measured here; None if there is none.
    """

    what: str
    printed: Cell
    ours: Cell


@attrs.frozen(kw_only=True)
class Table:
    """Lines of cells under titles.

    Parameters
    ----------
    columns
        Titles.
    lines
        One cell for each column.
    title
        What the table shows; may be empty in a report of one table.
    """

    columns: tuple[str, ...]
    lines: tuple[tuple[Cell, ...], ...]
    title: str = ""

    @classmethod
    def of(
        cls, items: Iterable[_Item], columns: Mapping[str, Callable[[_Item], Cell]], title: str = ""
    ) -> Table:
        """Return a table with a line for each item.

        Parameters
        ----------
        items
            What the lines are about.
        columns
            Title of each column to the function that returns an item's cell.
        title
            What the table shows.
        """
        lines = tuple(tuple(cell(item) for cell in columns.values()) for item in items)
        return cls(columns=tuple(columns), lines=lines, title=title)

    def records(self) -> list[dict[str, Cell]]:
        """Return each line as a dictionary from column title to cell."""
        return [dict(zip(self.columns, line, strict=True)) for line in self.lines]


@attrs.frozen(kw_only=True)
class Report:
    """Results of finished rows, without a picture.

    Parameters
    ----------
    tables
        At least one table, in reading order.
    printed
        Figures of the original beside ours.
    figures
        All other results, as plain data.
    notes
        Sentences that a reader must know.
    """

    tables: tuple[Table, ...]
    printed: tuple[Printed, ...] = ()
    figures: Mapping[str, Any] = attrs.field(factory=dict)
    notes: tuple[str, ...] = ()


class Experiment(Protocol):
    """A table or figure of a paper as a computation.

    The ``quick`` settings of its component make it take a minute instead of hours.
    """

    @property
    def name(self) -> str:
        """Registered name, also of its files."""

    @property
    def title(self) -> str:
        """What it shows, in one line."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """All settings with their values, as plain data."""

    def rows(self) -> Sequence[Row]:
        """Return all rows, in the order in which they are done."""

    def run(self, row: Row, conditions: Conditions) -> Mapping[str, Any]:
        """Do one row and return its result as plain data.

        A run of :func:`surrokit.sample` that was interrupted is not ``complete``. Raise
        KeyboardInterrupt then, since half a chain is no result to keep.

        Raises
        ------
        KeyboardInterrupt
            If the user interrupts; the next command does this row again.
        SurrokitError
            If a file, a part or a package is missing here; the other rows are done without it.
        """

    def report(self, finished: Sequence[Finished]) -> Report:
        """Return the report of finished rows, at least one."""

    def draw(self, finished: Sequence[Finished]) -> Any:
        """Return a :class:`matplotlib.figure.Figure` of finished rows, at least one.

        A table without a picture returns None. Matplotlib is imported here and nowhere else;
        pyplot is not needed.
        """
