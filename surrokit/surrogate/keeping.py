"""The base of learners that keep all that they observe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import attrs

from surrokit.contracts.learner import Evaluations
from surrokit.errors import ShapeError
from surrokit.surrogate.distinct import demand_numbers


@attrs.define(kw_only=True, eq=False)
class KeepingLearner:
    """Keeps every evaluation observed; a subclass fits to all of them when asked.

    Parameters
    ----------
    dim
        Numbers in a position.
    seed
        Seed of all random choices, the same at every fit.
    """

    dim: int
    seed: int
    _blocks: list[Evaluations] = attrs.field(factory=list, init=False, repr=False)

    def observe(self, evaluations: Evaluations) -> None:
        """Take in exact evaluations; rows without a finite value are ignored when fitting.

        Raises
        ------
        ShapeError
            If the positions have another dimension than the problem.
        ConfigurationError
            If a value is NaN, or a position with a finite value; the message names the row.
        """
        used = self.check(evaluations)
        if len(used):
            self._blocks.append(used)

    def check(self, evaluations: Evaluations) -> Evaluations:
        """Return the evaluations worth keeping, if the learner can learn from them.

        Raises
        ------
        ShapeError, ConfigurationError
            As :meth:`observe`.
        """
        if evaluations.positions.shape[1] != self.dim:
            raise ShapeError(
                f"positions of evaluations must have shape (n, {self.dim}), "
                f"got {evaluations.positions.shape}; pass evaluations of the same target"
            )
        demand_numbers(evaluations)
        return self.keep_used(evaluations)

    def keep_used(self, evaluations: Evaluations) -> Evaluations:
        """Return the evaluations worth keeping: all, unless a subclass keeps fewer."""
        return evaluations

    def join_observed(self) -> Evaluations:
        """Return everything observed."""
        # Joined once, so that the next call finds one block.
        self._blocks = [Evaluations.join(self._blocks, self.dim)]
        return self._blocks[0]

    def forget(self) -> None:
        """Drop all rows."""
        self._blocks = []

    def of_rows(self, evaluations: Evaluations) -> Self:
        """Return a learner with the same seed and settings that has observed these rows alone."""
        learner = attrs.evolve(self)
        learner._blocks = [evaluations]
        return learner

    def state(self) -> dict[str, Any]:
        """Return the seed and all rows observed."""
        return {"seed": self.seed, "rows": attrs.asdict(self.join_observed())}

    def restore(self, state: Mapping[str, Any]) -> Self:
        """Return a learner with the same settings that goes on from what ``state`` returned."""
        return attrs.evolve(self, seed=int(state["seed"])).of_rows(Evaluations(**state["rows"]))
