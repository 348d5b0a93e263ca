"""The full process and FITC as surrogates: their settings, their learner, and its fits."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs
import numpy as np

from surrokit.arguments import (
    Limits,
    not_negative,
    one_of,
    optional_positive_integer,
    positive,
    positive_integer,
)
from surrokit.errors import ConfigurationError, SurrogateFitError
from surrokit.interfaces import Evaluations, LearningProblem
from surrokit.surrogate.quality import FitQuality, KeepingLearner, fit_quality
from surrokit.surrogate.shown import ShownSurrogate
from surrokit.surrogate.training import Tail
from surrokit.surrogate.whitening import Whitening
from surrokit.types import Capabilities, FloatArray
from surrokit_gp.fitted import CAPABILITIES, FittedProcess
from surrokit_gp.hyperparameters import (
    MAX_SIGNAL,
    Hyperparameters,
    Likelihood,
    Space,
    given_hyperparameters,
    search,
)
from surrokit_gp.posterior import (
    Inducing,
    Posterior,
    condition,
    condition_sparse,
    exact_likelihood,
    inducing_points,
    sparse_likelihood,
)
from surrokit_gp.rows import TrainingRows
from surrokit_gp.trend import (
    Mean,
    MeanKind,
    Polynomial,
    choose_kind,
    convex,
    least_points,
)

Gradients: TypeAlias = Literal["auto", True, False]
"""Whether gradients are learnt from: where that is cheap, always, never."""

KernelScales: TypeAlias = Literal["isotropic", "per-dimension"]
"""One length scale for all coordinates, or one for each."""

AMPLE_EQUATIONS = 3000
"""Most equations that ``gradients="auto"`` makes, at dim + 1 for a point with its gradient."""

MOST_EQUATIONS = 10_000
"""Most equations that ``gradients=True`` makes: the kernel matrix then takes 800 megabytes."""

_POINTS, _GRADIENTS, _INDUCING, _SUBSET, _HELD = 0, 1, 2, 3, 5
"""Streams of random numbers, so that one choice does not depend on whether another was made."""


@attrs.frozen(kw_only=True)
class Process(ShownSurrogate):
    """Kernel, mean function and noise of a process, and the search for its hyperparameters.

    Parameters
    ----------
    kernel_scales
        ``"isotropic"`` for one length scale, ``"per-dimension"`` for one in each coordinate.
    mean
        ``"zero"``, ``"constant"``, ``"linear"`` or ``"quadratic"``; ``"auto"`` for a
        quadratic one with three equations for each coefficient, else a linear one with ten, else
        a constant.
    noise : float, optional
        Standard deviation of the noise of a value in nats; None to find it with the
        hyperparameters.
    whiten
        Whether the kernel sees whitened positions, or the positions themselves.
    hyperparameters : Hyperparameters or mapping, optional
        Those to use; None to find them.
    max_iterations
        Most iterations of the search.
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

    kernel_scales: KernelScales = attrs.field(
        default="isotropic", validator=one_of("isotropic", "per-dimension")
    )
    mean: Mean = attrs.field(
        default="auto", validator=one_of("auto", "zero", "constant", "linear", "quadratic")
    )
    noise: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(not_negative)
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
    max_iterations: int = attrs.field(default=50, validator=positive_integer)
    max_signal: float = attrs.field(default=MAX_SIGNAL, validator=positive)
    tail: Tail = attrs.field(default="down-weighted", validator=one_of("down-weighted", "full"))

    def __attrs_post_init__(self) -> None:
        if self.noise is not None and self.hyperparameters is not None:
            raise ConfigurationError(
                f"noise={self.noise} is given beside hyperparameters, which hold noise_sd="
                f"{self.hyperparameters.noise_sd}; give one of the two"
            )

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
        return ProcessLearner(
            dim=problem.dim,
            seed=self.seed(problem, rng),
            process=self,
            needs=both if self.gradients is True else value,
            uses=value if self.gradients is False else both,
        )


@attrs.frozen(kw_only=True)
class Fitc(Process):
    """A Gaussian process with M inducing points: the fully independent training conditional.

    Its potential is the posterior mean (Snelson and Ghahramani 2006; section 3.3 of the paper),
    which is a network of radial nodes with centres at the inducing points. A fit to N points
    costs O(M^2 N) time and O(M N) memory, a gradient O(M). It learns from values only; gradients
    that are known serve to tell the quality of the fit.

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
        like those.
    n_search : int, optional
        Most points that the search looks at, drawn at random; None for all. At least ten, and
        twice as many as coefficients. The process itself uses all.

    Raises
    ------
    ConfigurationError
        If a setting makes no sense.
    """

    n_inducing: int | None = attrs.field(default=None, validator=optional_positive_integer)
    inducing: Inducing = attrs.field(default="k-means++", validator=one_of("data", "k-means++"))
    n_search: int | None = attrs.field(default=1000, validator=optional_positive_integer)

    def learner(self, problem: LearningProblem, rng: np.random.Generator) -> ProcessLearner:
        """Return a learner for a problem."""
        return ProcessLearner(dim=problem.dim, seed=self.seed(problem, rng), process=self)


