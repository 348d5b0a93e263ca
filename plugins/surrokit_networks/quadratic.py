"""The trend alone as a surrogate."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.arguments import spread
from surrokit.interfaces import LearningProblem
from surrokit.surrogate.shown import ShownSurrogate
from surrokit_networks.learner import NetworkLearner
from surrokit_networks.pilot import no_nodes
from surrokit_networks.regression import Regression
from surrokit_networks.training import Training


@attrs.frozen(kw_only=True)
class Quadratic(ShownSurrogate):
    """A positive definite quadratic: the normal density that fits the evaluations best.

    Parameters
    ----------
    training
        All that a network's training has, too; no node is trained. With trend ``"quadratic"``
        or ``"laplace"`` the fitted potential is known to be ``convex`` and ``gaussian``.
    """

    training: Training = attrs.field(
        factory=lambda: Training(regression=Regression(trend="quadratic"), updates="refit"),
        metadata=spread(
            *("trend", "train_on", "gradient_weight", "whiten", "tail", "hold_out", "learns"),
            "laplace",
        ),
    )

    def learner(self, problem: LearningProblem, rng: np.random.Generator) -> NetworkLearner:
        """Return a learner for a problem."""
        return NetworkLearner.of(
            problem,
            rng,
            n_nodes=1,
            draws=(no_nodes,),
            training=self.training,
            convex=self.training.trend in ("quadratic", "laplace"),
        )
