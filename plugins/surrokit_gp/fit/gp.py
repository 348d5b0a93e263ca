"""The full Gaussian process as a surrogate."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs
import numpy as np

from surrokit.contracts.learner import LearningProblem
from surrokit.errors import SurrogateFitError
from surrokit.settings import one_of, optional_positive_integer
from surrokit.types import FloatArray, IntArray
from surrokit_gp.data.observations import Observations
from surrokit_gp.data.training_rows import TrainingRows
from surrokit_gp.fit.learner import ProcessLearner
from surrokit_gp.fit.process import Process
from surrokit_gp.kernel.hyperparameters import Hyperparameters
from surrokit_gp.posterior.exact import ExactPosterior, exact_likelihood
from surrokit_gp.posterior.likelihood import Likelihood

Gradients: TypeAlias = Literal["auto", True, False]
"""Whether gradients are learnt from: where that is cheap, always, never."""

AMPLE_EQUATIONS = 3000
"""Most equations that ``gradients="auto"`` makes, at dim + 1 for a point with its gradient."""

MOST_EQUATIONS = 10_000
"""Most equations that ``gradients=True`` makes: the kernel matrix then takes 800 megabytes."""

_FEWEST_GRADIENTS = 0.05
"""Part of the gradients below which ``gradients="auto"`` uses none."""


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
        return self.learner_on(
            ExactModel(gradients=self.gradients),
            problem,
            rng,
            needs={"value", "gradient"} if self.gradients is True else {"value"},
            uses={"value"} if self.gradients is False else {"value", "gradient"},
            n_search=self.n_search,
            max_points=self.max_points,
        )


@attrs.frozen(kw_only=True)
class ExactModel:
    """A full process, as :class:`~surrokit_gp.fit.training.Training` asks for it.

    Parameters
    ----------
    gradients
        Whether gradients are learnt from.
    """

    gradients: Gradients

    @property
    def moves(self) -> bool:
        """False: it has no inducing points."""
        return False

    def slope_rows(self, rows: TrainingRows, rng: np.random.Generator) -> IntArray:
        """Return the rows whose gradients are used, shape (k,).

        Raises
        ------
        SurrogateFitError
            If all were asked for and there are none, or too many.
        """
        known = np.flatnonzero(rows.with_gradient)
        if self.gradients is False:
            return known[:0]
        if self.gradients is True:
            _demand_gradients(rows, len(known))
            return known
        room = (AMPLE_EQUATIONS - len(rows)) // rows.dim
        if len(known) <= room:
            return known
        if room < _FEWEST_GRADIENTS * len(known):
            return known[:0]
        return rows.drawn(room, rng, known)

    def inducing(self, positions: FloatArray, rng: np.random.Generator) -> None:
        """Return None."""
        del positions, rng

    def likelihood(
        self,
        observations: Observations,
        hyperparameters: Hyperparameters,
        inducing: FloatArray | None,
    ) -> Likelihood:
        """Return the log marginal likelihood with its derivatives."""
        del inducing
        return exact_likelihood(observations, hyperparameters)

    def posterior(
        self,
        observations: Observations,
        hyperparameters: Hyperparameters,
        inducing: FloatArray | None,
    ) -> ExactPosterior:
        """Return the process given observations."""
        del inducing
        return ExactPosterior.of(observations, hyperparameters)


def _demand_gradients(rows: TrainingRows, n_known: int) -> None:
    n_equations = len(rows) + n_known * rows.dim
    if n_equations > MOST_EQUATIONS:
        raise SurrogateFitError(
            f"gradients=True makes {n_equations} equations of {len(rows)} points in {rows.dim} "
            f"dimensions, and more than {MOST_EQUATIONS} are too many; use gradients='auto', which "
            "uses those of some points, or explore for fewer"
        )
    if len(rows) and not n_known:
        raise SurrogateFitError(
            f"gradients=True needs gradients, but none of {len(rows)} points has one; use "
            "gradients='auto', or pass evaluations with gradients"
        )