@attrs.define(kw_only=True, eq=False)
class ProcessLearner(KeepingLearner):
    """Conditions a process on all that was observed."""

    process: GaussianProcess | Fitc
    needs: frozenset[str] = frozenset({"value"})
    uses: frozenset[str] = frozenset({"value", "gradient"})
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
        rows = TrainingRows.of(self.join_observed(), self.process.tail)
        use: Gradients = False
        if isinstance(self.process, GaussianProcess):
            use, most = self.process.gradients, self.process.max_points
            if most is not None and len(rows) > most:
                rows = rows.take(rows.draw(most, self.stream(_POINTS)))
        learnt = self._with_gradients(rows, use)
        self._demand(rows, learnt.n_equations)
        kind = choose_kind(self.process.mean, self.dim, learnt.n_equations)
        fit = _Fit(learner=self, whitening=Whitening.of(rows.positions, rows.spread()), mean=kind)
        return attrs.evolve(fit.process(learnt), quality=fit.quality(rows, learnt))

    def stream(self, purpose: int) -> np.random.Generator:
        """Return the random numbers for a purpose, the same in every fit."""
        return np.random.default_rng([self.seed, purpose])

    def _with_gradients(self, rows: TrainingRows, use: Gradients) -> TrainingRows:
        """Return the rows with the gradients that are observations alone."""
        known = rows.gradient_rows
        room = (AMPLE_EQUATIONS - len(rows)) // rows.dim
        if use is True and rows.n_equations > MOST_EQUATIONS:
            raise SurrogateFitError(
                f"gradients=True makes {rows.n_equations} equations of {len(rows)} points in "
                f"{rows.dim} dimensions, and more than {MOST_EQUATIONS} are too many; use "
                "gradients='auto', which uses those of some points, or explore for fewer"
            )
        if use is True and len(rows) and not len(known):
            raise SurrogateFitError(
                f"gradients=True needs gradients, but none of {len(rows)} points has one; use "
                "gradients='auto', or pass evaluations with gradients"
            )
        if use is False or (use == "auto" and room < 0.05 * len(known)):
            known = known[:0]
        elif use == "auto" and len(known) > room:
            known = rows.draw(room, self.stream(_GRADIENTS), known)
        gradients = np.full_like(rows.gradients, np.nan)
        gradients[known] = rows.gradients[known]
        return attrs.evolve(rows, gradients=gradients)

    def _demand(self, rows: TrainingRows, n_equations: int) -> None:
        mean, least = self.process.mean, least_points(self.process.mean, self.dim)
        if len(rows) < 2 or n_equations < least:
            richer = "set mean='auto', " if mean in ("linear", "quadratic") else ""
            rows.demand(least, len(self.join_observed()), richer)
        low, high = rows.values.min(), rows.values.max()
        with np.errstate(over="ignore", invalid="ignore"):
            total = np.square(rows.values - low).sum()
        if not np.isfinite(total):
            raise SurrogateFitError(
                f"the values of the training rows range over [{low:.3g}, {high:.3g}], and their "
                "squares overflow; rescale U, or explore until the chains have settled"
            )


