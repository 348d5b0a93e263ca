"""The learner that both kinds of process share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import attrs
import numpy as np

from surrokit.contracts.learner import Evaluations
from surrokit.errors import ShapeError
from surrokit.surrogate.distinct import Tail, demand_numbers
from surrokit.surrogate.whitening import Whitening
from surrokit.types import Capabilities
from surrokit_gp.data.observations import Frame
from surrokit_gp.data.training_rows import TrainingRows
from surrokit_gp.fit.memory import Memory
from surrokit_gp.fit.training import Training
from surrokit_gp.posterior.fitted import CAPABILITIES, FittedProcess


@attrs.define(kw_only=True, eq=False)
class ProcessLearner:
    """Keeps every evaluation observed, and conditions a process on all of them when asked.

    The first fit fixes the whitening. Hyperparameters are found again when the number of points
    has grown by half.

    Parameters
    ----------
    dim
        Numbers in a position.
    seed
        Of all random choices: the same at every fit.
    training
        How a process is fitted.
    whiten
        Whether the kernel sees whitened positions.
    tail
        What far-tail rows count.
    needs, uses
        Words for what it learns from.
    """

    dim: int
    seed: int
    training: Training
    whiten: bool
    tail: Tail
    needs: frozenset[str]
    uses: frozenset[str]
    _blocks: list[Evaluations] = attrs.field(factory=list, init=False, repr=False)
    _whitening: Whitening | None = attrs.field(default=None, init=False, repr=False)
    _memory: Memory | None = attrs.field(default=None, init=False, repr=False)

    @property
    def provides(self) -> Capabilities:
        """What a fitted process can do."""
        return CAPABILITIES

    def observe(self, evaluations: Evaluations) -> None:
        """Take in exact evaluations; rows without a finite value are ignored when fitting.

        Raises
        ------
        ShapeError
            If the positions have another dimension than the problem.
        ConfigurationError
            If a value, or a position with a finite value, is NaN.
        """
        if evaluations.positions.shape[1] != self.dim:
            raise ShapeError(
                f"positions of evaluations must have shape (n, {self.dim}), "
                f"got {evaluations.positions.shape}; pass evaluations of the same target"
            )
        demand_numbers(evaluations)
        gradients = evaluations.gradients if "gradient" in self.uses else None
        self._blocks.append(
            Evaluations(
                positions=evaluations.positions, values=evaluations.values, gradients=gradients
            )
        )

    def fitted(self) -> FittedProcess:
        """Return the process given everything observed.

        Raises
        ------
        SurrogateFitError
            If there are too few points with a finite value, or they cannot be fitted.
        """
        observed = self._observed()
        rows = TrainingRows.of(observed, self.tail)
        frame = None
        if self._whitening is not None:
            frame = Frame(whitening=self._whitening, whiten=self.whiten)
        data = self.training.data(rows, len(observed), frame, self.seed, self.whiten)
        process, self._memory = self.training.fitted(data, self.seed, self._memory)
        self._whitening = data.frame.whitening
        return process

    def state(self) -> dict[str, Any]:
        """Return the seed, all rows observed, and what fits so far have fixed."""
        observed = self._observed()
        state: dict[str, Any] = {
            "seed": self.seed,
            "positions": observed.positions,
            "values": observed.values,
        }
        if observed.gradients is not None:
            state["gradients"] = observed.gradients
        if self._whitening is not None:
            state["whitening_mean"] = self._whitening.mean
            state["whitening_factor"] = self._whitening.factor
        if self._memory is not None:
            state["found"] = self._memory.state()
        return state

    def restored(self, state: Mapping[str, Any]) -> Self:
        """Return a learner with the same settings that goes on from what ``state`` returned."""
        learner = attrs.evolve(self, seed=int(state["seed"]))
        learner._blocks = [
            Evaluations(
                positions=state["positions"],
                values=state["values"],
                gradients=state.get("gradients"),
            )
        ]
        if "whitening_mean" in state:
            learner._whitening = Whitening(
                mean=np.asarray(state["whitening_mean"], dtype=np.float64),
                factor=np.asarray(state["whitening_factor"], dtype=np.float64),
            )
        if "found" in state:
            learner._memory = Memory.restored(state["found"])
        return learner

    def _observed(self) -> Evaluations:
        joined = Evaluations.joined(self._blocks, self.dim)
        # Joined once, so that the next call finds one block.
        self._blocks = [joined]
        return joined
