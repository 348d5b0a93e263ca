"""A process about a quadratic as a surrogate."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.arguments import positive_integer
from surrokit.interfaces import Evaluations, LearningProblem
from surrokit.limits import threads_for
from surrokit.surrogate.quality import KeepingLearner
from surrokit.surrogate.shown import ShownSurrogate
from surrokit.surrogate.training import least_points
from surrokit.surrogate.whitening import Whitening
from surrokit.types import Capabilities, FloatArray
from surrokit_gp.data.training_rows import TrainingRows
from surrokit_gp.quadratic.fitted import CAPABILITIES, FittedQuadraticProcess
from surrokit_gp.quadratic.heights import flat_from
from surrokit_gp.quadratic.model import Model
from surrokit_gp.quadratic.prior import QuadraticPrior
from surrokit_gp.quadratic.walled import Walled

_TURNS = 4
"""Times that coordinates are found from a process in those before."""

_SETTLED = 0.2
"""Change of a standard deviation, as a part of it, below which they are as good as found."""


@attrs.frozen(kw_only=True)
class QuadraticGaussianProcess(ShownSurrogate):
    """A Gaussian process that expects a nearly normal density, for few values.

    Its mean function is a quadratic whose coefficients are drawn to those of a standard normal
    density, in coordinates in which the process's own draws have mean zero and unit covariance.
    So tens of values do where a quadratic alone has more coefficients, and
    far from all points V rises as a normal density falls. Values far above the least one, where the
    density is next to nothing, are flattened. Scales are those of the largest posterior density.

    The cost of a fit grows with the cube of the number of points. Beyond some twelve dimensions, or
    a thousand points, another surrogate does better. A mean function of a quadratic with a
    squared-exponential kernel is that of Acerbi (2018).

    Parameters
    ----------
    max_points
        Most points that the process is conditioned on, those of least U.

    Raises
    ------
    ConfigurationError
        If a setting makes no sense.
    """

    max_points: int = attrs.field(default=1000, validator=positive_integer)

    def learner(
        self, problem: LearningProblem, rng: np.random.Generator
    ) -> QuadraticProcessLearner:
        """Return a learner for a problem."""
        return QuadraticProcessLearner(
            dim=problem.dim, seed=int(rng.integers(2**53)), max_points=self.max_points
        )


@attrs.define(kw_only=True, eq=False)
class QuadraticProcessLearner(KeepingLearner):
    """Conditions a process on all values observed, in coordinates that it finds.

    Parameters
    ----------
    max_points
        Most points that the process is conditioned on.
    """

    max_points: int

    @property
    def needs(self) -> frozenset[str]:
        """Values."""
        return frozenset({"value"})

    @property
    def uses(self) -> frozenset[str]:
        """Nothing but values."""
        return frozenset({"value"})

    @property
    def provides(self) -> Capabilities:
        """What a fitted process can do."""
        return CAPABILITIES

    def keep_used(self, evaluations: Evaluations) -> Evaluations:
        """Return values alone."""
        return Evaluations(
            positions=evaluations.positions,
            values=evaluations.values,
            weights=evaluations.weights,
        )

    def fit(self) -> FittedQuadraticProcess:
        """Return the process given everything observed.

        Raises
        ------
        SurrogateFitError
            If there are too few points with a finite value, or they cannot be fitted.
        """
        observed = self.join_observed()
        rows = TrainingRows.of(observed, "full")
        rows.demand(least_points(self.dim), len(observed))
        lowest = np.sort(np.argsort(rows.values, kind="stable")[: self.max_points])
        rows = rows.take(lowest)
        with threads_for(len(rows) * self.dim):
            model = self._model(rows.positions, rows.values)
            return FittedQuadraticProcess.of(model)

    def _model(self, positions: FloatArray, values: FloatArray) -> Model:
        """Return the process in coordinates in which its own draws are nearly normal."""
        whitening = _first_whitening(positions, values)
        prior = QuadraticPrior.usual(self.dim)
        for turn in range(_TURNS):
            model = Model.of(positions, values, whitening, prior)
            if turn == _TURNS - 1:
                break
            walled = Walled.of(model.process, wide=True)
            draws = model.draw(walled, 1.0, np.random.default_rng([self.seed, turn]))
            sds = np.sqrt(np.linalg.eigvalsh(np.cov(draws, rowvar=False).reshape(self.dim, -1)))
            prior, whitening = model.prior, model.refocus(draws)
            if np.abs(sds - 1.0).max() < _SETTLED and np.abs(draws.mean(axis=0)).max() < _SETTLED:
                break
        return model


def _first_whitening(positions: FloatArray, values: FloatArray) -> Whitening:
    """Return coordinates about the points of high density, or the densest where these are few."""
    dim = positions.shape[1]
    order = np.argsort(values, kind="stable")
    high = int(np.count_nonzero(values - values.min() <= flat_from(dim)))
    lowest = np.sort(order[: max(high, 2 * dim + 2)])
    return Whitening.of(positions[lowest], np.ones(len(lowest)), drops_noise=True)