@attrs.define(kw_only=True, eq=False)
class _Fit:
    """One fit: keeps what it found, for the second fit that tells its quality."""

    learner: ProcessLearner
    whitening: Whitening
    mean: MeanKind
    found: list[Hyperparameters] = attrs.field(factory=list)  # also after a curvature was raised
    searching: bool = True
    inducing: FloatArray | None = None

    def process(self, rows: TrainingRows) -> FittedProcess:
        """Return the process fitted to rows, with the gradients that are observations."""
        dim, kind, whiten = rows.dim, self.mean, self.learner.process.whiten
        frame = self.whitening if whiten else self.whitening.shift
        # Near the values, so that a large constant costs no digits.
        level = 0.0 if kind == "zero" else float(np.median(rows.values))
        fixed = Polynomial(level=level, slope=np.zeros(dim), matrix=np.zeros((dim, dim)))
        for stage in (0, 1):
            posterior, found = self._condition(rows.about(frame, kind, fixed), stage)
            trend = Polynomial.of(kind, posterior.profile.coefficients, dim)
            if kind != "quadratic":
                break
            matrix = trend if whiten else trend.in_coordinates(self.whitening.factor)
            raised = convex(matrix.matrix)
            if raised is None:
                break
            if not whiten:
                raised = self.whitening.inverse.T @ raised @ self.whitening.inverse
            kind, fixed = "linear", attrs.evolve(fixed, matrix=raised)
        slopes, variance = posterior.gradient_weights, posterior.variance
        process = FittedProcess(
            origin=frame.mean,
            scaling=frame.inverse.T / posterior.length_scales,
            nodes=posterior.centres,
            levels=variance * posterior.weights,
            slopes=None if slopes is None else variance * slopes,
            polynomial=(trend + fixed).in_coordinates(frame.inverse),
            hyperparameters=found,
            mean=self.mean,
            n_points=len(rows),
            n_gradients=len(rows.gradient_rows),
            kind=kind,
            whitening=frame,
            posterior=posterior,
        )
        if not np.isfinite(process.value(rows.positions)).all():
            raise SurrogateFitError(
                "the fitted process is not finite at its own training points; use whiten=True, or "
                "rescale the parameters"
            )
        return process

    def quality(self, rows: TrainingRows, learnt: TrainingRows) -> FitQuality | None:
        """Return errors at rows held out from another fit with what this one found."""
        n, dim = len(rows), rows.dim
        near, least = np.flatnonzero(rows.tail_sd == 0.0), least_points(self.mean, dim)
        needed = max(2, -(-least // (1 + dim))) if len(learnt.gradient_rows) else least
        # one point in ten, but ten at least, or a quarter of few points, and 200 at most
        number = min(max(n // 10, min(10, n // 4)), 200, len(near), n - needed)
        if number < 2:
            return None
        held = self.learner.stream(_HELD).choice(near, size=number, replace=False)
        rest, out = learnt.take(np.delete(np.arange(n), held)), rows.take(held)
        if rest.n_equations < least:
            return None
        # with the same inducing points: where they lie tells nothing of the values held out
        fitted = attrs.evolve(self, searching=False).process(rest)
        exact = Evaluations(positions=out.positions, values=out.values, gradients=out.gradients)
        return fit_quality(fitted, exact, self.whitening.factor)

    def _condition(self, rows: TrainingRows, stage: int) -> tuple[Posterior, Hyperparameters]:
        """Return the process given equations, and its hyperparameters: given, found, or sought."""
        settings = self.learner.process
        if isinstance(settings, Fitc) and self.inducing is None:
            rng = self.learner.stream(_INDUCING)
            self.inducing = inducing_points(
                settings.inducing, rows.positions, settings.n_inducing, rng
            )
        if settings.hyperparameters is not None:
            found = settings.hyperparameters
        elif not self.searching:
            found = self.found[min(stage, len(self.found) - 1)]
        else:
            found = self._search(rows)
            self.found.append(found)
        if self.inducing is None:
            return condition(rows, found)[0], found
        return condition_sparse(rows, found, self.inducing)[0], found

    def _search(self, rows: TrainingRows) -> Hyperparameters:
        """Return hyperparameters of largest likelihood; starts are compared by few equations."""
        settings, inducing = self.learner.process, self.inducing
        more = self._subset(rows, settings.n_search)
        few = self._subset(more, 120)
        isotropic = settings.kernel_scales == "isotropic"
        space, final = (
            Space.of(some, isotropic, settings.noise, settings.max_signal) for some in (few, more)
        )

        def likelihood(at: Hyperparameters) -> Likelihood:
            if inducing is None:
                return exact_likelihood(more, at)
            return sparse_likelihood(more, at, inducing)

        first = search(
            space,
            lambda at: exact_likelihood(few, at),
            space.starts(),
            min(10, settings.max_iterations),
            every=True,
        )
        starts = [final.pack(each) for each in first]
        return search(final, likelihood, starts, settings.max_iterations)[0]

    def _subset(self, rows: TrainingRows, most: int | None) -> TrainingRows:
        """Return random rows with at most so many equations, or twice as many as unknowns."""
        if most is None or rows.n_equations <= most:
            return rows
        prices = np.ones(len(rows))
        prices[rows.gradient_rows] += rows.dim
        most = max(most, 2 * rows.basis.shape[1], int(10 * prices.max()))
        order = self.learner.stream(_SUBSET).permutation(len(rows))
        return rows.take(np.sort(order[np.cumsum(prices[order]) <= most]))
