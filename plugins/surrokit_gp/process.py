"""The full process and FITC as surrogates: their settings, their learner, and its fits."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.arguments import (
    Limits,
    one_of,
    optional_positive_integer,
    positive,
)
from surrokit.errors import SurrogateFitError
from surrokit.interfaces import Evaluations, LearningProblem
from surrokit.surrogate.quality import KeepingLearner
from surrokit.surrogate.training import Tail
from surrokit.surrogate.whitening import Whitening
from surrokit.types import Capabilities, FloatArray
from surrokit_gp.fitted import CAPABILITIES, FittedProcess
from surrokit_gp.posterior import (
    Inducing,
    Posterior,
    condition,
    condition_sparse,
    exact_likelihood,
    inducing_points,
    left_out,
    quality_of,
    sparse_likelihood,
)
from surrokit_gp.rows import TrainingRows
from surrokit_gp.search import Hyperparameters, Space, given_hyperparameters, search
from surrokit_gp.trend import Mean, Polynomial, choose_kind, convex, least_points

AMPLE_EQUATIONS = 3000
"""Most equations that gradients make, at dim + 1 for a point with its gradient."""

MOST_POINTS = 3000
"""Most points that a full process is conditioned on, drawn at random."""

_POINTS, _GRADIENTS, _INDUCING, _SUBSET = 0, 1, 2, 3
"""Streams of random numbers, so that one choice does not depend on whether another was made."""


@attrs.frozen(kw_only=True)
class Process:
    """Kernel, mean function and noise of a process, and the search for its hyperparameters.

    Parameters
    ----------
    mean
        ``"zero"``, ``"constant"``, ``"linear"`` or ``"quadratic"``; ``"auto"`` for a
        quadratic one with three equations for each coefficient, else a linear one with ten, else
        a constant.
    whiten
        Whether the kernel sees whitened positions, or the positions themselves.
    hyperparameters : Hyperparameters or mapping, optional
        Those to use; None to find them.
    max_signal
        Largest standard deviation of the process that the search looks at, in standard deviations
        of the values. A process far above it is close to a polynomial, and loses digits.
    tail
        ``"down-weighted"``: rows far above the least U have noise of their own; ``"full"``: they
        count as any other.

    Raises
    ------
    ConfigurationError
        If a setting makes no sense.
    """

    mean: Mean = attrs.field(
        default="auto", validator=one_of("auto", "zero", "constant", "linear", "quadratic")
    )
    whiten: bool = attrs.field(default=True, validator=one_of(True, False))
    hyperparameters: Hyperparameters | None = attrs.field(
        default=None,
        converter=given_hyperparameters,
        validator=Limits(
            "None, Hyperparameters, or a mapping with length_scales, signal_sd and noise_sd",
            lambda value: isinstance(value, Hyperparameters | None),
        ),
    )
    max_signal: float = attrs.field(default=5.0, validator=positive)
    tail: Tail = attrs.field(default="down-weighted", validator=one_of("down-weighted", "full"))

    def seed(self, problem: LearningProblem, rng: np.random.Generator) -> int:
        """Return a learner's seed, if the settings are for so many parameters."""
        if self.hyperparameters is not None:
            self.hyperparameters.scales(problem.dim)
        return int(rng.integers(2**53))


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
    least 0.01 nats.

    Where gradients are known they are observations as well (Rasmussen and Williams 2006, section
    9.4), with the same noise as values: sigma in nats for the change of U over one length scale.

    Parameters
    ----------
    n_search : int, optional
        Most equations that the search looks at, those of points drawn at random; None for all.
        At least ten points, and twice as many equations as coefficients. The process itself uses
        all.
    gradients
        Whether gradients are learnt from: those of as many points as keep the equations within
        3000, drawn at random, unless that were less than one in twenty.

    Raises
    ------
    ConfigurationError
        If a setting makes no sense.
    """

    n_search: int | None = attrs.field(default=500, validator=optional_positive_integer)
    gradients: bool = attrs.field(default=True, validator=one_of(True, False))

    def learner(self, problem: LearningProblem, rng: np.random.Generator) -> ProcessLearner:
        """Return a learner for a problem."""
        uses = frozenset({"value", "gradient"} if self.gradients else {"value"})
        seed = self.seed(problem, rng)
        return ProcessLearner(dim=problem.dim, seed=seed, process=self, uses=uses)


@attrs.frozen(kw_only=True)
class Fitc(Process):
    """A Gaussian process with M inducing points: the fully independent training conditional.

    Its potential is the posterior mean (Snelson and Ghahramani 2006; section 3.3 of the paper),
    which is a network of radial nodes with centres at the inducing points. A fit to N points
    costs O(M^2 N) time and O(M N) memory, a gradient O(M). It learns from values only.

    Mean function, quadratics that are not convex and hyperparameters are treated as in
    :class:`~surrokit_gp.process.GaussianProcess`; the likelihood that is maximised is that of
    FITC.

    Parameters
    ----------
    n_inducing : int, optional
        M; None for half the number of points, but no more than 300. More than there are distinct
        points cannot be fitted.
    inducing
        ``"data"`` draws inducing points from the training points; ``"k-means++"`` spreads them
        like those; ``"optimised"`` moves them from there, with the hyperparameters unless these are
        given, to where the likelihood is largest.
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
        return ProcessLearner(dim=problem.dim, seed=self.seed(problem, rng), process=self)


