"""From training rows to a fitted process."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.errors import SurrogateFitError
from surrokit.surrogate.quality import FitQuality, fit_quality
from surrokit.surrogate.whitening import Whitening
from surrokit.types import FloatArray, IntArray
from surrokit_gp.data.mean_functions import (
    Mean,
    MeanKind,
    Polynomial,
    choose_kind,
    convex,
    least_points,
    n_coefficients,
)
from surrokit_gp.data.observations import Frame, Observations
from surrokit_gp.data.training_rows import TrainingRows, demand_range
from surrokit_gp.fit.memory import Memory
from surrokit_gp.fit.search import Found, Search
from surrokit_gp.kernel.hyperparameters import Hyperparameters
from surrokit_gp.posterior.exact import exact_likelihood
from surrokit_gp.posterior.fitted import FittedProcess
from surrokit_gp.posterior.likelihood import Likelihood
from surrokit_gp.posterior.model import Model
from surrokit_gp.posterior.posterior import Posterior

_HELD_OUT = (10, 10, 200)
"""One in so many points is held out, at least so many if that is no more than a quarter, and at
most so many."""

_SCREENED = 120
"""Equations by which starts are compared, or twice as many as coefficients if that is more."""

_FEWEST = 10
"""Points that a search looks at, whatever it is told."""

_NOISY = 0.5
"""Share of what the mean function leaves beyond which noise explains it all."""

_POINTS, _SLOPES, _INDUCING, _SUBSET, _STARTS, _HELD = range(6)
"""Streams of random numbers, so that one choice does not depend on whether another was made."""


@attrs.frozen(kw_only=True, eq=False)
class Data:
    """Rows, and how they are seen.

    Parameters
    ----------
    rows
        All rows.
    slope_rows : ndarray of shape (k,)
        Those whose gradients are used.
    frame
        The coordinates.
    kind
        The mean function.
    """

    rows: TrainingRows
    slope_rows: IntArray
    frame: Frame
    kind: MeanKind

    def observations(self, kind: MeanKind, trend: Polynomial) -> Observations:
        """Return the rows as equations about a mean function, less a trend."""
        return Observations.of_rows(self.rows, self.slope_rows, self.frame, kind, trend)

    def without(self, held: IntArray) -> Data:
        """Return all but some rows."""
        kept = np.delete(np.arange(len(self.rows)), held)
        place = np.full(len(self.rows), -1, dtype=np.int64)
        place[kept] = np.arange(len(kept))
        slope_rows = place[self.slope_rows]
        return attrs.evolve(self, rows=self.rows.take(kept), slope_rows=slope_rows[slope_rows >= 0])


@attrs.frozen(kw_only=True, eq=False)
class Training:
    """How a process is fitted to rows.

    Parameters
    ----------
    model
        A full process, or FITC.
    search
        How hyperparameters are found.
    mean
        The mean function.
    hyperparameters : Hyperparameters or None
        Those to use; None to search.
    n_search : int or None
        Most equations that a search looks at; None for all.
    max_points : int or None
        Most points that a process is conditioned on; None for all.
    """

    model: Model
    search: Search
    mean: Mean
    hyperparameters: Hyperparameters | None
    n_search: int | None
    max_points: int | None = None

    def data(
        self, rows: TrainingRows, n_observed: int, frame: Frame | None, seed: int, whiten: bool
    ) -> Data:
        """Return what there is to fit to.

        Parameters
        ----------
        rows
            The rows.
        n_observed
            How many rows were observed in all.
        frame : Frame or None
            The coordinates, once they are fixed.
        seed
            From which choices of rows are drawn.
        whiten
            Whether the kernel sees whitened positions.

        Raises
        ------
        SurrogateFitError
            If there are too few rows.
        """
        if self.max_points is not None and len(rows) > self.max_points:
            rows = rows.take(rows.draw(self.max_points, _stream(seed, _POINTS)))
        slope_rows = self.model.slope_rows(rows, _stream(seed, _SLOPES))
        n_equations = len(rows) + len(slope_rows) * rows.dim
        least = least_points(self.mean, rows.dim)
        if len(rows) < 2 or n_equations < least:
            richer = self.mean in ("linear", "quadratic")
            rows.demand(least, n_observed, "set mean='auto', " if richer else "")
        demand_range(rows.values)
        if frame is None:
            frame = Frame(whitening=Whitening.of(rows.positions, rows.spread()), whiten=whiten)
        kind = choose_kind(self.mean, rows.dim, n_equations)
        return Data(rows=rows, slope_rows=slope_rows, frame=frame, kind=kind)

    def fit(self, data: Data, seed: int, memory: Memory | None) -> tuple[FittedProcess, Memory]:
        """Return a fitted process, and what is to be remembered for the next fit.

        Parameters
        ----------
        data
            What to fit to.
        seed
            Of all random choices.
        memory : Memory or None
            What earlier fits found.

        Raises
        ------
        SurrogateFitError
            If the numbers cannot be handled.
        """
        facts = {
            "n_points": len(data.rows),
            "n_coefficients": n_coefficients(data.kind, data.rows.dim),
            "n_gradients": len(data.slope_rows),
        }
        if memory is None or not memory.holds_for(**facts):
            memory = Memory(stages=(), **facts)
        fit = _Fit(training=self, seed=seed, stages=list(memory.stages))
        process = fit.process(data)
        process = attrs.evolve(process, quality=fit.quality(data))
        return process, attrs.evolve(memory, stages=tuple(fit.stages))


@attrs.define(kw_only=True, eq=False)
class _Fit:
    """One fit: keeps what it found, for the second fit that tells its quality."""

    training: Training
    seed: int
    stages: list[Found]
    searching: bool = True
    inducing: FloatArray | None = None

    def process(self, data: Data) -> FittedProcess:
        """Return the process fitted to data."""
        dim, kind = data.rows.dim, data.kind
        # Near the values, so that a large constant costs no digits.
        level = 0.0 if kind == "zero" else float(np.median(data.rows.values))
        fixed = Polynomial(level=level, slope=np.zeros(dim), matrix=np.zeros((dim, dim)))
        posterior, hyperparameters = self._posterior(data.observations(kind, fixed), 0)
        trend = Polynomial.of(kind, posterior.coefficients, dim)
        matrix = convex(trend.matrix) if kind == "quadratic" else None
        if matrix is not None:
            kind, fixed = "linear", attrs.evolve(fixed, matrix=matrix)
            posterior, hyperparameters = self._posterior(data.observations(kind, fixed), 1)
            trend = Polynomial.of(kind, posterior.coefficients, dim)
        process = FittedProcess.of(
            posterior,
            data.frame,
            trend.plus(fixed),
            hyperparameters,
            mean=data.kind,
            kind=kind,
            n_points=len(data.rows),
            n_gradients=len(data.slope_rows),
        )
        if not np.isfinite(process.value(data.rows.positions)).all():
            raise SurrogateFitError(
                "the fitted process is not finite at its own training points; use whiten=True, or "
                "rescale the parameters"
            )
        return process

    def quality(self, data: Data) -> FitQuality | None:
        """Return errors at held-out points of a fit with what this one found."""
        rows = data.rows
        n, (part, least, most) = len(rows), _HELD_OUT
        near = np.flatnonzero(rows.tail_sd == 0.0)
        needed = max(least_points(data.kind, rows.dim), 2)
        if len(data.slope_rows):
            needed = max(2, -(-needed // (1 + rows.dim)))
        number = min(max(n // part, min(least, n // 4)), most, len(near), n - needed)
        if number < 2:
            return None
        held = _stream(self.seed, _HELD).choice(near, size=number, replace=False)
        rest = data.without(held)
        if len(rest.rows) + rest.slope_rows.size * rows.dim < least_points(data.kind, rows.dim):
            return None
        # with the same inducing points: where they lie tells nothing of the values held out
        other = attrs.evolve(self, searching=False)
        fitted = other.process(rest)
        return fit_quality(fitted, rows.take(held).evaluations, data.frame.whitening.factor)

    def _posterior(
        self, observations: Observations, stage: int
    ) -> tuple[Posterior, Hyperparameters]:
        found = self._find(observations, stage)
        inducing = found.inducing
        if inducing is None:
            inducing = self._inducing(observations)
        model = self.training.model
        posterior = model.posterior(observations, found.hyperparameters, inducing)
        return posterior, found.hyperparameters

    def _inducing(self, observations: Observations) -> FloatArray | None:
        if self.inducing is None:
            rng = _stream(self.seed, _INDUCING)
            self.inducing = self.training.model.inducing(observations.positions, rng)
        return self.inducing

    def _find(self, observations: Observations, stage: int) -> Found:
        given = self.training.hyperparameters
        if given is not None:
            return Found(hyperparameters=given, inducing=None)
        if stage < len(self.stages):
            return self.stages[stage]
        if not self.searching:
            return self.stages[-1]
        self.stages.append(self._search(observations))
        return self.stages[-1]

    def _search(self, observations: Observations) -> Found:
        training, model = self.training, self.training.model
        inducing = self._inducing(observations)
        subset = _subset(observations, training.n_search, _stream(self.seed, _SUBSET))

        def likelihood(hyperparameters: Hyperparameters, moved: FloatArray | None) -> Likelihood:
            where = inducing if moved is None else moved
            return model.likelihood(subset, hyperparameters, where)

        starts, doubtful = self._starts(observations, subset)
        found = training.search.find(subset, likelihood, starts, every=doubtful)
        if model.moves:
            starts = [found.hyperparameters]
            found = training.search.find(subset, likelihood, starts, inducing)
        return found

    def _starts(
        self, observations: Observations, subset: Observations
    ) -> tuple[list[Hyperparameters], bool]:
        """Return where to start, best first, and whether that order is to be doubted.

        Starts are compared by the exact likelihood of few equations. To these, in many dimensions,
        everything may look like noise; then more are asked.
        """
        few = _subset(observations, _SCREENED, _stream(self.seed, _SUBSET))
        starts = self._screen(few)
        doubtful = 0.0 < _NOISY * few.size_left() < starts[0].noise_sd and len(few) < len(subset)
        return (self._screen(subset) if doubtful else starts), doubtful

    def _screen(self, few: Observations) -> list[Hyperparameters]:
        return self.training.search.screen(
            few,
            lambda hyperparameters, _: exact_likelihood(few, hyperparameters),
            _stream(self.seed, _STARTS),
        )


def _stream(seed: int, purpose: int) -> np.random.Generator:
    return np.random.default_rng([seed, purpose])


def _subset(
    observations: Observations, n_search: int | None, rng: np.random.Generator
) -> Observations:
    """Return random rows with no more equations than asked for, but twice as many as unknowns."""
    if n_search is None or observations.n_equations <= n_search:
        return observations
    prices = np.ones(len(observations))
    prices[observations.slope_rows] += observations.dim
    most = max(n_search, 2 * observations.basis.shape[1], _FEWEST * prices.max())
    order = rng.permutation(len(observations))
    chosen = order[np.cumsum(prices[order]) <= most]
    return observations.take(np.sort(chosen))
