"""Evaluations of earlier runs, by position, which no run pays for again."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from surrokit.cost.journal import Results
from surrokit.ledger.events import APART, DONE, Event
from surrokit.rowwise import stack
from surrokit.types import FloatArray

_Row = tuple[FloatArray, ...]


class Known:
    """Looks evaluations up by kind of call and position, to the bit.

    Parameters
    ----------
    events
        Batches of exact calls; those that failed are left out.

    Attributes
    ----------
    seconds
        What the calls took that were looked up.
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.seconds = 0.0
        self._rows: dict[tuple[str, bytes], tuple[_Row, float]] = {}
        for event in events:
            if event.results is not None and event.outcome in (DONE, APART):
                self._add(event, event.results)

    def _add(self, event: Event, results: tuple[FloatArray, ...]) -> None:
        share = event.seconds / max(len(event.positions), 1)
        for i, position in enumerate(event.positions):
            row = tuple(array[i] for array in results)
            if not any(np.isnan(part).any() for part in row):
                self._rows[event.kind, position.tobytes()] = row, share

    def __len__(self) -> int:
        return len(self._rows)

    def complete(
        self, kind: str, positions: FloatArray, evaluate: Callable[[FloatArray], Results]
    ) -> Results:
        """Return results of a batch (n, width), of which only unknown rows are evaluated."""
        keys = [(kind, row.tobytes()) for row in positions] if self._rows else []
        found = {i: self._rows[key] for i, key in enumerate(keys) if key in self._rows}
        if not found:
            return evaluate(positions)
        rows = {i: row for i, (row, _) in found.items()}
        self.seconds += sum(seconds for _, seconds in found.values())
        unknown = [i for i in range(len(positions)) if i not in found]
        fresh = evaluate(positions[unknown]) if unknown else None
        if fresh is not None:
            rows |= {i: tuple(array[k] for array in fresh) for k, i in enumerate(unknown)}
        return tuple(stack(rows, len(positions)))
