"""The full process and FITC as surrogates."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.arguments import one_of, optional_positive_integer
from surrokit.interfaces import LearningProblem
from surrokit_gp.fitc import Inducing
from surrokit_gp.process import Gradients, Process, ProcessLearner


@attrs.frozen(kw_only=True)
class GaussianProcess(Process):
    """A full Gaussian process: squared-exponential kernel, explicit mean function, noise.

    Its potential is the posterior mean (Rasmussen 2003; section 3.3 of the paper), which is a
    network of radial nodes with centres at the training points. The cost of a fit grows with the
    cube of the number of equations, that of a gradient with the number of points.

    Coefficients of the mean function have a flat prior and are integrated out (Rasmussen and
    Williams 2006, section 2.7). A quadratic mean whose curvature is not positive everywhere has
    its eigenvalues raised in whitened coordinates, and the process is fitted again to what is
    left, with a linear mean. Hyperparameters maximise the marginal likelihood, with a noise of at
    least 0.01 nats, and are found again only when the number of points has grown by half.

    Where gradients are known they are observations as well (Rasmussen and Williams 2006, section
    9.4), with the same noise as values: sigma in nats for the change of U over one length scale.

    Parameters
    ----------
    n_search : int, optional
        Most equations that the search looks at, those of points drawn at random; None for all.
        At least ten points, and twice as many equations as coefficients. The process itself uses
        all.
    max_points : int, optional
        Most points that the process is conditioned on, drawn at random; None for all.
    gradients
        ``"auto"`` uses the gradients of as many points as keep the equations within 3000, drawn
        at random, unless that were less than one in twenty; True uses all, and refuses more than
        10,000 equations; False uses none.

    Raises
    ------
    ConfigurationError
        If a setting makes no sense.
    """

    n_search: int | None = attrs.field(default=500, validator=optional_positive_integer)
    max_points: int | None = attrs.field(default=3000, validator=optional_positive_integer)
    gradients: Gradients = attrs.field(default="auto", validator=one_of("auto", True, False))

    def learner(self, problem: LearningProblem, rng: np.random.Generator) -> ProcessLearner:
        """Return a learner for a problem."""
        value, both = frozenset({"value"}), frozenset({"value", "gradient"})
        return self.learner_of(
            problem,
            rng,
            needs=both if self.gradients is True else value,
            uses=value if self.gradients is False else both,
            n_search=self.n_search,
            max_points=self.max_points,
            gradients=self.gradients,
        )


@attrs.frozen(kw_only=True)
class Fitc(Process):
    """A Gaussian process with M inducing points: the fully independent training conditional.

    Its potential is the posterior mean (Snelson and Ghahramani 2006; section 3.3 of the paper),
    which is a network of radial nodes with centres at the inducing points. A fit to N points
    costs O(M^2 N) time and O(M N) memory, a gradient O(M). It learns from values only; gradients
    that are known serve to tell the quality of the fit.

    Mean function, quadratics that are not convex and hyperparameters are treated as in
    :class:`~surrokit_gp.surrogates.GaussianProcess`; the likelihood that is maximised is that of
    FITC.

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
        points = {"inducing": self.inducing, "n_inducing": self.n_inducing}
        return self.learner_of(problem, rng, n_search=self.n_search, **points)
