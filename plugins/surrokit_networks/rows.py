"""The data's own rows as a surrogate: those of most leverage as they are, the rest fitted."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.arguments import optional_positive_integer, spread
from surrokit.errors import CapabilityError, ConfigurationError
from surrokit.interfaces import LearningProblem
from surrokit.potentials import Potential, SummedTerms, with_hessian
from surrokit.surrogate.whitening import Whitening
from surrokit.types import FloatArray, IntArray
from surrokit_networks.learner import NetworkLearner
from surrokit_networks.potentials import FIRST_ORDER
from surrokit_networks.training import Training

LEFT, MOST = 2.0, 0.0625
"""Nats that the rows that are not copied may leave, and the part of rows that may be copied."""


def _defaults() -> Training:
    # The least curvature may be small: in directions that few rows inform, the rows hold most of
    # the curvature, and a prior the rest.
    return Training(trend="quadratic", least_curvature=1e-3, updates="refit", learns="potential")


@attrs.frozen(kw_only=True)
class Rows:
    """V(q) = the terms of the rows of most leverage + a quadratic.

    For a target that is a sum over rows of data (capability ``rows``). Where few rows inform a
    direction, such as that of a rare level of a factor, the posterior is far from normal there, and
    no quadratic is accepted; the few rows themselves make it what it is, and cost little. All other
    rows, and the prior, are replaced by a quadratic that is fitted to exact evaluations.

    Which rows are copied is decided anew at each fit. With L the factor of the evaluations'
    whitening, psi_i bounds how far the term of row i is from a quadratic at a distance of one
    standard deviation; for a logistic regression it is |L^T x_i|^3 / (36 sqrt 3). The rows with the
    largest psi_i are copied. Neither the copy nor the pass over the design is counted among the
    exact calls.

    Parameters
    ----------
    n_rows : int, optional
        How many; None to choose: as few as leave no more than 2 nats of the sum of psi_i to the
        others, but no more than a sixteenth of all rows, as the surrogate's gradient costs about as
        small a part of the exact one's. On a9a with 124 parameters what was left in sum predicted
        the acceptance of independent draws: 0.76 at 12 nats, 0.83 at 6, 0.90 at 3.
    training
        How the quadratic is fitted.
    """

    n_rows: int | None = attrs.field(default=None, validator=optional_positive_integer)
    training: Training = attrs.field(
        factory=_defaults,
        metadata=spread("trend", "least_curvature", "train_on", "tail", "hold_out"),
    )

    def __attrs_post_init__(self) -> None:
        if self.training.learns != "potential" or self.training.updates != "refit":
            raise ConfigurationError(
                "a surrogate of rows learns the potential and refits, got "
                f"learns={self.training.learns!r} and updates={self.training.updates!r}; leave "
                "both at learns='potential' and updates='refit'"
            )

    def learner(self, problem: LearningProblem, rng: np.random.Generator) -> NetworkLearner:
        """Return a learner; CapabilityError is raised if the target is no sum over rows."""
        terms = problem.terms
        if terms is None:
            raise CapabilityError(
                "surrogate 'rows' copies rows of data from the target, which offers "
                f"{', '.join(sorted(problem.capabilities)) or 'values only'}, but not rows; use "
                "surrogate='additive' or 'quadratic', or a target that is a sum over rows, such as "
                "the problem 'logistic'"
            )

        def known(whitening: Whitening) -> tuple[Potential | None, FloatArray]:
            return self.part(terms, whitening)

        of_some = terms.select(np.zeros(1, dtype=np.int64)).capabilities
        return NetworkLearner.of(
            problem, rng, training=self.training, known=known, most=of_some & FIRST_ORDER
        )

    def part(self, terms: SummedTerms, whitening: Whitening) -> tuple[Potential | None, FloatArray]:
        """Return the sum of the terms of the rows that bend most, None for nothing.

        With it comes what it leaves of the identity, the Hessian of a normal density in its own
        whitened coordinates: the matrix (dim, dim) that the rest of U is expected to have.
        """
        factor = whitening.factor
        rows = self.choose(terms.row_bounds(factor, whitening.mean))
        if not len(rows):
            return None, np.eye(len(factor))
        potential = terms.select(rows)
        hessian = with_hessian(potential).hessian(whitening.mean[None, :])[0]
        matrix = np.eye(len(factor)) - factor.T @ hessian @ factor
        return potential, 0.5 * (matrix + matrix.T)

    def choose(self, bounds: FloatArray) -> IntArray:
        """Return the rows to copy by their psi (n_rows,), in order; none where all leave little."""
        order = np.argsort(-bounds, kind="stable")
        n = self.n_rows
        if n is None:
            # summed from the least on: little is left, and must not be lost to rounding
            left = np.cumsum(bounds[order][::-1])[::-1]
            n = min(int(np.count_nonzero(left > LEFT)), int(np.ceil(MOST * len(bounds))))
        return np.sort(order[:n])
