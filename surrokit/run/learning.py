"""What a run has learnt, and the time that it took."""

from __future__ import annotations

from surrokit.contracts.learner import Evaluations, Learner
from surrokit.contracts.potential import Potential
from surrokit.cost.clock import Clock


class Learning:
    """The learner of a run; what it is told, and what it makes of it.

    Parameters
    ----------
    learner
        Learns.
    clock
        Charged with the time, as training.
    """

    def __init__(self, learner: Learner, clock: Clock) -> None:
        self.n_observed = 0
        self._learner = learner
        self._clock = clock
        self._last: tuple[int, Potential] | None = None

    def observe(self, rows: Evaluations) -> None:
        """Take in exact evaluations."""
        with self._clock.phase("training"):
            self._learner.observe(rows)
        self.n_observed += len(rows)

    def fitted(self) -> Potential:
        """Return a surrogate of all rows so far; the last one where none has come since.

        Raises
        ------
        SurrogateFitError
            If none can be fitted.
        """
        if self._last is None or self._last[0] != self.n_observed:
            with self._clock.phase("training"):
                self._last = self.n_observed, self._learner.fitted()
        return self._last[1]