@attrs.define(kw_only=True, eq=False)
class ProcessLearner(KeepingLearner):
    """Conditions a process on all that was observed."""

    process: GaussianProcess | Fitc
    needs: frozenset[str] = frozenset({"value"})
    uses: frozenset[str] = frozenset({"value"})
    provides: Capabilities = CAPABILITIES

    def keep_used(self, evaluations: Evaluations) -> Evaluations:
        """Return values, and gradients if they are used."""
        gradients = evaluations.gradients if "gradient" in self.uses else None
        return attrs.evolve(evaluations, gradients=gradients, outputs=None, jacobians=None)

    def fit(self) -> FittedProcess:
        """Return the process given everything observed.

        Raises
        ------
        SurrogateFitError
            If there are too few points with a finite value, or they cannot be fitted.
        """
        settings, rows = self.process, TrainingRows.of(self.join_observed(), self.process.tail)
        if isinstance(settings, GaussianProcess):
            if len(rows) > MOST_POINTS:
                rows = rows.take(rows.draw(MOST_POINTS, self._stream(_POINTS)))
            rows = self._with_few_gradients(rows)
        self._demand(rows)
        mean = kind = choose_kind(settings.mean, self.dim, rows.n_equations)
        whitening = Whitening.of(rows.positions, rows.spread())
        frame = whitening if settings.whiten else whitening.shift
        # near the values, so that a large constant costs no digits
        level = 0.0 if kind == "zero" else float(np.median(rows.values))
        fixed = attrs.evolve(Polynomial.of(np.empty(0), self.dim), level=level)
        for _ in range(2):
            equations = rows.about(frame, kind, fixed)
            posterior, errors, found = self._condition(equations)
            if kind != "quadratic":
                break
            matrix = Polynomial.of(posterior.profile.coefficients, self.dim).matrix
            to_whitened = np.eye(self.dim) if settings.whiten else whitening.factor
            raised = convex(to_whitened.T @ matrix @ to_whitened)
            if raised is None:
                break
            back = np.linalg.inv(to_whitened)
            kind, fixed = "linear", attrs.evolve(fixed, matrix=back.T @ raised @ back)
        gradients = rows.gradients @ frame.factor
        process = FittedProcess.of(
            posterior,
            rows,
            frame,
            fixed,
            hyperparameters=found,
            mean=mean,
            quality=quality_of(rows, errors, gradients),
        )
        if not np.isfinite(process.value(rows.positions)).all():
            raise SurrogateFitError(
                "the fitted process is not finite at its own training points; use whiten=True, or "
                "rescale the parameters"
            )
        return process

    def _stream(self, purpose: int) -> np.random.Generator:
        """Return the random numbers for a purpose, the same in every fit."""
        return np.random.default_rng([self.seed, purpose])

    def _with_few_gradients(self, rows: TrainingRows) -> TrainingRows:
        """Return the rows with as many of their gradients as are cheap."""
        known, room = rows.gradient_rows, (AMPLE_EQUATIONS - len(rows)) // rows.dim
        if len(known) <= room:
            return rows
        known = rows.draw(max(room, 0), self._stream(_GRADIENTS), known)
        gradients = np.full_like(rows.gradients, np.nan)
        if room >= 0.05 * len(rows.gradient_rows):
            gradients[known] = rows.gradients[known]
        return attrs.evolve(rows, gradients=gradients)

    def _demand(self, rows: TrainingRows) -> None:
        mean, least = self.process.mean, least_points(self.process.mean, self.dim)
        if len(rows) < 2 or rows.n_equations < least:
            richer = "set mean='auto', " if mean in ("linear", "quadratic") else ""
            rows.demand(least, len(self.join_observed()), richer)
        low, high = rows.values.min(), rows.values.max()
        with np.errstate(over="ignore", invalid="ignore"):
            total = np.square(rows.values - low).sum()
        if not np.isfinite(total):
            raise SurrogateFitError(
                f"the values of the training rows range over [{low:.3g}, {high:.3g}], and their "
                "squares overflow; rescale U, or explore until the chains have converged"
            )

    # --- of equations ---

    def _condition(self, rows: TrainingRows) -> tuple[Posterior, FloatArray, Hyperparameters]:
        """Return the process given equations, errors at rows left out, and hyperparameters."""
        settings, inducing = self.process, None
        if isinstance(settings, Fitc):
            inducing = inducing_points(
                settings.inducing, rows.positions, settings.n_inducing, self._stream(_INDUCING)
            )
        found = settings.hyperparameters
        if found is None:
            found, inducing = self._search(rows, inducing)
        if inducing is None:
            exact, _, dual = condition(rows, found)
            return exact, left_out(rows, exact, dual), found
        sparse, (*_, dual, _, own) = condition_sparse(rows, found, inducing)
        missing = np.full_like(rows.positions, np.nan)
        return sparse, np.column_stack([dual / own, missing]), found

    def _search(
        self, rows: TrainingRows, inducing: FloatArray | None
    ) -> tuple[Hyperparameters, FloatArray | None]:
        """Return hyperparameters of largest likelihood, and inducing points, moved if so asked."""
        settings = self.process
        few = self._subset(rows, settings.n_search)
        space = Space.of(few, settings.max_signal)

        def objective(point: FloatArray) -> tuple[float, FloatArray]:
            found = space.unpack(point)
            if inducing is None:
                value, slopes = exact_likelihood(few, found)
            else:
                where = point[n:].reshape(inducing.shape) if len(point) > n else inducing
                value, slopes = sparse_likelihood(few, found, where)
            return value, space.slope(slopes, rows.dim)[: len(point)]

        n = len(space.bounds)
        best = search(objective, list(space.starts), space.bounds, 50)
        if inducing is not None and isinstance(settings, Fitc) and settings.inducing == "optimised":
            best = search(objective, [np.append(best, inducing)], space.bounds, 50)
            inducing = best[n:].reshape(inducing.shape)
        return space.unpack(best), inducing

    def _subset(self, rows: TrainingRows, most: int | None) -> TrainingRows:
        """Return random rows with at most so many equations, or twice as many as unknowns."""
        if most is None or rows.n_equations <= most:
            return rows
        prices = np.ones(len(rows))
        prices[rows.gradient_rows] += rows.dim
        most = max(most, 2 * rows.basis.shape[1], int(10 * prices.max()))
        order = self._stream(_SUBSET).permutation(len(rows))
        return rows.take(np.sort(order[np.cumsum(prices[order]) <= most]))
