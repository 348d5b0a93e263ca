"""Experiments: tables and figures that ``surrokit reproduce`` makes again.

An experiment is a frozen part. It names independent pieces of work, its rows, and does one when
asked; what comes of a row is plain data, which is kept on disk. A report and a picture are made
from whatever rows are finished.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import attrs
import numpy as np

from surrokit.errors import TargetError
from surrokit.settings import not_negative_integer

Cell: TypeAlias = str | int | float | None
"""What stands in a table; None where there is nothing."""


@attrs.frozen(kw_only=True)
class Row:
    """One independent piece of work.

    Parameters
    ----------
    name
        Words joined by slashes, from coarse to fine, such as ``gp/3000/2``. ``--only gp`` then
        stands for all rows that begin so.
    settings
        All that its result depends on besides the seed, as plain data. A kept result is used again
        only where these are the same.
    """

    name: str
    settings: Mapping[str, Any]


@attrs.frozen(kw_only=True)
class Conditions:
    """What rows share.

    Parameters
    ----------
    seed
        From which all randomness comes.
    data
        Folder with the files that a user brings.
    """

    seed: int = attrs.field(validator=not_negative_integer)
    data: Path | None = None

    def generator(self, *keys: str | int) -> np.random.Generator:
        """Return a generator that depends on the seed and on these keys, and on nothing else.

        Rows that ask for the same keys get the same numbers, whichever rows run.
        """
        digest = hashlib.sha256(repr(keys).encode("utf-8")).digest()
        words = np.frombuffer(digest, dtype=np.uint32)
        return np.random.default_rng([self.seed, *(int(word) for word in words)])

    def data_file(self, name: str) -> Path:
        """Return the path of a file that the user brings.

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
    """A row that was done.

    Parameters
    ----------
    name, settings
        Those of the row.
    result
        What came of it, as plain data.
    seconds
        How long it took.
    """

    name: str
    settings: Mapping[str, Any]
    result: Mapping[str, Any]
    seconds: float


@attrs.frozen(kw_only=True)
class Printed:
    """A figure that is printed in the original, beside ours.

    Parameters
    ----------
    what
        What it is the figure of.
    printed
        As it is printed there.
    ours
        What was measured here; None where nothing was.
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
        What it shows; may be empty where a report has but one.
    """

    columns: tuple[str, ...]
    lines: tuple[tuple[Cell, ...], ...]
    title: str = ""

    def records(self) -> list[dict[str, Cell]]:
        """Return the lines, each by the titles of its columns."""
        return [dict(zip(self.columns, line, strict=True)) for line in self.lines]


@attrs.frozen(kw_only=True)
class Report:
    """What finished rows say, without a picture.

    Parameters
    ----------
    tables
        At least one, in the order in which they are read.
    printed
        Figures of the original beside ours.
    figures
        Whatever else was computed, as plain data.
    notes
        What a reader must know: sentences.
    """

    tables: tuple[Table, ...]
    printed: tuple[Printed, ...] = ()
    figures: Mapping[str, Any] = attrs.field(factory=dict)
    notes: tuple[str, ...] = ()


class Experiment(Protocol):
    """A table or figure of a paper as a computation.

    Its component says by ``quick`` which settings make it take a minute instead of hours.
    """

    @property
    def name(self) -> str:
        """The name that it is registered under; its files are named so."""

    @property
    def title(self) -> str:
        """What it shows, in one line."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """All settings with their values, as plain data."""

    def rows(self) -> Sequence[Row]:
        """Return all pieces of work, in the order in which they are done."""

    def run(self, row: Row, conditions: Conditions) -> Mapping[str, Any]:
        """Do one piece of work and return plain data.

        What :func:`surrokit.sample` returns after an interrupt is not ``complete``; raise
        KeyboardInterrupt then, since half a chain is no result to keep.

        Raises
        ------
        KeyboardInterrupt
            If the user interrupts; this row is then done again the next time.
        SurrokitError
            If it cannot be done here, for want of a file, a part or a package; the other rows
            are then done without it.
        """

    def report(self, finished: Sequence[Finished]) -> Report:
        """Return what the rows say that are finished, at least one."""

    def draw(self, finished: Sequence[Finished]) -> Any:
        """Return a :class:`matplotlib.figure.Figure` of the rows that are finished, at least one.

        A table without a picture returns None. Matplotlib is imported here and nowhere else;
        pyplot is not needed.
        """
