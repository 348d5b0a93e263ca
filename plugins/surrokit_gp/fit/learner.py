"""The learner that both kinds of process share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import attrs
import numpy as np

from surrokit.interfaces import Evaluations
from surrokit.surrogate.quality import KeepingLearner
from surrokit.surrogate.training import Tail
from surrokit.surrogate.whitening import Whitening
from surrokit.types import Capabilities
from surrokit_gp.data.observations import Frame
from surrokit_gp.data.training_rows import TrainingRows
from surrokit_gp.fit.memory import Memory
from surrokit_gp.fit.training import Training
from surrokit_gp.posterior.fitted import CAPABILITIES, FittedProcess


@attrs.define(kw_only=True, eq=False)
class ProcessLearner(KeepingLearner):
    """Conditions a process on all that was observed.

    The first fit fixes the whitening. Hyperparameters are found again when the number of points
    has grown by half.

    Parameters
    ----------
    training
        How a process is fitted.
    whiten
        Whether the kernel sees whitened positions.
    tail
        What far-tail rows count.
    needs, uses
        Words for what it learns from.
    """

    training: Training
    whiten: bool
    tail: Tail
    needs: frozenset[str]
    uses: frozenset[str]
    _whitening: Whitening | None = attrs.field(default=None, init=False, repr=False)
    _memory: Memory | None = attrs.field(default=None, init=False, repr=False)

    @property
    def provides(self) -> Capabilities:
        """What a fitted process can do."""
        return CAPABILITIES

    def keep_used(self, evaluations: Evaluations) -> Evaluations:
        """Return values, and gradients if they are learnt from."""
        gradients = evaluations.gradients if "gradient" in self.uses else None
        return Evaluations(
            positions=evaluations.positions,
            values=evaluations.values,
            gradients=gradients,
            weights=evaluations.weights,
        )

    def fit(self) -> FittedProcess:
        """Return the process given everything observed.

        Raises
        ------
        SurrogateFitError
            If there are too few points with a finite value, or they cannot be fitted.
        """
        observed = self.join_observed()
        rows = TrainingRows.of(observed, self.tail)
        frame = None
        if self._whitening is not None:
            frame = Frame(whitening=self._whitening, whiten=self.whiten)
        data = self.training.data(rows, len(observed), frame, self.seed, self.whiten)
        process, self._memory = self.training.fit(data, self.seed, self._memory)
        self._whitening = data.frame.whitening
        return process

    def state(self) -> dict[str, Any]:
        """Return the seed, all rows observed, and what fits so far have fixed."""
        state = super().state()
        if self._whitening is not None:
            state["whitening_mean"] = self._whitening.mean
            state["whitening_factor"] = self._whitening.factor
        if self._memory is not None:
            state["found"] = self._memory.state()
        return state

    def restore(self, state: Mapping[str, Any]) -> Self:
        """Return a learner with the same settings that goes on from what ``state`` returned."""
        learner = super().restore(state)
        if "whitening_mean" in state:
            learner._whitening = Whitening(
                mean=np.asarray(state["whitening_mean"], dtype=np.float64),
                factor=np.asarray(state["whitening_factor"], dtype=np.float64),
            )
        if "found" in state:
            learner._memory = Memory.restore(state["found"])
        return learner
