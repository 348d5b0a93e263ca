"""The learner of a scikit-learn regressor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import attrs
import numpy as np

from surrokit.contracts.learner import Evaluations
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.types import Capabilities
from surrokit_sklearn.fit.fit_settings import FitSettings
from surrokit_sklearn.fit.fitted import FittedRegressor
from surrokit_sklearn.fit.fitting import fitted_regressor

_NEEDS = frozenset({"value"})
_USES = frozenset({"value", "gradient"})


@attrs.define(kw_only=True, eq=False)
class EstimatorLearner:
    """Keeps everything observed, and fits a copy of the regressor to all of it when asked.

    Parameters
    ----------
    settings
        How to fit.
    dim
        Numbers in a position.
    seed
        From which random states of the regressor are drawn: the same at every fit.
    """

    settings: FitSettings
    dim: int
    seed: int
    _blocks: list[Evaluations] = attrs.field(factory=list, init=False, repr=False)

    @property
    def needs(self) -> frozenset[str]:
        """Values."""
        return _NEEDS

    @property
    def uses(self) -> frozenset[str]:
        """Values to learn from; gradients, where there are any, to judge the fit."""
        return _USES

    @property
    def provides(self) -> Capabilities:
        """What a fitted regressor can do."""
        return self.settings.provides

    def observe(self, evaluations: Evaluations) -> None:
        """Take in exact evaluations; rows without a finite value are ignored when fitting.

        Raises
        ------
        ShapeError
            If the positions have another dimension than the problem.
        ConfigurationError
            If a position or a value is NaN.
        """
        if evaluations.positions.shape[1] != self.dim:
            raise ShapeError(
                f"positions of evaluations must have shape (n, {self.dim}), "
                f"got {evaluations.positions.shape}; pass evaluations of the same target"
            )
        nan = np.isnan(evaluations.positions).any(axis=1) | np.isnan(evaluations.values)
        if nan.any():
            raise ConfigurationError(
                f"positions and values of evaluations must not be NaN, but row {nan.argmax()} of "
                f"{len(nan)} has one; leave such rows out, or give U = inf where the target failed"
            )
        self._blocks.append(evaluations)

    def fitted(self) -> FittedRegressor:
        """Return the regressor fitted to everything observed.

        Raises
        ------
        SurrogateFitError
            If there are too few points with a finite value, or they cannot be fitted.
        """
        return fitted_regressor(self.settings, self._observed(), self.seed)

    def state(self) -> dict[str, Any]:
        """Return the seed and all rows observed."""
        rows = self._observed()
        return {
            "seed": self.seed,
            "positions": rows.positions,
            "values": rows.values,
            "gradients": rows.gradients,
        }

    def restored(self, state: Mapping[str, Any]) -> Self:
        """Return a learner with the same settings that goes on from what ``state`` returned."""
        learner = attrs.evolve(self, seed=int(state["seed"]))
        learner._blocks = [
            Evaluations(
                positions=state["positions"],
                values=state["values"],
                gradients=state["gradients"],
            )
        ]
        return learner

    def _observed(self) -> Evaluations:
        # Joined once, so that the next call finds one block.
        self._blocks = [Evaluations.joined(self._blocks, self.dim)]
        return self._blocks[0]
