"""FITC, the sparse Gaussian process with inducing points, as a surrogate."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.arguments import one_of, optional_positive_integer
from surrokit.interfaces import LearningProblem
from surrokit_gp.fit.learner import ProcessLearner
from surrokit_gp.fit.process import Process
from surrokit_gp.posterior.inducing import Inducing
from surrokit_gp.posterior.model import SparseModel


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
