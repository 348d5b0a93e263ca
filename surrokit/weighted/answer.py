"""Answers from several rounds: each honest given its past, together by fixed weights."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np

from surrokit.types import FloatArray
from surrokit.weighted.correction import correct, shares
from surrokit.weighted.estimate import Estimate
from surrokit.weighted.round import Round

Function = Callable[[FloatArray], FloatArray]
"""From positions (n, dim) in the user's coordinates to values (n, k)."""


@attrs.frozen(kw_only=True, eq=False)
class Answer:
    """Rounds that are believed, and what they say together.

    Each round corrects draws of a surrogate that was learnt before, so its estimate is unbiased
    whatever came before. What a round counts may not depend on the noise of its correction: a
    precision that is estimated from the same weights is largest where the weights missed what
    they should have seen. It goes by the numbers of evaluations alone, as in the square root rule
    (Owen and Zhou 2019, arXiv:1901.02976): n, the evaluations that correct, times the evaluations
    that were learnt from, since errors of surrogates fall with these.

    Parameters
    ----------
    rounds
        At least one.
    calls
        Exact calls of the whole run.
    """

    rounds: tuple[Round, ...]
    calls: float

    @property
    def counts(self) -> FloatArray:
        """What each round counts, shape (rounds,); the sum is one."""
        counts = np.array([len(each) * max(each.learnt, 1) for each in self.rounds], dtype=float)
        return np.asarray(counts / counts.sum())

    @property
    def draws(self) -> FloatArray:
        """All draws paid for, shape (n, dim)."""
        return np.concatenate([each.flat[each.paid] for each in self.rounds])

    @property
    def log_weights(self) -> FloatArray:
        """Of the draws paid for, over all rounds, of mean one together, shape (n,)."""
        n = sum(map(len, self.rounds))
        parts = zip(self.counts, self.rounds, strict=True)
        with np.errstate(divide="ignore"):
            return np.concatenate(
                [np.log(each.weights * count * n / len(each)) for count, each in parts]
            )

    def expectation(self, function: Function) -> Estimate:
        """Return the means of functions under the target.

        Parameters
        ----------
        function
            From positions (n, dim) to values (n, k).
        """
        values = [self._apply(function, each) for each in self.rounds]
        return self._estimate(values, self._variances(values))

    def mean(self) -> Estimate:
        """Return the mean of each number of a position."""
        return self.expectation(lambda positions: positions)

    def sd(self) -> Estimate:
        """Return the standard deviation of each number of a position."""
        centre = self.mean().value
        square = self.expectation(lambda positions: np.square(positions - centre))
        sd = np.sqrt(np.maximum(square.value, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            return attrs.evolve(square, value=sd, error=square.error / (2.0 * sd))

    def quantile(self, probability: float) -> Estimate:
        """Return a quantile of each number of a position.

        Its error is that of the distribution function there, seen from the other axis (Woodruff
        1952, doi:10.1080/01621459.1952.10483443).
        """
        functions = [self._distribution(i) for i in range(self.rounds[0].draws.shape[2])]
        at = np.array([function.invert(probability) for function in functions])
        below = self.expectation(lambda positions: (positions <= at).astype(float))
        low, high = (
            np.array(
                [
                    function.invert(probability + sign * error)
                    for function, error in zip(functions, below.error, strict=True)
                ]
            )
            for sign in (-1.0, 1.0)
        )
        return attrs.evolve(below, value=at, error=0.5 * (high - low))

    def _apply(self, function: Function, found: Round) -> FloatArray:
        values = np.asarray(function(found.flat), dtype=np.float64)
        return np.asarray(values.reshape(*found.draws.shape[:2], -1))

    def _variances(self, values: list[FloatArray]) -> FloatArray:
        """Return the variance of each function under the target, shape (k,)."""
        counts, parts = self.counts, zip(self.rounds, values, strict=True)
        squares = [correct(each, np.square(x - x.mean(axis=(0, 1)))).means for each, x in parts]
        return np.asarray(np.maximum(counts @ np.stack(squares), 0.0))

    def _estimate(self, values: list[FloatArray], variances: FloatArray) -> Estimate:
        counts = self.counts
        found = [correct(each, x) for each, x in zip(self.rounds, values, strict=True)]
        squares = np.square(counts)[:, None]
        corrections = squares * np.stack([each.of_correction for each in found])
        chains = squares * np.stack([each.of_chains for each in found])
        variance = (chains + corrections).sum(axis=0)
        degrees = np.stack([each.degrees for each in found])
        with np.errstate(divide="ignore", invalid="ignore"):
            # by Welch and Satterthwaite; the chains' own error is known well
            degrees = np.square(variance) / (np.square(corrections) / degrees).sum(axis=0)
            effective = variances / variance
        return Estimate(
            value=counts @ np.stack([each.means for each in found]),
            error=np.sqrt(variance),
            effective=effective,
            degrees=np.where(np.isnan(degrees), np.inf, degrees),
            calls=self.calls,
        )

    def _distribution(self, i: int) -> _Distribution:
        points, masses = [], []
        for count, each in zip(self.counts, self.rounds, strict=True):
            points.append(each.flat[:, i])
            mass = np.full(len(points[-1]), 1.0 / len(points[-1]))
            mass[each.paid] += shares(each.weights) - 1.0 / len(each)
            masses.append(count * mass)
        return _Distribution.of(np.concatenate(points), np.concatenate(masses))


@attrs.frozen(kw_only=True, eq=False)
class _Distribution:
    """A distribution function of one number, made monotone: masses may be negative.

    Parameters
    ----------
    points : ndarray of shape (n,)
        In order.
    below : ndarray of shape (n,)
        Its values half-way through the step at each of them.
    """

    points: FloatArray
    below: FloatArray

    @classmethod
    def of(cls, points: FloatArray, masses: FloatArray) -> _Distribution:
        order = np.argsort(points, kind="stable")
        upto = np.cumsum(masses[order])
        half = upto - 0.5 * masses[order]
        # as much too high as too low
        rising = np.maximum.accumulate(half)
        falling = np.minimum.accumulate(half[::-1])[::-1]
        return cls(points=points[order], below=0.5 * (rising + falling))

    def invert(self, probability: float) -> float:
        return float(np.interp(probability, self.below, self.points))
