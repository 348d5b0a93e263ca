"""What a full process and FITC do differently."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from surrokit.types import FloatArray, IntArray
from surrokit_gp.data.observations import Observations
from surrokit_gp.data.training_rows import TrainingRows
from surrokit_gp.kernel.hyperparameters import Hyperparameters
from surrokit_gp.posterior.likelihood import Likelihood
from surrokit_gp.posterior.posterior import Posterior


class Model(Protocol):
    """A process, as training asks for it."""

    @property
    def moves(self) -> bool:
        """Whether inducing positions are optimised."""
        ...

    def slope_rows(self, rows: TrainingRows, rng: np.random.Generator) -> IntArray:
        """Return the rows whose gradients are used, shape (k,)."""
        ...

    def inducing(self, positions: FloatArray, rng: np.random.Generator) -> FloatArray | None:
        """Return inducing points for z of shape (n, dim), shape (M, dim), if there are any."""
        ...

    def likelihood(
        self,
        observations: Observations,
        hyperparameters: Hyperparameters,
        inducing: FloatArray | None,
    ) -> Likelihood:
        """Return the log marginal likelihood with its derivatives."""
        ...

    def posterior(
        self,
        observations: Observations,
        hyperparameters: Hyperparameters,
        inducing: FloatArray | None,
    ) -> Posterior:
        """Return the process given observations."""
        ...
