"""Positions that workers evaluate before anybody asks for them."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np

from surrokit.executors.crew import Crew, OnlyBegun, Spread
from surrokit.executors.outstanding import Key
from surrokit.potentials import Potential
from surrokit.types import FloatArray


@attrs.define(eq=False)
class _Begun:
    position: FloatArray
    keys: tuple[Key, ...]


class Ahead:
    """Evaluates positions ahead by the workers of a target.

    A later evaluation of the same position, to the bit, takes the result from the workers.

    Parameters
    ----------
    target
        A target whose rows the crew evaluates.
    each_row
        What does so.
    crew
        The workers.
    most
        Most positions at a time.
    asked
        Whether the user asked for it.

    Attributes
    ----------
    vain
        Positions that were evaluated and never wanted. They are paid for all the same.
    """

    def __init__(
        self, target: Potential, each_row: Spread, crew: Crew, most: int, *, asked: bool
    ) -> None:
        self.most, self.asked, self.vain = most, asked, 0
        self._target, self._each_row, self._crew = target, each_row, crew
        self._begun: dict[bytes, _Begun] = {}
        self._late: list[_Begun] = []
        self._may: Callable[[], bool] = bool
        self._set_aside: Callable[[FloatArray], object] = _forget

    def attend(self, may: Callable[[], bool], set_aside: Callable[[FloatArray], object]) -> None:
        """Evaluate positions of a run from here on.

        Parameters
        ----------
        may
            Tells whether the run pays for its calls now.
        set_aside
            Evaluates positions (n, dim) of which the workers have the results, and keeps these.
        """
        self._may, self._set_aside = may, set_aside

    def room(self) -> int:
        """Return how many more positions may be begun."""
        return self.most - self._crew.unfinished if self._may() else 0

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
            gone = [self._crew.withdraw(key) for key in begun.keys]
            if not all(gone):
                self._late.append(begun)
        done = [begun for begun in self._late if all(map(self._crew.has_reply, begun.keys))]
        self._late = [begun for begun in self._late if begun not in done]
        for begun in done:
            self._put_aside(begun)

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
        except OnlyBegun:
            pass
        finally:
            self._each_row.begun = None
        return tuple(keys)

    def _put_aside(self, begun: _Begun) -> None:
        self.vain += 1
        self._set_aside(begun.position[None, :])


def _forget(positions: FloatArray) -> None:
    del positions
