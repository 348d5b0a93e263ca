"""A round of weighted draws, the estimates that it gives, and how rounds are joined."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from surrokit.errors import ConfigurationError, ShapeError
from surrokit.types import FloatArray, IntArray


@attrs.frozen(kw_only=True, eq=False)
class Estimate:
    """What draws say about an expectation.

    Parameters
    ----------
    value : ndarray
        The estimate, of any shape; the other arrays have the same.
    error : ndarray
        Its standard error.
    effective : ndarray
        Independent exact draws that would be as good.
    degrees : ndarray
        Degrees of freedom that the error has.
    calls : float
        Exact calls of the whole run.
    unnormalized
        What of the target may lack its normalising constant, of a logarithm of the evidence.
    """

    value: FloatArray
    error: FloatArray
    effective: FloatArray
    degrees: FloatArray
    calls: float
    unnormalized: tuple[str, ...] = ()

    @property
    def unverified(self) -> Estimate:
        """The same with an infinite error: of a surrogate that the target has not checked."""
        worthless = np.zeros_like(self.error)
        return attrs.evolve(self, error=worthless + np.inf, effective=worthless)

    def interval(self, probability: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return both ends of an interval that holds the truth with a probability."""
        # imported late, so that importing the package stays fast
        from scipy.stats import t as student

        half = student.ppf(0.5 + 0.5 * probability, self.degrees) * self.error
        return self.value - half, self.value + half

    def __repr__(self) -> str:
        about = f"{np.array2string(self.value)} +- {np.array2string(self.error, precision=2)}"
        if np.ndim(self.value) == 0:
            about = f"{self.value:.6g} +- {self.error:.2g}"
        about += f"; {np.min(self.effective):.0f} effective draws"
        if self.unnormalized:
            about += f"; up to what {' and '.join(self.unnormalized)} may lack of a constant"
        return f"<Estimate {about}>"


def reshaped(found: Estimate, shape: tuple[int, ...]) -> Estimate:
    """Return an estimate whose arrays have another shape; numbers for ()."""
    names = ("value", "error", "effective", "degrees")
    return attrs.evolve(found, **{n: getattr(found, n).reshape(shape)[()] for n in names})


_PLACES = 1001  # of an interval, among which the shortest is looked for


@attrs.frozen(kw_only=True, eq=False)
class Distribution:
    """Distribution functions of k numbers, made monotone: masses may be negative."""

    points: FloatArray  # in order, shape (k, n)
    below: FloatArray  # the values half-way through the step at each of them, in order

    @classmethod
    def of(cls, points: FloatArray, masses: FloatArray) -> Distribution:
        """Return the distribution functions of draws (n, k) with masses (n,) of sum one."""
        order = np.argsort(points.T, axis=1)
        steps = masses[order]
        half = np.cumsum(steps, axis=1) - 0.5 * steps
        # as much too high as too low
        rising = np.maximum.accumulate(half, axis=1)
        falling = np.minimum.accumulate(half[:, ::-1], axis=1)[:, ::-1]
        points = np.take_along_axis(points.T, order, axis=1)
        return cls(points=points, below=0.5 * (rising + falling))

    def invert(self, probabilities: FloatArray) -> FloatArray:
        """Return where each function has a value of its own, shape (k,); ends are not left."""
        rows = zip(probabilities, self.below, self.points, strict=True)
        return np.array([np.interp(at, below, points) for at, below, points in rows])

    def shortest(self, probability: float) -> FloatArray:
        """Return the shortest interval of each number with so much between its ends, (k, 2)."""
        lower = np.linspace(0.0, 1.0 - probability, _PLACES)
        found = []
        for below, points in zip(self.below, self.points, strict=True):
            ends = np.interp([lower, lower + probability], below, points)
            found.append(ends[:, np.argmin(ends[1] - ends[0])])
        return np.array(found)

    def place(self, points: FloatArray) -> FloatArray:
        """Return the value of each function at a point of its own, shape (k,)."""
        rows = zip(points, self.points, self.below, strict=True)
        return np.array([np.interp(at, points, below) for at, points, below in rows])


