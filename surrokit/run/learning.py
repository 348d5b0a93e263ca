"""What an attempt has learnt, and the time that it took."""

from __future__ import annotations

from surrokit.contracts.learner import Evaluations
from surrokit.contracts.potential import Potential
from surrokit.cost.clock import Clock
from surrokit.plan.parts import uses_derivatives
from surrokit.plan.recipe import Recipe


class Learning:
    """The learner of an attempt: what it is told, and the surrogate in use.

    Parameters
    ----------
    recipe
        With a learner, or with a surrogate that is ready, or with neither.
    clock
        Charged with the time, as training.

    Attributes
    ----------
    surrogate
        The one in use; None before there is one.
    n_observed
        Exact evaluations observed.
    """

    def __init__(self, recipe: Recipe, clock: Clock) -> None:
        self.surrogate: Potential | None = recipe.surrogate
        self.n_observed = 0
        self._learner = recipe.learner
        self._clock = clock
        self._last: tuple[int, Potential] | None = None

    @property
    def learns(self) -> bool:
        """Whether there is anything to learn."""
        return self._learner is not None

    @property
    def uses_derivatives(self) -> bool:
        """Whether it learns from derivatives where there are any."""
        return self._learner is not None and uses_derivatives(self._learner)

    def observe(self, rows: Evaluations) -> None:
        """Take in exact evaluations."""
        assert self._learner is not None
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
        assert self._learner is not None
        if self._last is None or self._last[0] != self.n_observed:
            with self._clock.phase("training"):
                self._last = self.n_observed, self._learner.fitted()
        return self._last[1]
