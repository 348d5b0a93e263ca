"""Rows of a target, spread over a pool of workers, and positions that these evaluate ahead."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np

from surrokit.errors import ConfigurationError
from surrokit.executors.pools import Key, WorkerPool, key_of
from surrokit.model.model import Model, change_model
from surrokit.model.outcome import Outcome
from surrokit.model.source import EachRow, Source, one_after_another, row_by_row
from surrokit.potentials import Potential
from surrokit.types import FloatArray


class _OnlyBegun(Exception):  # noqa: N818 (it is no failure)
    """Rows were begun and not evaluated."""


class Spread:
    """Evaluates rows of a target by a pool, and in this process once its workers have gone.

    A copy, or what is made of it by pickle, goes without workers.

    Attributes
    ----------
    begun : list of Key or None
        While it is a list, rows are begun and not evaluated, and their keys are added to it.
    """

    def __init__(self, pool: WorkerPool) -> None:
        self._pool = pool
        self.begun: list[Key] | None = None

    def __call__(self, source: Source, what: str, rows: FloatArray) -> Outcome:
        """Evaluate a source at rows, as :func:`surrokit.model.source.one_after_another` does."""
        if self.begun is not None:
            for row in rows:
                self._pool.begin(what, row)
                self.begun.append(key_of(what, row))
            raise _OnlyBegun
        if self._pool.closed:
            return one_after_another(source, what, rows)
        replies = iter(self._pool.evaluate(what, rows))
        return row_by_row(lambda _: next(replies).unpack(source), rows)

    def __reduce__(self) -> tuple[Callable[[], EachRow], tuple[()]]:
        return _alone, ()


def _alone() -> EachRow:
    return one_after_another


def spread(target: Potential, each_row: Spread, pool: WorkerPool) -> Potential:
    """Return a target whose rows a pool evaluates, by way of ``each_row``.

    All that surrounds the model stays in this process: only the user's functions go to the workers,
    one position at a time.

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
                "compute out"
            )
        pool.take(model.source)
        return attrs.evolve(model, each_row=each_row)

    return change_model(target, among_workers)


@attrs.define(eq=False)
class _Begun:
    position: FloatArray
    keys: tuple[Key, ...]


class Ahead:
    """Evaluates positions ahead by the workers of a target, so many at a time at most.

    A later evaluation of the same position, to the bit, takes the result from the workers.

    Attributes
    ----------
    asked
        Whether the user asked for it.
    vain
        Positions that were evaluated and never wanted; they count all the same.
    """

    def __init__(
        self, target: Potential, each_row: Spread, pool: WorkerPool, most: int, *, asked: bool
    ) -> None:
        self.most, self.asked, self.vain = most, asked, 0
        self._target, self._each_row, self._pool = target, each_row, pool
        self._begun: dict[bytes, _Begun] = {}
        self._late: list[_Begun] = []
        self._may: Callable[[], bool] = bool
        self._set_aside: Callable[[FloatArray], object] = _forget

    def attend(self, may: Callable[[], bool], set_aside: Callable[[FloatArray], object]) -> None:
        """Evaluate positions of a run from here on, while it ``may`` pay for calls.

        ``set_aside`` evaluates positions (n, dim) of which the workers have the results.
        """
        self._may, self._set_aside = may, set_aside

    def room(self) -> int:
        """Return how many more positions may be begun."""
        return self.most - self._pool.unfinished if self._may() else 0

    def begin(self, positions: FloatArray) -> int:
        """Begin to evaluate U at ``positions (n, dim)``; return how many were not begun before."""
        before = len(self._begun)
        for position in positions:
            name = position.tobytes()
            if name not in self._begun:
                self._begun[name] = _Begun(position.copy(), self._evaluate(position))
        return len(self._begun) - before

    def keep(self, wanted: set[bytes]) -> None:
        """Give up all positions but some, and put aside what came of those that were given up."""
        for name in [name for name in self._begun if name not in wanted]:
            begun = self._begun.pop(name)
            gone = [self._pool.withdraw(key) for key in begun.keys]
            if not all(gone):
                self._late.append(begun)
        late, self._late = self._late, []
        for begun in late:
            if all(map(self._pool.has_reply, begun.keys)):
                self.vain += 1
                self._set_aside(begun.position[None, :])
            else:
                self._late.append(begun)

    def close(self) -> None:
        """Give up all positions; those that workers have are paid for."""
        self.keep(set())
        self.vain += len(self._late)
        self._late, self._may = [], bool

    def _evaluate(self, position: FloatArray) -> tuple[Key, ...]:
        keys = self._each_row.begun = list[Key]()
        try:
            with np.errstate(all="ignore"):
                self._target.value(position[None, :])
        except _OnlyBegun:
            pass
        finally:
            self._each_row.begun = None
        return tuple(keys)


def _forget(positions: FloatArray) -> None:
    del positions
