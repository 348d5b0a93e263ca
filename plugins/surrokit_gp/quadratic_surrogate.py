"""The process about a quadratic as a surrogate: its wall, its own chains, and its coordinates."""

from __future__ import annotations

from typing import Self

import attrs
import numpy as np
from scipy.stats import chi2

from surrokit.arguments import check_positions, positive_integer
from surrokit.capabilities import GRADIENT, GRADIENT_ALONE, VARIANCE
from surrokit.interfaces import Evaluations, LearningProblem
from surrokit.limits import check_deadline, threads_for
from surrokit.surrogate.quality import FitQuality, KeepingLearner
from surrokit.surrogate.shown import ShownFit, ShownSurrogate
from surrokit.surrogate.training import least_points
from surrokit.surrogate.whitening import Whitening
from surrokit.types import BoolArray, Capabilities, FloatArray
from surrokit_gp.kernels import by_blocks
from surrokit_gp.observations import TrainingRows
from surrokit_gp.quadratic import QuadraticPrior, QuadraticProcess, flat_from

CAPABILITIES: Capabilities = frozenset({GRADIENT, GRADIENT_ALONE, VARIANCE})
"""Capabilities of a fitted process."""

UNSURE = 1.0  # standard deviation, in nats, above which a process is not believed

# the wall: part of a normal target beyond its radius, what is added to that, by what a wide one is
# wider, and its stiffness above what the quadratic may fall by
_TAIL, _ROOM, _WIDER, _STIFFNESS = 1e-4, 1.0, 2.0, 5.0

# chains on a process: number, transitions, those from draw to draw; steps of a path, first step
# size, acceptance wanted, and spread of starts about points of high density
_CHAINS, _TRANSITIONS, _EVERY = 64, 60, 5
_STEPS, _STEP_SIZE, _WANTED, _JIGGLE = 8, 0.25, 0.8, 0.1

# coordinates: by how much they may shrink and grow from one process to the next, how often they
# are found, and the change of a standard deviation below which they are as good as found
_CHANGE, _TURNS, _SETTLED = (0.3, 2.0), 4, 0.2


def usual_radius(dim: int) -> float:
    """Return the distance within which next to all draws of a standard normal target lie."""
    return float(np.sqrt(chi2.isf(_TAIL, dim))) + _ROOM


