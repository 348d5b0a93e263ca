"""Rows of a target, spread over a crew of workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import attrs

from surrokit.errors import ConfigurationError
from surrokit.executors.outstanding import Key, key_of
from surrokit.executors.reply import Reply
from surrokit.model.model import Model, change_model
from surrokit.model.outcome import Outcome
from surrokit.model.source import EachRow, Source, one_after_another, row_by_row
from surrokit.potentials import Potential
from surrokit.types import FloatArray


class Crew(Protocol):
    """Workers, all of whom have one target."""

    @property
    def closed(self) -> bool:
        """Whether they have gone."""
        ...

    def take(self, source: Source) -> None:
        """Give the target to the workers.

        Raises
        ------
        ConfigurationError
            If that cannot be done.
        """
        ...

    def evaluate(self, what: str, rows: FloatArray) -> Sequence[Reply]:
        """Return the reply for each row, in the order of the rows.

        Raises
        ------
        WorkerError
            If there are no workers any more.
        """
        ...

    def begin(self, what: str, row: FloatArray) -> None:
        """Evaluate a row that may be asked for later."""
        ...

    def withdraw(self, key: Key) -> bool:
        """Take back a row that was begun, unless a worker has it; return whether it is no more."""
        ...

    def has_reply(self, key: Key) -> bool:
        """Return whether a row that was begun is done."""
        ...

    @property
    def unfinished(self) -> int:
        """Rows that were begun and are not done."""
        ...

    def close(self) -> None:
        """Let them go; calls in progress are given up."""
        ...


class OnlyBegun(Exception):  # noqa: N818 (it is no failure)
    """Says that rows were begun and not evaluated."""


class Spread:
    """Evaluates rows of a target by a crew, and in this process once the crew has gone.

    A copy, or what is made of it by pickle, goes without a crew.

    Parameters
    ----------
    crew
        The crew, which has the target.

    Attributes
    ----------
    begun : list of Key or None
        While it is a list, rows are begun and not evaluated, and their keys are added to it.
    """

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self.begun: list[Key] | None = None

    def __call__(self, source: Source, what: str, rows: FloatArray) -> Outcome:
        """Evaluate a source at rows, as :func:`surrokit.model.source.one_after_another` does.

        Raises
        ------
        OnlyBegun
            While rows are begun and not evaluated.
        """
        if self.begun is not None:
            for row in rows:
                self._crew.begin(what, row)
                self.begun.append(key_of(what, row))
            raise OnlyBegun
        if self._crew.closed:
            return one_after_another(source, what, rows)
        replies = iter(self._crew.evaluate(what, rows))
        return row_by_row(lambda _: next(replies).unpack(source), rows)

    def __reduce__(self) -> tuple[Callable[[], EachRow], tuple[()]]:
        """Return what stands for it elsewhere."""
        return _alone, ()


def _alone() -> EachRow:
    return one_after_another


def spread(target: Potential, each_row: Spread, crew: Crew) -> Potential:
    """Return a target whose rows a crew evaluates.

    All that surrounds the model stays in this process: only the user's functions go to the workers,
    one position at a time.

    Parameters
    ----------
    target
        The target.
    each_row
        Evaluates rows by the crew.
    crew
        The workers, who are given the functions.

    Raises
    ------
    ConfigurationError
        If the model takes rows together, or workers cannot have it.
    """

    def among_workers(model: Model) -> Model:
        if model.each_row is None:
            raise ConfigurationError(
                f"the target ({type(target).__name__}) evaluates rows of positions together, and "
                "may give other last digits if they are parted among workers; pass "
                "surrokit.one_by_one(target) to have positions evaluated one by one, or leave "
                "executor and workers out"
            )
        crew.take(model.source)
        return attrs.evolve(model, each_row=each_row)

    return change_model(target, among_workers)
