"""What a model has returned so far, which is not evaluated again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

import attrs
import numpy as np

from surrokit.model.outcome import Answer, Results, stack
from surrokit.types import FloatArray

WITHIN: Mapping[str, tuple[tuple[str, int], ...]] = {
    "value": (("value_and_gradient", 0),),
    "gradient": (("value_and_gradient", 1),),
    "forward": (("forward_and_jacobian", 0), ("forward_to_second_order", 0)),
    "forward_hessian": (("forward_to_second_order", 2),),
}
"""What else holds a result, and as which of its arrays."""


class Memo:
    """Results of a model by what was evaluated and where, to the bit.

    Rows that failed are not among them. Several posteriors of one model share one.

    Parameters
    ----------
    grows
        Whether what is evaluated is added: a run by itself hardly ever comes to a position twice.

    Attributes
    ----------
    seconds
        What the calls took whose results were given again.
    """

    def __init__(self, *, grows: bool) -> None:
        self.grows, self.seconds = grows, 0.0
        self._rows: dict[tuple[str, bytes], tuple[Results, float]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, what: str, rows: FloatArray, results: Results, seconds: float) -> None:
        """Keep results of rows (n, width) that were evaluated in so many seconds.

        Rows with NaN are left out.
        """
        share = seconds / max(len(rows), 1)
        for i, row in enumerate(rows):
            found = tuple(np.array(array[i]) for array in results)
            if not any(np.isnan(part).any() for part in found):
                self._rows[what, row.tobytes()] = found, share

    def update(self, other: Memo) -> None:
        """Add what another one holds."""
        self._rows.update(other._rows)

    def batches(self) -> Iterator[tuple[str, FloatArray, Results]]:
        """Yield what is known: a name, rows (n, k), and results in the order in which it came."""
        names = dict.fromkeys(what for what, _ in self._rows)
        for name in names:
            held = [(key, row) for (what, key), (row, _) in self._rows.items() if what == name]
            rows = np.stack([np.frombuffer(key) for key, _ in held])
            yield name, rows, stack(dict(enumerate(row for _, row in held)), len(held))

    def complete(
        self,
        what: str,
        keys: FloatArray,
        rows: FloatArray,
        evaluate: Callable[[FloatArray], Answer],
    ) -> Answer:
        """Return the answer for rows of which only unknown ones are evaluated.

        Parameters
        ----------
        what
            Which results.
        keys : ndarray of shape (n, k)
            What the model takes of each row.
        rows : ndarray of shape (n, width)
            The rows.
        evaluate
            Evaluates such rows.
        """
        found = {i: held for i, key in enumerate(keys) if (held := self._find(what, key))}
        self.seconds += sum(seconds for _, seconds in found.values())
        known = {i: row for i, (row, _) in found.items()}
        unknown = [i for i in range(len(rows)) if i not in found]
        if not unknown:
            return Answer(results=stack(known, len(rows)))
        began = time.perf_counter()
        fresh = evaluate(rows[unknown])
        if self.grows and fresh.results is not None:
            self.add(what, keys[unknown], fresh.results, time.perf_counter() - began)
        if not known:
            return fresh
        if fresh.results is not None:
            new = {i: tuple(a[k] for a in fresh.results) for k, i in enumerate(unknown)}
            known |= new
        causes = {unknown[k]: cause for k, cause in fresh.causes.items()}
        return attrs.evolve(fresh, results=stack(known, len(rows)), causes=causes)

    def _find(self, what: str, key: FloatArray) -> tuple[Results, float] | None:
        at = key.tobytes()
        held = self._rows.get((what, at))
        if held is not None:
            return held
        for other, i in WITHIN.get(what, ()):
            whole = self._rows.get((other, at))
            if whole is not None:
                return (whole[0][i],), whole[1]
        return None
