"""The data's own rows as a surrogate: those of most leverage as they are, the rest fitted."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.arguments import not_negative_integer, spread
from surrokit.errors import CapabilityError, ConfigurationError
from surrokit.interfaces import LearningProblem
from surrokit.surrogate.shown import ShownSurrogate
from surrokit_networks.exact_rows import ExactRows, RowChoice
from surrokit_networks.learner import NetworkLearner
from surrokit_networks.pilot import no_nodes
from surrokit_networks.regression import Regression
from surrokit_networks.surrogates import Additive
from surrokit_networks.training import Training

LEAST_CURVATURE = 1e-3
"""Least eigenvalue of the trend's matrix in whitened coordinates. It may be small: in directions
that few rows inform, the rows hold most of the curvature, and a prior the rest."""


def _defaults() -> Training:
    regression = Regression(trend="quadratic", least_curvature=LEAST_CURVATURE)
    return Training(regression=regression, updates="refit", learns="potential")


@attrs.frozen(kw_only=True)
class Rows(ShownSurrogate):
    """V(q) = the terms of the rows of most leverage + a quadratic, and perhaps a network.

    For a target that is a sum over rows of data (capability ``rows``). Where few rows inform a
    direction, such as that of a rare level of a factor, the posterior is far from normal there, and
    no quadratic is accepted; the few rows themselves make it what it is, and cost little. All other
    rows, and the prior, are replaced by a quadratic that is fitted to exact evaluations: to the
    posterior's own draws, if the explorer brings such, which is much better than an expansion at
    the mode.

    Which rows are copied is decided anew at each fit, by the whitening of the evaluations.

    The surrogate reads rows of the data that the target offers. Its copy of them is not counted
    among the exact calls, and neither is the one pass over the design, without an evaluation, by
    which it ranks the rows at each fit: both are in its time. With ``n_rows`` as large as the data
    it is the target itself, at the target's cost, and the count of exact calls means nothing.

    Parameters
    ----------
    choice
        How many rows are copied.
    n_nodes
        Nodes of a network beside the quadratic.
    nodes
        How they are drawn.
    training
        How quadratic and network are trained.

    Raises
    ------
    ConfigurationError
        If a setting makes no sense.
    """

    choice: RowChoice = attrs.field(factory=RowChoice, metadata=spread())
    n_nodes: int = attrs.field(default=0, validator=not_negative_integer)
    nodes: Additive = attrs.field(
        factory=Additive, metadata=spread("activation", "weight_scale", "bias_scale", "draws")
    )
    training: Training = attrs.field(
        factory=_defaults,
        metadata=spread(
            *("trend", "least_curvature", "train_on", "gradient_weight", "ridge"),
            *("tail", "hold_out"),
        ),
    )

    def __attrs_post_init__(self) -> None:
        if self.training.learns != "potential" or self.training.updates != "refit":
            raise ConfigurationError(
                "a surrogate of rows learns the potential and refits, got "
                f"learns={self.training.learns!r} and updates={self.training.updates!r}; leave "
                "both at learns='potential' and updates='refit'"
            )

    def learner(self, problem: LearningProblem, rng: np.random.Generator) -> NetworkLearner:
        """Return a learner for a problem.

        Raises
        ------
        CapabilityError
            If the target is no sum over rows.
        """
        if problem.terms is None:
            raise CapabilityError(
                "surrogate 'rows' copies rows of data from the target, which offers "
                f"{', '.join(sorted(problem.capabilities)) or 'values only'}, but not rows; use "
                "surrogate='additive' or 'quadratic', or a target that is a sum over rows, such as "
                "the problem 'logistic'"
            )
        return NetworkLearner.of(
            problem,
            rng,
            n_nodes=self.n_nodes or 1,
            draws=self.nodes.draws_to_try if self.n_nodes else (no_nodes,),
            training=self.training,
            convex=self.n_nodes == 0 and self.training.trend in ("quadratic", "laplace"),
            known=ExactRows(terms=problem.terms, choice=self.choice),
        )
