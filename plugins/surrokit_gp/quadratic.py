"""A process about a random quadratic, for few values of a nearly normal density.

In coordinates z in which the target is nearly standard normal, U(z) = |z|^2 / 2 + a random
quadratic + a random smooth function. The quadratic has the covariance s^2 (1 + z . z' / dim)^2, but
for a factor of the standard deviations of products of two coordinates: many densities have few of
these. Each coefficient is normal, so that fewer values than coefficients do no harm. The smooth
function has the squared-exponential covariance. A mean function of a quadratic with such a kernel
is that of Acerbi (2018, arXiv:1810.05558).

Of a process are sought log l_k, the log of the smooth function's standard deviation, that of the
noise of values where they are noisy and it is not known, log s, and the log of the factor. Their
density is normal about the usual ones, as few values say little of so many scales.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, Self

import attrs
import numpy as np
from scipy.stats import chi2

from surrokit.arguments import check_positions
from surrokit.capabilities import COVARIANCE, GRADIENT, GRADIENT_ALONE, VARIANCE
from surrokit.coordinates.constraints import CoordinateMap
from surrokit.errors import SurrogateFitError
from surrokit.interfaces import Evaluations, LearningProblem
from surrokit.limits import check_deadline, threads_for
from surrokit.potentials import Straight
from surrokit.surrogate.quality import FitQuality, KeepingLearner
from surrokit.surrogate.training import least_points
from surrokit.surrogate.whitening import Whitening
from surrokit.types import BoolArray, Capabilities, FloatArray
from surrokit_gp.bend import Bend
from surrokit_gp.coordinates import (
    about_lowest,
    flat_from,
    follow_bent_quadratic,
    follow_quadratic,
    refocus,
    straighten,
)
from surrokit_gp.fitted import FittedProcess
from surrokit_gp.posterior import condition, exact_likelihood, left_out, quality_of
from surrokit_gp.rows import TrainingRows
from surrokit_gp.search import Hyperparameters, search
from surrokit_gp.trend import Polynomial

CAPABILITIES: Capabilities = frozenset({GRADIENT, GRADIENT_ALONE, VARIANCE, COVARIANCE})
"""Capabilities of a fitted process."""

UNSURE = 1.0
"""Standard deviation, in nats, above which a process of exact values is not trusted."""

_ROOM = 1.0  # from the wall to the draws inside


def typical_noise(noise_sd: FloatArray, found: Hyperparameters | None = None) -> float:
    """Return the usual one of standard deviations (n,) of values' noise.

    Where it is not known it is what was found, or 1 as long as nothing was.
    """
    unknown = 1.0 if found is None else found.noise_sd
    return float(np.median(np.where(np.isnan(noise_sd), unknown, noise_sd)))


def kept_up_to(dim: int, noise_sd: FloatArray) -> float:
    """Return the height above the least of values with noise (n,) from which on they are flattened.

    The least of noisy values lies below U.
    """
    return flat_from(dim) + 3.0 * typical_noise(noise_sd)


def flattened(rows: TrainingRows, trend: FloatArray) -> TrainingRows:
    """Return rows whose values far above the least one are uncertain, and near a trend.

    There the density is next to nothing, and a steep wall would bend a process wherever it lies. So
    heights of values, and those of the ``trend (n,)``, grow as their logarithm only.
    """
    least, top = float(rows.values.min()), kept_up_to(rows.dim, rows.noise_sd)

    def flatten(heights: FloatArray) -> FloatArray:
        above = np.minimum(heights, np.finfo(np.float64).max)
        return np.where(above > top, top * (1.0 + np.log(np.maximum(above, top) / top)), above)

    with np.errstate(over="ignore"):
        heights, expected = flatten(rows.values - least), trend - least
    tail_sd = 0.1 * np.maximum(heights - top, 0.0)
    values = least + heights + np.where(tail_sd > 0.0, expected - flatten(expected), 0.0)
    return attrs.evolve(rows, values=values, tail_sd=tail_sd)


# a thousandth of a nat costs no acceptance, and keeps digits
NOISE = {False: (np.log(1e-3), 1.0, np.log(1e-3), np.log(1e-3)), True: (0.0, 1.5, -4.0, 3.4)}
"""Row of :func:`scale_table` for the noise of values: of known noise, and of noise to be found."""


def scale_table(dim: int, noise_sd: FloatArray) -> FloatArray:
    """Return the usual log scales, their standard deviations, and bounds: shape (4, dim + 4).

    Coordinates follow a process's own draws, so that its quadratic seems near |z|^2 / 2 however
    far it is off by the noise of values, whose standard deviations are ``noise_sd (n,)``. So with
    noise coefficients are not drawn to it.
    """
    usual = np.log(2.5) + 0.5 * np.log(dim / 3.0)  # as draws are farther apart in more dimensions
    rows = [(usual, 1.0, -0.7, 3.5)] * dim + [(np.log(2.0), 1.0, -4.0, 3.4)]
    rows.append(NOISE[bool(np.isnan(noise_sd).any())])
    if (noise_sd != 0.0).any():
        rows += [(np.log(3.0), 1.0, np.log(3.0), 5.0), (0.0, 1.0, 0.0, 1.0)]
    else:
        rows += [(np.log(3.0), 2.0, -4.0, 5.0), (-1.0, 1.5, -5.0, 1.0)]
    return np.array(rows).T


def scales_of(logs: FloatArray) -> tuple[Hyperparameters, FloatArray]:
    """Return hyperparameters, and standard deviations of coefficients, of log scales (dim + 4,)."""
    *lengths, signal, noise, quadratic, mixed = np.exp(logs).tolist()
    dim = len(lengths)
    first, second = np.triu_indices(dim)
    squares = np.where(first == second, 2.0, mixed * 2.0**0.5) / dim
    sds = np.concatenate([[1.0], np.full(dim, (2.0 / dim) ** 0.5), squares])
    found = Hyperparameters(length_scales=lengths, signal_sd=signal, noise_sd=noise)
    return found, quadratic * sds


def _find_scales(equations: TrainingRows, start: FloatArray | None) -> FloatArray:
    """Return log scales (dim + 4,) of largest posterior density given equations, the lowest first.

    They are sought from a start, from the usual ones, and from where a quadratic does along most
    coordinates. The search looks at the first equations: the price of a step is their cube.
    """
    dim, table = equations.dim, scale_table(equations.dim, equations.noise_sd)
    few = equations.take(np.arange(min(len(equations), 300)))
    first, second = np.triu_indices(dim)
    mixed = np.flatnonzero(np.r_[np.zeros(1 + dim, dtype=bool), first != second])

    def density(logs: FloatArray) -> tuple[float, FloatArray]:
        value, slopes = exact_likelihood(few, *scales_of(logs))
        by_sd = slopes[dim + 2 :]
        slopes = np.array([*slopes[: dim + 2], by_sd.sum(), by_sd[mixed].sum()])
        away = (logs - table[0]) / table[1]
        return value - 0.5 * away @ away, slopes - away / table[1]

    starts = [table[0], np.append(np.full(dim, 3.0), table[0, dim:])]
    if start is not None:
        starts.insert(0, np.clip(start, *table[2:]))
    return search(density, starts, table[2:].T, 30)


def _equations(
    rows: TrainingRows, bend: Bend, whitening: Whitening
) -> tuple[TrainingRows, TrainingRows, Polynomial]:
    """Return rows that are bent and flattened, the equations in z, and the trend they are about."""
    dim = rows.dim
    positions, values = bend.carry(rows.positions, rows.values)
    rows = attrs.evolve(rows, positions=positions, values=values)
    near = np.abs(whitening.apply(rows.positions)).max(axis=1) < 200.0  # beyond, it is nothing
    rows = rows.take(near) if near.sum() > dim else rows
    half_square = attrs.evolve(Polynomial.of(np.empty(0), dim), matrix=np.eye(dim))
    half_square = attrs.evolve(half_square, level=float(rows.values.min()))
    rows = flattened(rows, half_square.value(whitening.apply(rows.positions)))
    return rows, rows.about(whitening, "quadratic", half_square), half_square


@attrs.frozen(kw_only=True, eq=False, repr=False)
class QuadraticProcess:
    """V(q), the mean of a process about a quadratic given exact values, in nats.

    In coordinates z of a bend and a whitening it has a wall beyond what it is trusted in,
    + stiffness max(0, |z| - radius)^2, so that the integral of exp(-V) is finite. Frozen and safe
    to share between threads. Every array it returns is new. Methods raise
    :class:`~surrokit.errors.ShapeError` unless positions are rows of ``dim`` numbers.

    Parameters
    ----------
    n_points
        Number of distinct points that it was fitted to.
    quality : FitQuality or None
        Errors at each point of the process given all others; None for fewer than eight points where
        the density is more than next to nothing.
    """

    n_points: int
    n_gradients: int = attrs.field(default=0, init=False)  # it learns from values alone
    quality: FitQuality | None
    bend: Bend
    whitening: Whitening  # from positions that are bent to z
    process: FittedProcess  # in z
    logs: FloatArray  # its log scales, (dim + 4,)
    unsure: float  # standard deviation, in nats, above which it is not trusted
    radius: float
    stiffness: float
    bent: bool = True  # whether positions are those of the bend, or its straight coordinates

    @classmethod
    def fit(
        cls,
        rows: TrainingRows,
        whitening: Whitening,
        start: FloatArray | None = None,
        *,
        bend: Bend | None = None,
        reach: float = 1.0,
        wide: bool = False,
    ) -> Self:
        """Return the process given rows, with scales sought from some log scales (dim + 4,).

        It is trusted as far as draws of a normal target lie, or ``reach`` times as far. A ``wide``
        one is trusted twice as far, and about all points of high density: tails may be heavier.

        Raises
        ------
        SurrogateFitError
            If the values cannot be fitted.
        """
        dim, bend = rows.dim, bend or Bend.none(rows.dim)
        rows, equations, half_square = _equations(rows, bend, whitening)
        logs = _find_scales(equations.take(np.argsort(rows.values, kind="stable")), start)
        found, sds = scales_of(logs)
        posterior, _, dual = condition(equations, found, sds)
        process = FittedProcess.of(
            posterior,
            rows,
            Whitening.identity(dim),
            half_square,
            hyperparameters=found,
            mean="quadratic",
        )
        # of a standard normal target one draw in ten thousand lies farther out
        radius = reach * (float(np.sqrt(chi2.isf(1e-4, dim))) + _ROOM)
        if wide:
            high = equations.positions[rows.tail_sd == 0.0]
            radius = max(2.0 * radius, float(np.linalg.norm(high, axis=1).max()) + _ROOM)
        bends = process.polynomial.matrix
        return cls(
            n_points=len(rows),
            quality=quality_of(equations, left_out(equations, posterior, dual), rows.gradients),
            bend=bend,
            whitening=whitening,
            process=process,
            logs=logs,
            unsure=max(UNSURE, typical_noise(rows.noise_sd, found)),
            radius=radius,
            stiffness=5.0 + max(0.0, -float(np.linalg.eigvalsh(bends)[0])),
        )

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.process.dim

    @property
    def straight(self) -> Straight | None:
        """Itself in the coordinates of its bend, if it has one."""
        if self.bend.changes_nothing or not self.bent:
            return None
        bend, spread = self.bend, self.whitening.factor
        covariance = spread @ spread.T
        straight = attrs.evolve(self, bent=False)
        return Straight(straight, bend.apply, bend.undo, covariance, lambda at: bend.volume(at)[0])

    @property
    def log_likelihood(self) -> float:
        """Log marginal likelihood of all values."""
        return self.process.log_likelihood

    @property
    def capabilities(self) -> Capabilities:
        """Gradient, gradient alone, variance, covariance."""
        return CAPABILITIES

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim)."""
        return self.value_and_gradient(positions)[0]

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of V, shape (n, dim), at positions of shape (n, dim)."""
        return self.value_and_gradient(positions)[1]

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return V, shape (n,), and its gradient, shape (n, dim)."""
        values, slopes = self._in_whitened(self.whiten(positions))
        slopes = self.whitening.pull(slopes)
        if not self.bent:
            return values, slopes
        volume, rises = self.bend.volume(positions)
        return values - volume, self.bend.pull(positions, slopes) - rises

    def whiten(self, positions: FloatArray) -> FloatArray:
        """Return z, shape (n, dim), at positions of shape (n, dim)."""
        positions = check_positions(positions, self.dim)
        return self.whitening.apply(self.bend.apply(positions) if self.bent else positions)

    def _in_whitened(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return V at z (n, dim), and its derivatives in z."""
        values, slopes = self.process.value_and_gradient(z)
        distances = np.sqrt(np.vecdot(z, z))
        over = np.maximum(distances - self.radius, 0.0)
        if over.any():
            values += self.stiffness * np.square(over)
            pulls = 2.0 * self.stiffness * over / np.maximum(distances, self.radius)
            slopes += pulls[:, None] * z
        if self.bend.between is not None:
            values[self.bend.is_outside(self.whitening.undo(z))] = np.inf
        return values, slopes

    def variance(self, positions: FloatArray) -> FloatArray:
        """Return the variance of the process, shape (n,), in nats squared.

        That of U itself, without the noise of an evaluation; never negative.
        """
        return self.process.variance(self.whiten(positions))

    def covariance(self, positions: FloatArray) -> FloatArray:
        """Return the covariance of U at positions (n, dim) with one another, shape (n, n)."""
        z = self.whiten(positions)
        return self.process.posterior.covariance(z, z)

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the noise of values that was found, in nats."""
        return self.process.hyperparameters.noise_sd

    def is_at_wall(self, positions: FloatArray) -> BoolArray:
        """Return which of ``positions (n, dim)`` lie at the wall or beyond it, shape (n,)."""
        z = self.whiten(positions)
        return np.asarray(np.sqrt(np.vecdot(z, z)) > self.radius - _ROOM)

    def is_beyond(self, positions: FloatArray) -> BoolArray:
        """Return which of ``positions (n, dim)`` lie where V is not trusted, shape (n,).

        That is where it is less sure of U than a value is, if values have noise above 1 nat.
        """
        return self.is_at_wall(positions) | (self.variance(positions) > self.unsure**2)

    def draw(
        self, rng: np.random.Generator, temperature: float = 1.0, spread: float = 0.1
    ) -> FloatArray:
        """Return draws (n, dim) of exp(-V / T) by 64 Hamiltonian chains.

        V is about 1 wide in each direction of z. Chains begin a ``spread`` from points of high
        density, make 60 transitions, and are looked at after every fifth; the first third is left
        out.
        """
        transitions, every = 60, 5

        def at(z: FloatArray) -> tuple[FloatArray, FloatArray]:
            value, slope = self._in_whitened(z)
            return value / temperature, slope / temperature

        points = self.process.centres
        order = np.argsort(at(points)[0], kind="stable")
        z = points[rng.choice(order[: max(4, min(16, len(order) // 4))], 64)]
        away, top = spread * rng.standard_normal(z.shape), at(z)[0].min() + flat_from(self.dim)
        for _ in range(8):  # not up a wall
            away[~(at(z + away)[0] <= top)] *= 0.5
        z = z + away
        state, step_size, kept, accepted = (z, *at(z)), 0.25, [], []
        with np.errstate(all="ignore"):  # paths that run off are rejected
            for i in range(1, transitions + 1):
                check_deadline()
                momenta, step = rng.standard_normal(z.shape), step_size * rng.uniform(0.6, 1.2)
                energy = state[1] + 0.5 * np.square(momenta).sum(axis=1)
                end, height, slope = state
                for _ in range(8):
                    momenta = momenta - 0.5 * step * slope
                    end = end + step * momenta
                    height, slope = at(end)
                    momenta = momenta - 0.5 * step * slope
                change = energy - height - 0.5 * np.square(momenta).sum(axis=1)
                moved = np.log(rng.random(len(end))) < change
                for old, new in zip(state, (end, height, slope), strict=True):
                    old[moved] = new[moved]
                accepted.append(float(moved.mean()))
                if i % every == 0 and 3 * i > transitions:
                    kept.append(state[0].copy())
                if i % every == 0 and 2 * i < transitions:
                    step_size *= float(np.exp(0.5 * (np.mean(accepted[-every:]) - 0.8)))
        return self.bend.undo(self.whitening.undo(np.concatenate(kept)))

    def __repr__(self) -> str:
        return f"{type(self).__name__} with a wall at {self.radius:.3g} about {self.process!r}"


LIKELIER = 3.0
"""Nats by which curved coordinates have to be likelier than the present ones."""

OF_MANY = 8.0
"""The same for the likeliest of some hundred."""


def fit_likelier(
    fitted: QuadraticProcess,
    rows: TrainingRows,
    curved: Sequence[tuple[Bend, Whitening] | None],
    start: FloatArray | None,
    least: float = LIKELIER,
    **how: Any,
) -> QuadraticProcess:
    """Return a process in one of these curved coordinates if it is likelier, or the fitted one.

    That is, by at ``least`` so many nats. Log scales are sought from a ``start`` as in
    :meth:`QuadraticProcess.fit`. Coordinates in which values cannot be fitted are left out.
    """
    best = fitted
    for bend, whitening in filter(None, curved):
        with contextlib.suppress(SurrogateFitError):
            other = QuadraticProcess.fit(rows, whitening, start, bend=bend, **how)
            best = max(best, other, key=lambda each: each.log_likelihood)
    return best if best.log_likelihood >= fitted.log_likelihood + least else fitted


def _bend_by_values(
    rows: TrainingRows, bend: Bend, whitening: Whitening
) -> tuple[Bend, Whitening] | None:
    """Return the likeliest coordinates in which one number loses more of the square of another.

    That is, of all pairs, or where there is a bend more or less of its own. Draws of a process that
    follows one arm of a curved mass are straight, while its values say that it is curved.
    Likelihoods are those of the usual scales; None where values are too few or have noise.
    """
    dim = rows.dim
    if dim == 1 or len(rows) < 5 * dim or (rows.noise_sd != 0.0).any():
        return None
    found, sds = scales_of(scale_table(dim, rows.noise_sd)[0])
    if bend.changes_nothing:
        spread, units = np.sqrt(np.square(whitening.factor).sum(axis=1)), np.eye(dim)
        shifts = spread[:, None] * units
        bends = [
            Bend(centre=whitening.mean, direction=units[i] / spread[i], shift=part * shifts[j])
            for i, j in np.argwhere(units == 0.0)
            for part in (-0.5, 0.5)
        ]
    else:
        bends = [attrs.evolve(bend, shift=part * bend.shift) for part in (0.6, 1.5, 2.2)]
    likelihoods = np.full(len(bends), -np.inf)
    for k, each in enumerate(bends):
        with contextlib.suppress(SurrogateFitError):
            equations = _equations(rows, each, whitening)[1]
            likelihoods[k] = condition(equations, found, sds)[0].log_likelihood
    return bends[int(np.argmax(likelihoods))], whitening


def fit_bent_by_values(
    fitted: QuadraticProcess, rows: TrainingRows, start: FloatArray | None, **how: Any
) -> QuadraticProcess:
    """Return a process bent as its values say where that is likelier, or the fitted one."""
    least = OF_MANY if fitted.bend.changes_nothing else LIKELIER
    curved = [_bend_by_values(rows, fitted.bend, fitted.whitening)]
    return fit_likelier(fitted, rows, curved, start, least, **how)


@attrs.frozen(kw_only=True)
class QuadraticGaussianProcess:
    """A Gaussian process that expects a nearly normal density, for few values.

    Its mean function is a quadratic whose coefficients are drawn to those of a standard normal
    density, in coordinates in which the process's own draws have mean zero and unit covariance.
    So tens of values do where a quadratic alone has more coefficients, and
    far from all points V rises as a normal density falls. Values far above the least one, where the
    density is next to nothing, are flattened. Scales are those of the largest posterior density.

    The cost of a fit grows with the cube of the number of points, and only the thousand of least U
    are used. Beyond some twelve dimensions another surrogate does better. A mean function of a
    quadratic with a squared-exponential kernel is that of Acerbi (2018).
    """

    def learner(
        self, problem: LearningProblem, rng: np.random.Generator
    ) -> QuadraticProcessLearner:
        """Return a learner for a problem."""
        seed = int(rng.integers(2**53))
        return QuadraticProcessLearner(dim=problem.dim, seed=seed, between=problem.between)


@attrs.define(kw_only=True, eq=False)
class QuadraticProcessLearner(KeepingLearner):
    """Conditions a process on all values observed, in coordinates that it finds.

    It learns from values alone.
    """

    needs: frozenset[str] = frozenset({"value"})
    uses: frozenset[str] = frozenset({"value"})
    provides: Capabilities = CAPABILITIES
    between: CoordinateMap | None = None
    _curved: tuple[Bend, Whitening] | None = attrs.field(default=None, init=False, repr=False)

    def keep_used(self, evaluations: Evaluations) -> Evaluations:
        """Return values alone."""
        return attrs.evolve(evaluations, gradients=None, outputs=None, jacobians=None)

    def fit(self) -> QuadraticProcess:
        """Return the process given everything observed.

        Raises
        ------
        SurrogateFitError
            If there are too few points with a finite value, or they cannot be fitted.
        """
        observed, dim = self.join_observed(), self.dim
        rows = TrainingRows.of(observed, "full")
        rows.demand(least_points(dim), len(observed))
        rows = rows.take(np.sort(np.argsort(rows.values, kind="stable")[:1000]))
        noisy = bool((rows.noise_sd != 0.0).any())
        with threads_for(len(rows) * dim):
            whitening = about_lowest(rows.positions, rows.values)
            whitening, known = follow_quadratic(whitening, rows.positions, rows.values)
            bent = None
            if not known:
                bent = follow_bent_quadratic(rows.positions, rows.values, self.between)
            if bent is not None:
                with contextlib.suppress(SurrogateFitError):
                    fitted = QuadraticProcess.fit(rows, bent[1], bend=bent[0], wide=True)
                    self._curved = bent
                    return fitted
            fitted = QuadraticProcess.fit(rows, whitening, wide=True)
            for turn in range(0 if known else 3):
                draws = self._draw(fitted, turn, noisy)
                z = whitening.apply(draws)
                sds = np.sqrt(np.linalg.eigvalsh(np.cov(z, rowvar=False).reshape(dim, -1)))
                if np.abs(sds - 1.0).max() < 0.2 and np.abs(z.mean(axis=0)).max() < 0.2:
                    break
                whitening = refocus(whitening, draws)
                fitted = QuadraticProcess.fit(rows, whitening, fitted.logs, wide=True)
            for turn in range(0 if known else 8):
                turned = refocus(fitted.whitening, fitted.bend.apply(draws), turns=0.0)
                curved = [straighten(draws), None if turn else self._curved, (fitted.bend, turned)]
                other = fit_likelier(fitted, rows, curved, fitted.logs, wide=True)
                if other is fitted:
                    other = fit_bent_by_values(fitted, rows, fitted.logs, wide=True)
                if other is fitted:
                    break
                fitted = other
                draws = self._draw(fitted, 3 + turn, noisy)
            if not fitted.bend.changes_nothing:
                self._curved = fitted.bend, fitted.whitening
            return fitted

    def state(self) -> dict[str, Any]:
        """Return the seed, all rows observed, and the curved coordinates that were found."""
        if self._curved is None:
            return {**super().state(), "curved": None}
        bend, whitening = self._curved
        arrays = [attrs.asdict(each) for each in (attrs.evolve(bend, between=None), whitening)]
        return {**super().state(), "curved": [*arrays, bend.between is not None]}

    def restore(self, state: Mapping[str, Any]) -> Self:
        """Return a learner with the same settings that goes on from what ``state`` returned."""
        learner = super().restore(state)
        if (curved := state["curved"]) is not None:
            bend, whitening, is_between = curved
            between = self.between if is_between else None
            learner._curved = Bend(**bend | {"between": between}), Whitening(**whitening)
        return learner

    def _draw(self, fitted: QuadraticProcess, turn: int, noisy: bool) -> FloatArray:
        """Return draws (n, dim), without false modes that few noisy values leave."""
        draws = fitted.draw(np.random.default_rng([self.seed, turn]))
        trusted = ~fitted.is_beyond(draws) if noisy else np.ones(len(draws), dtype=bool)
        return draws[trusted] if 0.1 < trusted.mean() < 0.95 else draws
