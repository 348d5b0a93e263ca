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
from surrokit_gp.quadratic import QuadraticPrior, QuadraticProcess, flat_from
from surrokit_gp.rows import TrainingRows

CAPABILITIES: Capabilities = frozenset({GRADIENT, GRADIENT_ALONE, VARIANCE})
"""Capabilities of a fitted process."""

UNSURE = 1.0
"""Standard deviation, in nats, above which a process is not believed."""

_ROOM = 1.0  # from the wall to the draws inside


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
        # of a standard normal target one draw in ten thousand lies farther out
        radius = reach * (float(np.sqrt(chi2.isf(1e-4, process.dim))) + _ROOM)
        if wide:
            heights = process.mean.value(process.z)
            high = process.z[heights <= heights.min() + flat_from(process.dim)]
            farthest = float(np.sqrt(np.square(high).sum(axis=1).max()))
            radius = max(2.0 * radius, farthest + _ROOM)
        falls = max(0.0, -float(np.linalg.eigvalsh(process.mean.polynomial.matrix)[0]))
        return cls(process=process, radius=radius, stiffness=5.0 + falls)

    def value(self, z: FloatArray) -> FloatArray:
        """Return the sum, shape (n,), at ``z (n, dim)``."""
        return self.value_and_gradient(z)[0]

    def value_and_gradient(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the sum, shape (n,), and its gradient, shape (n, dim)."""
        values, gradients = self.process.mean.value_and_gradient(z)
        distances = np.sqrt(np.vecdot(z, z))
        over = np.maximum(distances - self.radius, 0.0)
        values += self.stiffness * np.square(over)
        pulls = 2.0 * self.stiffness * over / np.maximum(distances, self.radius)
        gradients += pulls[:, None] * z
        return values, gradients

    def is_at_wall(self, z: FloatArray) -> BoolArray:
        """Return which of ``z (n, dim)`` lie at the wall or beyond it, shape (n,)."""
        return np.asarray(np.sqrt(np.vecdot(z, z)) > self.radius - _ROOM)

    def is_beyond(self, z: FloatArray) -> BoolArray:
        """Return which of ``z (n, dim)`` lie at the wall, or where V is not sure, shape (n,)."""
        return np.asarray(self.is_at_wall(z) | (self.process.variance(z) > UNSURE**2))


def draw(walled: Walled, temperature: float, rng: np.random.Generator) -> FloatArray:
    """Return draws (n, dim) of exp(-V / T) by 64 chains from points of high density."""
    z = walled.process.z
    order = np.argsort(walled.value(z), kind="stable")
    starts = z[rng.choice(order[: max(4, min(16, len(order) // 4))], 64)]
    starts = starts + 0.1 * rng.standard_normal(starts.shape)
    return walk(walled, temperature, starts, rng)


def walk(
    walled: Walled, temperature: float, starts: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Return draws of exp(-V / T) by Hamiltonian chains, the first third left out, shape (n, dim).

    V is about 1 wide in each direction. Chains begin at ``starts (chains, dim)``, make 60
    transitions, and are looked at after every fifth.
    """
    transitions, every = 60, 5
    state = starts.copy(), *walled.value_and_gradient(starts)
    step_size, kept, accepted = 0.25, [], []
    with np.errstate(all="ignore"):  # paths that run off are rejected
        for i in range(1, transitions + 1):
            check_deadline()
            momenta = rng.standard_normal(starts.shape)
            half = 0.5 * (step := step_size * rng.uniform(0.6, 1.2)) / temperature
            energy = state[1] / temperature + 0.5 * np.square(momenta).sum(axis=1)
            end, height, slope = state
            for _ in range(8):
                momenta = momenta - half * slope
                end = end + step * momenta
                height, slope = walled.value_and_gradient(end)
                momenta = momenta - half * slope
            change = energy - height / temperature - 0.5 * np.square(momenta).sum(axis=1)
            moved = np.log(rng.random(len(end))) < change
            for old, new in zip(state, (end, height, slope), strict=True):
                old[moved] = new[moved]
            accepted.append(float(moved.mean()))
            if i % every == 0 and 3 * i > transitions:
                kept.append(state[0].copy())
            if i % every == 0 and 2 * i < transitions:
                step_size *= float(np.exp(0.5 * (np.mean(accepted[-every:]) - 0.8)))
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
    # from one process to the next they may shrink and grow by so much
    changes = np.clip(np.sqrt(variances), 0.3, 2.0)
    spread = whitening.factor @ (vectors * (changes * shrink))
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
    n_gradients: int = attrs.field(default=0, init=False)
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
        observed, dim = self.join_observed(), self.dim
        rows = TrainingRows.of(observed, "full")
        rows.demand(least_points(dim), len(observed))
        rows = rows.take(np.sort(np.argsort(rows.values, kind="stable")[: self.max_points]))
        with threads_for(len(rows) * dim):
            whitening, process = self._settle(rows.positions, rows.values)
            heights = process.mean.value(process.z)
            errors = process.left_out()[heights - heights.min() <= flat_from(dim)]
            quality = None
            if len(errors) >= 2:
                quality = FitQuality(
                    variance=float(np.var(errors)), gradient_error=None, n_points=len(errors)
                )
            return FittedQuadraticProcess(
                n_points=len(process.z),
                quality=quality,
                whitening=whitening,
                walled=Walled.of(process, wide=True),
            )

    def _settle(
        self, positions: FloatArray, values: FloatArray
    ) -> tuple[Whitening, QuadraticProcess]:
        """Return coordinates in which the process's own draws are nearly normal, and it."""
        dim, order = self.dim, np.argsort(values, kind="stable")
        # about the points of high density, or the densest where these are few
        high = int(np.count_nonzero(values - values.min() <= flat_from(dim)))
        lowest = np.sort(order[: max(high, 2 * dim + 2)])
        whitening = Whitening.of(positions[lowest], np.ones(len(lowest)), drops_noise=True)
        prior = QuadraticPrior.usual(dim)
        for turn in range(4):
            process = QuadraticProcess.fit(whitening.apply(positions), values, prior)
            fitted = whitening, process
            if turn == 3:
                break
            walled = Walled.of(process, wide=True)
            draws = draw(walled, 1.0, np.random.default_rng([self.seed, turn]))
            sds = np.sqrt(np.linalg.eigvalsh(np.cov(draws, rowvar=False).reshape(dim, -1)))
            prior, whitening = process.prior, refocus(whitening, draws)
            if np.abs(sds - 1.0).max() < 0.2 and np.abs(draws.mean(axis=0)).max() < 0.2:
                break
        return fitted