@attrs.frozen(kw_only=True, eq=False)
class Round:
    """Draws of a surrogate V, and what the exact potential U says at evaluated positions.

    V must have learnt from none of the points that are evaluated here, or else the correction would
    find it better than it is.

    Parameters
    ----------
    draws : ndarray of shape (chains, draws, dim)
        Of chains on V alone, in the user's coordinates.
    evaluated : ndarray of shape (n, dim)
        Positions evaluated, about independent, in the user's coordinates: draws of a density q.
    log_weights : ndarray of shape (n,)
        Log of the target's density over q there, up to a constant; -inf where the target is zero.
    log_surrogate_weights : ndarray of shape (n,), optional
        Log of the surrogate's density over q. Zero by default, where q is V's own.
    learnt : int
        Exact evaluations that V has learnt from.
    looked_at : ndarray of shape (chains, m, dim), optional
        Positions at which other surrogates are evaluated; by default the first draws. Means over
        them are weighted.
    looked_at_weights : ndarray of shape (chains, m), optional
        What makes them draws of V, of mean one. One by default.
    predictive_variance : ndarray of shape (chains, m), optional
        By how much weights vary about each of them, by a later surrogate, times their weights: no
        part of the answer, only of its error. By default zero.
    density_ratio : ndarray of shape (chains, m), optional
        What each of them counts for by cross-fitting, of mean one. By default their weights.
    realisations : ndarray of shape (chains, m, r), optional
        U - V of r potentials U drawn from a process, at every k-th draw of each chain, where values
        have noise and the process is what is known of U. None by default.
    log_mass
        Logarithm of the mean of exp(V - U) that a process expects which has learnt from all
        evaluations. By default NaN, where there is none.

    Raises
    ------
    ShapeError
        If draws are not three-dimensional, positions and their weights not as many, at least
        one, or what is known of the positions looked at is not as many as these.
    ConfigurationError
        If a weight or an even is NaN or plus infinity.
    """

    draws: FloatArray
    evaluated: FloatArray
    log_weights: FloatArray
    learnt: int
    log_surrogate_weights: FloatArray = attrs.field()
    looked_at: FloatArray = attrs.field()
    looked_at_weights: FloatArray = attrs.field()
    predictive_variance: FloatArray = attrs.field()
    density_ratio: FloatArray = attrs.field()
    realisations: FloatArray = attrs.field()
    log_mass: float = np.nan

    @log_surrogate_weights.default
    def _even(self) -> FloatArray:
        return np.zeros(len(self.evaluated))

    @looked_at.default
    def _first(self) -> FloatArray:
        return self.draws[:, :1]

    @looked_at_weights.default
    def _draws_of_v(self) -> FloatArray:
        return np.ones(self.looked_at.shape[:2])

    @predictive_variance.default
    def _none(self) -> FloatArray:
        return np.zeros(self.looked_at.shape[:2])

    @density_ratio.default
    def _not_reweighted(self) -> FloatArray:
        return self.looked_at_weights

    @realisations.default
    def _exact(self) -> FloatArray:
        return np.zeros((len(self.draws), 1, 0))

    def __attrs_post_init__(self) -> None:
        n, of_one = len(self.evaluated), self.draws.shape[2:]
        fits = self.draws.ndim == 3 and self.evaluated.shape == (n, *of_one)
        if not (fits and n and self.log_weights.shape == self.log_surrogate_weights.shape == (n,)):
            raise ShapeError(
                f"a round needs draws of shape (chains, draws, dim), got {self.draws.shape}, and n "
                f"positions, log weights and surrogate_weights, got shapes {self.evaluated.shape}, "
                f"{self.log_weights.shape} and {self.log_surrogate_weights.shape}"
            )
        looked_at = self.looked_at.shape
        for name in ("looked_at_weights", "predictive_variance", "density_ratio"):
            shape = getattr(self, name).shape
            if shape != looked_at[:2] or looked_at != (len(self.draws), *shape[1:], *of_one):
                raise ShapeError(
                    f"the {name} of a round must have a number for each position looked at, got "
                    f"shape {shape} for positions {looked_at} beside draws {self.draws.shape}"
                )
        for logs in (self.log_weights, self.log_surrogate_weights):
            if np.isnan(logs).any() or logs.max() == np.inf:
                raise ConfigurationError(
                    "log weights must be finite, or -inf where the target is zero, got NaN or inf"
                )

    def __len__(self) -> int:
        return len(self.evaluated)

    @property
    def flat(self) -> FloatArray:
        """The draws, chain by chain, shape (chains * draws, dim)."""
        return np.asarray(self.draws.reshape(-1, self.draws.shape[2]))

    @property
    def is_reweighted(self) -> bool:
        """Whether other surrogates stand in for that of the draws."""
        return bool((self.density_ratio != self.looked_at_weights).any())

    @property
    def surrogate_weights(self) -> FloatArray:
        """What makes the evaluated positions draws of the surrogate, of mean one, shape (n,)."""
        return _mean_one(self.log_surrogate_weights)

    @property
    def weights(self) -> FloatArray:
        """What makes the evaluated positions draws of the target, of mean one, shape (n,).

        NaN if the target is zero at all.
        """
        return _mean_one(self.log_weights)

    @property
    def log_ratios(self) -> FloatArray:
        """V - U at evaluated positions, up to a constant, shape (n,); NaN where both are inf."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.log_weights - self.log_surrogate_weights)

    @property
    def variance(self) -> float:
        """Of weights less surrogate weights: 1 / it exact draws are worth an evaluated position."""
        squares = np.square(self.weights - self.surrogate_weights).sum()
        return float(squares / (len(self) - 1)) if len(self) > 1 else np.nan


def thin(draws: FloatArray, most: int) -> FloatArray:
    """Return every j-th draw of each chain, with the least j that leaves so many at most."""
    return draws[:, :: -(-draws.shape[1] // max(most, 1))]


def _mean_one(logs: FloatArray) -> FloatArray:
    """Return exponentials, scaled to mean one."""
    with np.errstate(invalid="ignore"):
        weights = np.exp(logs - logs.max(initial=-np.inf))
    return np.asarray(weights / weights.mean())


def count_rounds(rounds: Sequence[Round]) -> FloatArray:
    """Return what each round counts, shape (rounds,), of sum one.

    It is the number of evaluated draws times the square of that of the evaluations learnt from. If
    variances of weights fall as any power of the latter between none and the fourth, the variance
    is at worst 9/5 of the least (the argument of Owen and Zhou 2019, arXiv:1901.02976).
    """
    counts = np.array([len(each) * max(each.learnt, 1) ** 2.0 for each in rounds])
    return np.asarray(counts / counts.sum())


def combine_degrees(parts: FloatArray, degrees: FloatArray, total: FloatArray) -> FloatArray:
    """Return the degrees of freedom of total variances (k,), from those of parts (rounds, k).

    By Welch and Satterthwaite (doi:10.2307/3002019). What a total has besides is known well.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        fractions = np.where(np.isinf(total), np.isinf(parts), parts / total)
        inverse = (np.square(np.nan_to_num(fractions)) / degrees).sum(axis=0)
        return np.asarray(1.0 / inverse)


RESAMPLING_SEED = 0
"""By which weighted draws are drawn anew, so that exports are the same each time."""


def shares(log_weights: FloatArray) -> FloatArray:
    """Return weights of sum one, shape (n,), of logarithms of any shape with n numbers."""
    logs = log_weights.ravel()
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def effective(log_weights: FloatArray) -> float:
    """Return the number of equally weighted draws that weights are worth (Kish 1965)."""
    return float(1.0 / np.square(shares(log_weights)).sum())


def resampled_rows(log_weights: FloatArray, rng: np.random.Generator) -> IntArray:
    """Return as many places of draws as there are, in random order, each as often as its weight.

    Systematic resampling: a draw of weight w, in units of the mean weight, comes floor(w) or
    ceil(w) times (Douc, Cappe and Moulines 2005, doi:10.1109/ISPA.2005.195385).
    """
    n = log_weights.size
    edges = np.cumsum(shares(log_weights))
    rows = np.searchsorted(edges, (rng.random() + np.arange(n)) / n, side="right")
    return np.asarray(rng.permutation(np.minimum(rows, n - 1)))