@attrs.frozen(kw_only=True, eq=False)
class Walled:
    """V(z) + stiffness max(0, |z| - radius)^2, whose integral of exp is finite; V is the mean."""

    process: QuadraticProcess
    radius: float
    stiffness: float

    @classmethod
    def of(cls, process: QuadraticProcess, *, reach: float = 1.0, wide: bool = False) -> Self:
        """Return a process's mean, believed ``reach`` times as far as draws of a normal target lie.

        A ``wide`` one is believed twice as far, and about all points of high density: tails may be
        heavier.
        """
        radius = reach * usual_radius(process.dim)
        if wide:
            heights = process.mean.value(process.z)
            high = process.z[heights <= heights.min() + flat_from(process.dim)]
            farthest = float(np.sqrt(np.square(high).sum(axis=1).max()))
            radius = max(_WIDER * radius, farthest + _ROOM)
        falls = max(0.0, -float(np.linalg.eigvalsh(process.mean.polynomial.matrix)[0]))
        return cls(process=process, radius=radius, stiffness=_STIFFNESS + falls)

    def value(self, z: FloatArray) -> FloatArray:
        """Return the sum, shape (n,), at ``z (n, dim)``."""
        values = self.process.mean.value(z) + self.stiffness * np.square(self._over(z)[0])
        return np.asarray(values)

    def value_and_gradient(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the sum, shape (n,), and its gradient, shape (n, dim)."""
        values, gradients = self.process.mean.value_and_gradient(z)
        over, distances = self._over(z)
        values += self.stiffness * np.square(over)
        pulls = 2.0 * self.stiffness * over / np.maximum(distances, self.radius)
        gradients += pulls[:, None] * z
        return values, gradients

    def is_beyond(self, z: FloatArray) -> BoolArray:
        """Return which of ``z (n, dim)`` lie at the wall, or where V is not sure, shape (n,)."""
        return np.asarray(self.is_at_wall(z) | (self.process.variance(z) > UNSURE**2))

    def is_at_wall(self, z: FloatArray) -> BoolArray:
        """Return which of ``z (n, dim)`` lie at the wall or beyond it, shape (n,)."""
        return np.asarray(self._over(z)[1] > self.radius - _ROOM)

    def _over(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        distances = np.sqrt(np.vecdot(z, z))
        return np.maximum(distances - self.radius, 0.0), distances


def draw(walled: Walled, temperature: float, rng: np.random.Generator) -> FloatArray:
    """Return draws (n, dim) of exp(-V / T) by chains from points of high density."""
    z = walled.process.z
    order = np.argsort(walled.value(z), kind="stable")
    inside = order[: max(4, min(16, len(order) // 4))]
    starts = z[rng.choice(inside, _CHAINS)]
    starts = starts + _JIGGLE * rng.standard_normal(starts.shape)
    return walk(walled, temperature, starts, rng)


def walk(
    walled: Walled, temperature: float, starts: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Return draws of exp(-V / T) by Hamiltonian chains, the first third left out, shape (n, dim).

    V is about 1 wide in each direction. Chains begin at ``starts (chains, dim)``.
    """
    state = starts.copy(), *walled.value_and_gradient(starts)
    step_size, kept, accepted = _STEP_SIZE, [], []
    with np.errstate(all="ignore"):  # paths that run off are rejected
        for i in range(1, _TRANSITIONS + 1):
            check_deadline()
            momenta = rng.standard_normal(starts.shape)
            half = 0.5 * (step := step_size * rng.uniform(0.6, 1.2)) / temperature
            energy = state[1] / temperature + 0.5 * np.square(momenta).sum(axis=1)
            end, height, slope = state
            for _ in range(_STEPS):
                momenta = momenta - half * slope
                end = end + step * momenta
                height, slope = walled.value_and_gradient(end)
                momenta = momenta - half * slope
            change = energy - height / temperature - 0.5 * np.square(momenta).sum(axis=1)
            moved = np.log(rng.random(len(end))) < change
            for old, new in zip(state, (end, height, slope), strict=True):
                old[moved] = new[moved]
            accepted.append(float(moved.mean()))
            if i % _EVERY == 0 and 3 * i > _TRANSITIONS:
                kept.append(state[0].copy())
            if i % _EVERY == 0 and 2 * i < _TRANSITIONS:
                step_size *= float(np.exp(0.5 * (np.mean(accepted[-_EVERY:]) - _WANTED)))
    return np.concatenate(kept)


def refocus(
    whitening: Whitening,
    draws: FloatArray,
    temperature: float = 1.0,
    centre: FloatArray | None = None,
    shrink: float = 1.0,
) -> Whitening:
    """Return coordinates in which draws of exp(-V) are nearly standard normal.

    ``draws (n, dim)`` are those of exp(-V / T) in the present coordinates; ``centre (dim,)``, in q,
    is another middle than theirs, and ``shrink`` a factor of the new standard deviations.
    """
    dim = draws.shape[1]
    covariance = np.cov(draws, rowvar=False).reshape(dim, dim) / temperature
    covariance += 1e-6 * np.trace(covariance) / dim * np.eye(dim)
    variances, vectors = np.linalg.eigh(covariance)
    spread = whitening.factor @ (vectors * (np.clip(np.sqrt(variances), *_CHANGE) * shrink))
    middle = whitening.undo(draws.mean(axis=0)[None])[0] if centre is None else centre
    # the triangular factor of spread spread^T, without squaring it
    upper = np.asarray(np.linalg.qr(spread.T, mode="r"))
    factor = (upper * np.where(np.diag(upper) < 0.0, -1.0, 1.0)[:, None]).T
    return Whitening(mean=middle, factor=np.ascontiguousarray(factor))


@attrs.frozen(kw_only=True, eq=False, repr=False)
class FittedQuadraticProcess(ShownFit):
    """V(q), the mean of a process about a quadratic given exact values, in nats.

    It has a wall beyond what it is believed of. Frozen and safe to share between threads. Every
    array it returns is new. Methods raise :class:`~surrokit.errors.ShapeError` unless positions are
    rows of ``dim`` numbers.

    Parameters
    ----------
    n_points
        Number of distinct points that it was fitted to.
    quality : FitQuality or None
        Errors at each point of the process given all others; None for fewer than two points where
        the density is more than next to nothing.
    whitening, walled
        Coordinates in which the target is nearly standard normal, and the mean in them.
    """

    n_points: int
    quality: FitQuality | None
    whitening: Whitening
    walled: Walled

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.walled.process.dim

    @property
    def capabilities(self) -> Capabilities:
        """Gradient, gradient alone, variance."""
        return CAPABILITIES

    @property
    def n_gradients(self) -> int:
        """0: it learns from values alone."""
        return 0

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim)."""
        return self.walled.value(self._whiten(positions))

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of V, shape (n, dim), at positions of shape (n, dim)."""
        return self.value_and_gradient(positions)[1]

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return V, shape (n,), and its gradient, shape (n, dim)."""
        values, gradients = self.walled.value_and_gradient(self._whiten(positions))
        return values, gradients @ self.whitening.inverse

    def variance(self, positions: FloatArray) -> FloatArray:
        """Return the variance of the process, shape (n,), in nats squared.

        That of U itself, without the noise of an evaluation; never negative.
        """
        return by_blocks(self.walled.process.variance, self._whiten(positions))

    def is_beyond(self, positions: FloatArray) -> BoolArray:
        """Return which of ``positions (n, dim)`` lie where V is not believed, shape (n,)."""
        return self.walled.is_beyond(self._whiten(positions))

    def _whiten(self, positions: FloatArray) -> FloatArray:
        return self.whitening.apply(check_positions(positions, self.dim))

    def __repr__(self) -> str:
        prior = self.walled.process.prior
        quality = "None" if self.quality is None else f"{self.quality.variance:.3g} nats^2"
        return (
            f"FittedQuadraticProcess(dim={self.dim}, n_points={self.n_points}, "
            f"quadratic_sd={prior.quadratic_sd:.3g}, signal_sd={prior.signal_sd:.3g}, "
            f"quality={quality})"
        )


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
        seed = int(rng.integers(2**53))
        return QuadraticProcessLearner(dim=problem.dim, seed=seed, max_points=self.max_points)


@attrs.define(kw_only=True, eq=False)
class QuadraticProcessLearner(KeepingLearner):
    """Conditions a process on all values observed, in coordinates that it finds.

    It learns from values alone.
    """

    max_points: int
    needs: frozenset[str] = frozenset({"value"})
    uses: frozenset[str] = frozenset({"value"})
    provides: Capabilities = CAPABILITIES

    def keep_used(self, evaluations: Evaluations) -> Evaluations:
        """Return values alone."""
        return attrs.evolve(evaluations, gradients=None, outputs=None, jacobians=None)

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
            whitening, process = self._settle(rows.positions, rows.values)
            return FittedQuadraticProcess(
                n_points=len(process.z),
                quality=_quality(process),
                whitening=whitening,
                walled=Walled.of(process, wide=True),
            )

    def _settle(
        self, positions: FloatArray, values: FloatArray
    ) -> tuple[Whitening, QuadraticProcess]:
        """Return coordinates in which the process's own draws are nearly normal, and it."""
        whitening = _first_whitening(positions, values)
        prior = QuadraticPrior.usual(self.dim)
        for turn in range(_TURNS):
            process = QuadraticProcess.fit(whitening.apply(positions), values, prior)
            fitted = whitening, process
            if turn == _TURNS - 1:
                break
            walled = Walled.of(process, wide=True)
            draws = draw(walled, 1.0, np.random.default_rng([self.seed, turn]))
            sds = np.sqrt(np.linalg.eigvalsh(np.cov(draws, rowvar=False).reshape(self.dim, -1)))
            prior, whitening = process.prior, refocus(whitening, draws)
            if np.abs(sds - 1.0).max() < _SETTLED and np.abs(draws.mean(axis=0)).max() < _SETTLED:
                break
        return fitted


def _first_whitening(positions: FloatArray, values: FloatArray) -> Whitening:
    """Return coordinates about the points of high density, or the densest where these are few."""
    dim = positions.shape[1]
    order = np.argsort(values, kind="stable")
    high = int(np.count_nonzero(values - values.min() <= flat_from(dim)))
    lowest = np.sort(order[: max(high, 2 * dim + 2)])
    return Whitening.of(positions[lowest], np.ones(len(lowest)), drops_noise=True)


def _quality(process: QuadraticProcess) -> FitQuality | None:
    heights = process.mean.value(process.z)
    errors = process.left_out()[heights - heights.min() <= flat_from(process.dim)]
    if len(errors) < 2:
        return None
    return FitQuality(variance=float(np.var(errors)), gradient_error=None, n_points=len(errors))
