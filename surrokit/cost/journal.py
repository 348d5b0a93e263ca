"""The journal of a run: what came back from exact calls, and what the clock said, in order.

A run with a given seed is repeated by its journal alone, whatever parts it has: calls return what
they returned before, and the clock says what it said.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, MutableMapping
from typing import Protocol

import attrs

from surrokit.contracts.methods import CallKind
from surrokit.failures.outcome import Answer
from surrokit.types import FloatArray

BEYOND = sys.maxsize
"""Position of a journal that holds no more than was asked for."""


@attrs.frozen(eq=False)
class Call:
    """A batch of exact calls that a run asks for.

    Parameters
    ----------
    kind
        Kind of call.
    positions : ndarray of shape (n, width)
        The batch.
    evaluate
        Pays for a batch of such positions.
    counts
        Calls so far, which known ones are added to.
    aside
        Whether nothing that follows depends on the call, so that a longer run need not make it.
    spare
        Whether nothing at all depends on it, so that it is made once and never again.
    """

    kind: CallKind
    positions: FloatArray
    evaluate: Callable[[FloatArray], Answer]
    counts: MutableMapping[str, int]
    aside: bool = False
    spare: bool = False

    def pay(self) -> Answer:
        """Return the answer that is paid for now."""
        return self.evaluate(self.positions)


class Journal(Protocol):
    """Keeps what happens, or says what happened before.

    :data:`BEYOND` is the position of a journal that holds no more than was asked for.
    """

    @property
    def replays(self) -> bool:
        """Whether it still says what happened before."""
        ...

    @property
    def position(self) -> int:
        """Number of the event that comes next."""
        ...

    @property
    def saved(self) -> float:
        """Seconds that calls would have taken whose results were known."""
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
    saved = 0.0

    def answer(self, call: Call) -> Answer:
        """Return the answer that is paid for."""
        return call.pay()

    def reading(self, now: float) -> float:
        """Return the time as it is."""
        return now
