"""The journal of a run: what came back from calls of the model, and what the clock said, in order.

A run with a given seed is repeated by its journal alone, whatever parts it has: calls return what
they returned before, and the clock gives the readings that it gave before.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, MutableMapping
from typing import Protocol

import attrs

from surrokit.model.outcome import Answer
from surrokit.types import FloatArray

BEYOND = sys.maxsize
"""Position of a journal that holds no more than was asked for."""


@attrs.frozen(eq=False)
class Call:
    """A batch of calls that a run asks for.

    Parameters
    ----------
    what
        Which results; a name of :mod:`surrokit.contracts.methods`, or ``rows``.
    positions : ndarray of shape (n, width)
        The batch, in the coordinates of the model.
    evaluate
        Evaluates a batch of such positions.
    counts
        Calls so far, which known ones are added to.
    aside
        Whether nothing that follows depends on the call, so that a longer run need not make it.
    spare
        Whether nothing at all depends on it, so that it is made once and never again.
    """

    what: str
    positions: FloatArray
    evaluate: Callable[[FloatArray], Answer]
    counts: MutableMapping[str, int]
    aside: bool = False
    spare: bool = False


class Journal(Protocol):
    """Keeps what happens, or gives what happened before.

    :data:`BEYOND` is the position of a journal that holds no more than was asked for.
    """

    @property
    def replays(self) -> bool:
        """Whether it still gives what happened before."""
        ...

    @property
    def position(self) -> int:
        """Number of the event that comes next."""
        ...

    def answer(self, call: Call) -> Answer:
        """Return the answer to a call, or raise ``BudgetSpent`` where a limit forbids it."""
        ...

    def reading(self, now: float) -> float:
        """Return the time that the run goes by."""
        ...


class NoJournal:
    """Keeps nothing."""

    replays = False
    position = BEYOND

    def answer(self, call: Call) -> Answer:
        """Return the answer to a call that is made now."""
        return call.evaluate(call.positions)

    def reading(self, now: float) -> float:
        """Return the time as it is."""
        return now
