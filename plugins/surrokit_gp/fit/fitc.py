"""FITC, the sparse Gaussian process with inducing points, as a surrogate."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.contracts.learner import LearningProblem
from surrokit.settings import one_of, optional_positive_integer
from surrokit.types import FloatArray, IntArray
from surrokit_gp.data.observations import Observations
from surrokit_gp.data.training_rows import TrainingRows
from surrokit_gp.fit.learner import ProcessLearner
from surrokit_gp.fit.process import Process
from surrokit_gp.kernel.hyperparameters import Hyperparameters
from surrokit_gp.posterior.inducing import Inducing, inducing_points
from surrokit_gp.posterior.likelihood import Likelihood
from surrokit_gp.posterior.sparse import SparsePosterior, sparse_likelihood


@attrs.frozen(kw_only=True)
class Fitc(Process):
    """A Gaussian process with M inducing points: the fully independent training conditional.

    Its potential is the posterior mean (Snelson and Ghahramani 2006; section 3.3 of the paper),
    which is a network of radial nodes with centres at the inducing points. A fit to N points
    costs O(M^2 N) time and O(M N) memory, a gradient O(M). It learns from values only; gradients
    that are known serve to tell the quality of the fit.

    Mean function, quadratics that are not convex and hyperparameters are treated as in
    :class:`~surrokit_gp.fit.gp.GaussianProcess`; the likelihood that is maximised is that of FITC.

    Parameters
    ----------
    n_inducing : int, optional
        M; None for half the number of points, but no more than 300. More than there are distinct
        points cannot be fitted.
    inducing
        ``"data"`` draws inducing points from the training points; ``"k-means++"`` spreads them
        like those; ``"optimised"`` moves them from there, together with the hyperparameters, to
        where the marginal likelihood is largest (with ``hyperparameters`` given nothing is
        optimised).
    n_search : int, optional
        Most points that the search looks at, drawn at random; None for all. At least ten, and
        twice as many as coefficients. The process itself uses all.

    Raises
    ------
    ConfigurationError
        If a setting makes no sense.
    """

    n_inducing: int | None = attrs.field(default=None, validator=optional_positive_integer)
    inducing: Inducing = attrs.field(
        default="k-means++", validator=one_of("data", "k-means++", "optimised")
    )
    n_search: int | None = attrs.field(default=1000, validator=optional_positive_integer)

    def learner(self, problem: LearningProblem, rng: np.random.Generator) -> ProcessLearner:
        """Return a learner for a problem."""
        model = SparseModel(n_inducing=self.n_inducing, kind=self.inducing)
        uses = {"value", "gradient"}
        return self.learner_on(
            model, problem, rng, needs={"value"}, uses=uses, n_search=self.n_search
        )


@attrs.frozen(kw_only=True)
class SparseModel:
    """FITC, as :class:`~surrokit_gp.fit.training.Training` asks for it.

    Parameters
    ----------
    n_inducing : int or None
        M; None to choose it from the number of points.
    kind
        How inducing points are found.
    """

    n_inducing: int | None
    kind: Inducing

    @property
    def moves(self) -> bool:
        """Whether inducing positions are optimised."""
        return self.kind == "optimised"

    def slope_rows(self, rows: TrainingRows, rng: np.random.Generator) -> IntArray:
        """Return no row: it learns from values only."""
        del rows, rng
        return np.empty(0, dtype=np.int64)

    def inducing(self, positions: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return inducing points, shape (M, dim).

        Raises
        ------
        SurrogateFitError
            If there are fewer positions.
        """
        return inducing_points(self.kind, positions, self.n_inducing, rng)

    def likelihood(
        self,
        observations: Observations,
        hyperparameters: Hyperparameters,
        inducing: FloatArray | None,
    ) -> Likelihood:
        """Return the log marginal likelihood with its derivatives."""
        assert inducing is not None
        return sparse_likelihood(observations, hyperparameters, inducing)

    def posterior(
        self,
        observations: Observations,
        hyperparameters: Hyperparameters,
        inducing: FloatArray | None,
    ) -> SparsePosterior:
        """Return the process given observations."""
        assert inducing is not None
        return SparsePosterior.of(observations, hyperparameters, inducing)
