"""A process as a surrogate: its settings, its learner, and the fit to training rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self, TypeAlias, cast

import attrs
import numpy as np

from surrokit.arguments import Limits, not_negative, one_of, positive, positive_integer
from surrokit.errors import ConfigurationError, SurrogateFitError
from surrokit.interfaces import Evaluations, LearningProblem
from surrokit.surrogate.quality import FitQuality, KeepingLearner, fit_quality
from surrokit.surrogate.shown import ShownSurrogate
from surrokit.surrogate.training import Tail
from surrokit.surrogate.whitening import Whitening
from surrokit.types import Capabilities, FloatArray
from surrokit_gp.exact import ExactPosterior, Posterior, exact_likelihood
from surrokit_gp.fitc import Inducing, SparsePosterior, inducing_points, sparse_likelihood
from surrokit_gp.fitted import CAPABILITIES, Expansion, FittedProcess
from surrokit_gp.hyperparameters import (
    MAX_SIGNAL,
    Found,
    Hyperparameters,
    Likelihood,
    Space,
    given_hyperparameters,
    search,
)
from surrokit_gp.observations import Frame, Observations, TrainingRows
from surrokit_gp.trend import (
    Mean,
    MeanKind,
    Polynomial,
    choose_kind,
    convex,
    least_points,
    n_coefficients,
)

Gradients: TypeAlias = Literal["auto", True, False]
"""Whether gradients are learnt from: where that is cheap, always, never."""

KernelScales: TypeAlias = Literal["isotropic", "per-dimension"]
"""One length scale for all coordinates, or one for each."""

AMPLE_EQUATIONS = 3000
"""Most equations that ``gradients="auto"`` makes, at dim + 1 for a point with its gradient."""

MOST_EQUATIONS = 10_000
"""Most equations that ``gradients=True`` makes: the kernel matrix then takes 800 megabytes."""

_FEWEST_GRADIENTS = 0.05  # part of the gradients below which gradients="auto" uses none
_GROWTH = 1.5  # change of the number of points after which hyperparameters are found again
_HELD_OUT = (10, 10, 200)  # one point in so many, at least so many, and at most
_SCREENING = 10  # most iterations from each start while starts are compared
_SCREENED = 120  # equations by which they are, if that is at least twice as many as coefficients
_FEWEST = 10  # points that a search looks at, whatever the setting
_NOISY = 0.5  # part of what the mean function leaves beyond which noise explains it all

_POINTS, _GRADIENTS, _INDUCING, _SUBSET, _STARTS, _HELD = range(6)
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
    n_starts: int = attrs.field(default=3, validator=positive_integer)
    max_iterations: int = attrs.field(default=50, validator=positive_integer)
    max_signal: float = attrs.field(default=MAX_SIGNAL, validator=positive)
    tail: Tail = attrs.field(default="down-weighted", validator=one_of("down-weighted", "full"))

    def __attrs_post_init__(self) -> None:
        if self.noise is not None and self.hyperparameters is not None:
            raise ConfigurationError(
                f"noise={self.noise} is given beside hyperparameters, which hold noise_sd="
                f"{self.hyperparameters.noise_sd}; give one of the two"
            )

    def learner_of(
        self, problem: LearningProblem, rng: np.random.Generator, **settings: Any
    ) -> ProcessLearner:
        """Return a learner for a problem, with settings of its own."""
        if self.hyperparameters is not None:
            self.hyperparameters.scales(problem.dim)
        seed = int(rng.integers(2**53))
        return ProcessLearner(dim=problem.dim, seed=seed, process=self, **settings)


@attrs.define(kw_only=True, eq=False)
class ProcessLearner(KeepingLearner):
    """Conditions a process on all that was observed.

    The first fit fixes the whitening. Hyperparameters are found again when the number of points
    has grown by half. Settings are those of the surrogates; ``inducing`` is None for a full
    process.
    """

    process: Process
    needs: frozenset[str] = frozenset({"value"})
    uses: frozenset[str] = frozenset({"value", "gradient"})
    n_search: int | None = None
    max_points: int | None = None
    gradients: Gradients = False
    inducing: Inducing | None = None
    n_inducing: int | None = None
    _whitening: Whitening | None = attrs.field(default=None, init=False, repr=False)
    _numbers: tuple[int, int, int] = attrs.field(default=(0, 0, 0), init=False, repr=False)
    _stages: tuple[Found, ...] = attrs.field(default=(), init=False, repr=False)

    @property
    def provides(self) -> Capabilities:
        """Capabilities of a fitted process."""
        return CAPABILITIES

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
        if self.max_points is not None and len(rows) > self.max_points:
            rows = rows.take(rows.draw(self.max_points, _stream(self.seed, _POINTS)))
        learnt = _with_gradients(rows, self.gradients, _stream(self.seed, _GRADIENTS))
        n_gradients = int(learnt.with_gradient.sum())
        kind = self._kind(rows, len(rows) + n_gradients * self.dim)
        whitening = self._whitening
        if whitening is None:
            whitening = Whitening.of(rows.positions, rows.spread())
        numbers = len(rows), n_coefficients(kind, self.dim), n_gradients
        fit = _Fit(
            learner=self,
            frame=Frame(whitening=whitening, whiten=self.process.whiten),
            mean=kind,
            stages=list(self._stages) if self._is_near(*numbers) else [],
        )
        process = attrs.evolve(fit.process(learnt), quality=fit.quality(rows, learnt))
        if not self._is_near(*numbers):
            self._numbers = numbers
        self._stages, self._whitening = tuple(fit.stages), whitening
        return process

    def _kind(self, rows: TrainingRows, n_equations: int) -> MeanKind:
        mean, least = self.process.mean, least_points(self.process.mean, self.dim)
        if len(rows) < 2 or n_equations < least:
            richer = "set mean='auto', " if mean in ("linear", "quadratic") else ""
            rows.demand(least, len(self.join_observed()), richer)
        rows.demand_range()
        return choose_kind(mean, self.dim, n_equations)

    def _is_near(self, n_points: int, n_coefficients: int, n_gradients: int) -> bool:
        """Return whether the numbers are close enough to those of the last search."""
        points, coefficients, gradients = self._numbers
        return (
            points <= n_points * _GROWTH
            and n_points < points * _GROWTH
            and coefficients == n_coefficients
            and (gradients > 0) == (n_gradients > 0)
        )

    def state(self) -> dict[str, Any]:
        """Return the seed, all rows observed, and what fits so far have fixed."""
        state = super().state()
        if self._whitening is not None:
            state["whitening"] = attrs.asdict(self._whitening)
            state["numbers"] = self._numbers
            state["stages"] = [attrs.asdict(stage) for stage in self._stages]
        return state

    def restore(self, state: Mapping[str, Any]) -> Self:
        """Return a learner with the same settings that goes on from what ``state`` returned."""
        learner = super().restore(state)
        if "whitening" in state:
            learner._whitening = Whitening(**state["whitening"])
            learner._numbers = cast("tuple[int, int, int]", tuple(state["numbers"]))
            learner._stages = tuple(Found(**stage) for stage in state["stages"])
        return learner


def _with_gradients(rows: TrainingRows, use: Gradients, rng: np.random.Generator) -> TrainingRows:
    """Return the rows with the gradients that are observations alone."""
    known = np.flatnonzero(rows.with_gradient)
    room = (AMPLE_EQUATIONS - len(rows)) // rows.dim
    if use is True:
        _demand_gradients(rows, len(known))
    elif use is False or room < _FEWEST_GRADIENTS * len(known):
        known = known[:0]
    elif len(known) > room:
        known = rows.draw(room, rng, known)
    gradients = np.full_like(rows.gradients, np.nan)
    gradients[known] = rows.gradients[known]
    return attrs.evolve(rows, gradients=gradients)


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


@attrs.define(kw_only=True, eq=False)
class _Fit:
    """One fit: keeps what it found, for the second fit that tells its quality."""

    learner: ProcessLearner
    frame: Frame
    mean: MeanKind
    stages: list[Found]
    searching: bool = True
    inducing: FloatArray | None = None

    def process(self, rows: TrainingRows) -> FittedProcess:
        """Return the process fitted to rows, with the gradients that are observations."""
        dim, kind = rows.dim, self.mean
        # Near the values, so that a large constant costs no digits.
        level = 0.0 if kind == "zero" else float(np.median(rows.values))
        fixed = Polynomial(level=level, slope=np.zeros(dim), matrix=np.zeros((dim, dim)))
        posterior, found = self._posterior(rows, kind, fixed, 0)
        trend = Polynomial.of(kind, posterior.profile.coefficients, dim)
        matrix = convex(trend.matrix) if kind == "quadratic" else None
        if matrix is not None:
            kind, fixed = "linear", attrs.evolve(fixed, matrix=matrix)
            posterior, found = self._posterior(rows, kind, fixed, 1)
            trend = Polynomial.of(kind, posterior.profile.coefficients, dim)
        process = FittedProcess(
            hyperparameters=found.hyperparameters,
            mean=self.mean,
            n_points=len(rows),
            n_gradients=int(rows.with_gradient.sum()),
            frame=self.frame,
            kind=kind,
            posterior=posterior,
            expansion=_expansion(posterior, self.frame, trend + fixed),
        )
        if not np.isfinite(process.value(rows.positions)).all():
            raise SurrogateFitError(
                "the fitted process is not finite at its own training points; use whiten=True, or "
                "rescale the parameters"
            )
        return process

    def quality(self, rows: TrainingRows, learnt: TrainingRows) -> FitQuality | None:
        """Return errors at rows held out from another fit with what this one found."""
        n, dim, (part, fewest, most) = len(rows), rows.dim, _HELD_OUT
        near, least = np.flatnonzero(rows.tail_sd == 0.0), least_points(self.mean, dim)
        has_gradients = learnt.with_gradient.any()
        needed = max(2, -(-max(least, 2) // (1 + dim)) if has_gradients else least)
        number = min(max(n // part, min(fewest, n // 4)), most, len(near), n - needed)
        if number < 2:
            return None
        held = _stream(self.learner.seed, _HELD).choice(near, size=number, replace=False)
        rest, out = learnt.take(np.delete(np.arange(n), held)), rows.take(held)
        if len(rest) + int(rest.with_gradient.sum()) * dim < least:
            return None
        # with the same inducing points: where they lie tells nothing of the values held out
        fitted = attrs.evolve(self, searching=False).process(rest)
        exact = Evaluations(positions=out.positions, values=out.values, gradients=out.gradients)
        return fit_quality(fitted, exact, self.frame.whitening.factor)

    def _posterior(
        self, rows: TrainingRows, kind: MeanKind, trend: Polynomial, stage: int
    ) -> tuple[Posterior, Found]:
        """Return the process about a mean function, less a trend."""
        observations = Observations.of(rows, self.frame, kind, trend)
        given = self.learner.process.hyperparameters
        if given is not None:
            found = Found(hyperparameters=given)
        elif stage < len(self.stages) or not self.searching:
            found = self.stages[min(stage, len(self.stages) - 1)]
        else:
            found = self._search(observations)
            self.stages.append(found)
        inducing = self._inducing(observations) if found.inducing is None else found.inducing
        if inducing is None:
            return ExactPosterior.of(observations, found.hyperparameters), found
        return SparsePosterior.of(observations, found.hyperparameters, inducing), found

    def _inducing(self, observations: Observations) -> FloatArray | None:
        """Return the inducing points to begin with, found once; None for a full process."""
        kind, number = self.learner.inducing, self.learner.n_inducing
        if kind is not None and self.inducing is None:
            rng = _stream(self.learner.seed, _INDUCING)
            self.inducing = inducing_points(kind, observations.rows.positions, number, rng)
        return self.inducing

    def _search(self, observations: Observations) -> Found:
        """Return the hyperparameters, and inducing points if these move, of largest likelihood.

        Starts are compared by the exact likelihood of few equations. To these, in many dimensions,
        everything may look like noise; then more are asked, and every end is a start.
        """
        inducing, settings = self._inducing(observations), self.learner.process
        subset = self._subset(observations, self.learner.n_search)
        few = self._subset(observations, _SCREENED)
        starts = self._screen(few)
        noise = starts[0].hyperparameters.noise_sd
        doubtful = 0.0 < _NOISY * few.size_left() < noise and len(few) < len(subset)
        if doubtful:
            starts = self._screen(subset)

        def likelihood(values: Hyperparameters, moved: FloatArray | None) -> Likelihood:
            where = inducing if moved is None else moved
            if where is None:
                return exact_likelihood(subset, values)
            return sparse_likelihood(subset, values, where)

        space, iterations = self._space(subset), settings.max_iterations
        vectors = [space.pack(each.hyperparameters) for each in starts]
        found = search(space, likelihood, vectors, iterations, every=doubtful)[0]
        if self.learner.inducing == "optimised":
            vectors = [space.pack(found.hyperparameters)]
            found = search(space, likelihood, vectors, iterations, inducing)[0]
        return found

    def _screen(self, few: Observations) -> list[Found]:
        """Return where a few iterations from each start lead, best first."""
        settings, space = self.learner.process, self._space(few)
        return search(
            space,
            lambda values, _: exact_likelihood(few, values),
            space.starts(settings.n_starts, _stream(self.learner.seed, _STARTS)),
            min(_SCREENING, settings.max_iterations),
        )

    def _space(self, observations: Observations) -> Space:
        settings = self.learner.process
        isotropic = settings.kernel_scales == "isotropic"
        return Space.of(observations, isotropic, settings.noise, settings.max_signal)

    def _subset(self, observations: Observations, most: int | None) -> Observations:
        """Return random rows with at most so many equations, or twice as many as unknowns."""
        if most is None or observations.n_equations <= most:
            return observations
        prices = np.ones(len(observations))
        prices[observations.gradient_rows] += observations.rows.dim
        most = max(most, 2 * observations.basis.shape[1], int(_FEWEST * prices.max()))
        order = _stream(self.learner.seed, _SUBSET).permutation(len(observations))
        return observations.take(np.sort(order[np.cumsum(prices[order]) <= most]))


def _expansion(posterior: Posterior, frame: Frame, trend: Polynomial) -> Expansion:
    """Return the mean of a process as a function of q; the trend is one of whitened positions."""
    slopes = posterior.gradient_weights
    return Expansion(
        origin=frame.whitening.mean,
        scaling=frame.kernel.inverse.T / posterior.length_scales,
        centres=posterior.centres,
        weights=posterior.variance * posterior.weights,
        gradient_weights=None if slopes is None else posterior.variance * slopes,
        polynomial=trend.in_coordinates(frame.whitening.inverse),
    )


def _stream(seed: int, purpose: int) -> np.random.Generator:
    return np.random.default_rng([seed, purpose])
