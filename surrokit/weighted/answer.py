"""Weighted answers: means, quantiles and other functions of weighted draws, with errors."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import attrs
import numpy as np

from surrokit.diagnostics import QUANTILES
from surrokit.types import FloatArray
from surrokit.weighted.correction import Values, added_shares, correct, correct_means
from surrokit.weighted.round import (
    Distribution,
    Estimate,
    Round,
    combine_degrees,
    count_rounds,
    thin,
)

MOST_DRAWS = 4000
"""Draws of a surrogate that are handed out, of the tens of thousands that answers rest on."""

Function = Callable[[FloatArray], FloatArray]
"""From positions (n, dim) in the user's coordinates to values (n, k)."""


class Answering(ABC):
    """Says what means of functions under the target are."""

    @abstractmethod
    def expectation(self, function: Function) -> Estimate:
        """Return the means under the target of functions, from (n, dim) to (n, k)."""

    @abstractmethod
    def quantile(self, probability: float) -> Estimate:
        """Return a quantile of each number of a position."""

    @property
    @abstractmethod
    def with_masses(self) -> tuple[FloatArray, FloatArray]:
        """Draws (n, dim) with masses (n,) of sum one, perhaps negative: all that is known."""

    @functools.cached_property
    def distribution(self) -> Distribution:
        """Distribution functions of all numbers of a position, without errors."""
        return Distribution.of(*self.with_masses)

    def mean(self) -> Estimate:
        """Return the mean of each number of a position."""
        return self.expectation(lambda positions: positions)

    def sd(self) -> Estimate:
        """Return the standard deviation of each number of a position."""
        mean = self.mean()
        square = self.expectation(lambda positions: np.square(positions - mean.value))
        # about the estimated mean squares are smaller by its variance
        sd = np.sqrt(np.maximum(square.value + np.square(mean.error), 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            return attrs.evolve(square, value=sd, error=square.error / (2.0 * sd))


def quantile_of(
    of: Distribution,
    probability: float | FloatArray,
    part_below: Callable[[Function], Estimate],
    beside: Distribution | None = None,
) -> Estimate:
    """Return a quantile of each of several numbers.

    Its error is that of the distribution function there, seen from the other axis (Woodruff 1952,
    doi:10.1080/01621459.1952.10483443). It is infinite at an end of all draws.

    Parameters
    ----------
    probability : float or ndarray of shape (k,)
        Of each number.
    part_below
        Returns the means of functions, whether each number is below some bound.
    beside
        Others that are near, of more draws; errors are at least what they would be by these.
    """
    at = of.invert(np.broadcast_to(probability, len(of.points)))
    below = part_below(bounded_by(at))
    half = _half_width(of, probability, below.error)
    if beside is not None:
        half = np.maximum(half, _half_width(beside, beside.place(at), below.error))
    least, largest = of.points[:, 0], of.points[:, -1]
    ended = (least < largest) & ((at == least) | (at == largest))
    unknown = ended | np.isinf(below.error)
    return attrs.evolve(below, value=at, error=np.where(unknown, np.inf, half))


def _half_width(of: Distribution, probability: float | FloatArray, error: FloatArray) -> FloatArray:
    low, high = (of.invert(probability + sign * error) for sign in (-1.0, 1.0))
    return np.asarray(0.5 * (high - low))


def bounded_by(bounds: FloatArray) -> Function:
    """Return the function that says whether each number is at most its bound, shape (k,)."""
    return lambda positions: (positions <= bounds).astype(float)


@attrs.frozen(kw_only=True, eq=False)
class Figures:
    """Mean, standard deviation and quantiles of each number of a position, with their errors."""

    mean: Estimate
    sd: Estimate
    quantiles: dict[str, Estimate]  # by the names of surrokit.diagnostics.QUANTILES

    @classmethod
    def of(cls, answer: Answering) -> Figures:
        """Return the figures of an answer."""
        quantiles = {name: answer.quantile(part) for name, part in QUANTILES.items()}
        return cls(mean=answer.mean(), sd=answer.sd(), quantiles=quantiles)

    @property
    def named(self) -> dict[str, Estimate]:
        """All of them: ``mean``, ``sd``, ``q05``, ``q50`` and ``q95``."""
        return {"mean": self.mean, "sd": self.sd, **self.quantiles}

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """All of them, without names."""
        return tuple(self.named.values())

    @property
    def effective(self) -> FloatArray:
        """Independent exact draws that would be as good for each of them, shape (dim,)."""
        return np.asarray(np.min([each.effective for each in self.estimates], axis=0))

    @property
    def relative_error(self) -> FloatArray:
        """The largest error of each number, in its standard deviations, shape (dim,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            errors = np.max([each.error for each in self.estimates], axis=0) / self.sd.value
        return np.where(np.isnan(errors), np.inf, errors)


@attrs.frozen(kw_only=True, eq=False, slots=False)
class Answer(Answering):
    """Rounds that are accepted, and what they say together.

    Each round corrects draws of a surrogate that was learnt before, so its estimate is unbiased
    whatever came before. What a round counts may not depend on the noise of its correction: a
    precision that is estimated from the same weights is largest where the weights missed what
    they should have seen. See :mod:`surrokit.weighted.correction`.

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
        return count_rounds(self.rounds)

    @property
    def is_of_process(self) -> bool:
        """Whether a process is what is known of U, as values have noise."""
        return bool(self.rounds[-1].realisations.shape[2])

    @functools.cached_property
    def latest(self) -> tuple[FloatArray, FloatArray] | None:
        """Draws of the latest surrogate, (chains, m, dim), and their log weights, (chains, m).

        Weights, of mean one, are by cross-fitting what the evaluations at some of these draws tell
        of all of them. None where draws that were evaluated are nearer to the target: means
        over these have the variance (1 + v) / n, with v the variance of what is left for weights to
        correct, and the bias of the others is at most sqrt(v), in standard deviations.
        """
        found, n = self.rounds[-1], sum(map(len, self.rounds))
        if not n * found.variance <= 1.0 + found.variance:
            return None
        most = MOST_DRAWS // len(found.draws)
        if not found.is_reweighted:
            draws = thin(found.draws, most)
            return draws, np.zeros(draws.shape[:2])
        ratios = thin(found.density_ratio, most)
        return thin(found.looked_at, most), np.log(ratios / ratios.mean())

    @property
    def draws(self) -> FloatArray:
        """All evaluated draws, shape (n, dim)."""
        return np.concatenate([each.evaluated for each in self.rounds])

    @property
    def log_weights(self) -> FloatArray:
        """Of the evaluated draws, over all rounds, of mean one together, shape (n,)."""
        n = sum(map(len, self.rounds))
        parts = zip(self.counts, self.rounds, strict=True)
        with np.errstate(divide="ignore"):
            return np.concatenate(
                [np.log(each.weights * count * n / len(each)) for count, each in parts]
            )

    def expectation(self, function: Function) -> Estimate:
        """Return the means of functions under the target."""
        values = [self._apply(function, each) for each in self.rounds]
        return self._estimate(values, [()] * len(values))

    def quantile(self, probability: float) -> Estimate:
        """Return a quantile of each number of a position; see :func:`quantile_of`."""

        def part_below(function: Function) -> Estimate:
            values = [self._apply(function, each) for each in self.rounds]
            return self._estimate(values, self._scores)

        return quantile_of(self.distribution, probability, part_below)

    def _apply(self, function: Function, found: Round) -> Values:
        def apply(positions: FloatArray) -> FloatArray:
            values = np.asarray(function(positions.reshape(-1, positions.shape[-1])), np.float64)
            return values.reshape(*positions.shape[:-1], -1)

        return Values(apply(found.draws), apply(found.looked_at), apply(found.evaluated))

    def _variances(self, values: Sequence[Values]) -> FloatArray:
        """Return the variance of each function under the target, shape (k,)."""
        squares = [each.squared() for each in values]
        parts = zip(self.rounds, squares, strict=True)
        corrected = self.counts @ np.stack([correct_means(*each) for each in parts])
        plain = self.counts @ np.stack([each.flat.mean(axis=0) for each in squares])
        # few evaluations far out may correct it below zero
        return np.asarray(np.maximum(corrected, 0.25 * plain))

    def _estimate(self, values: Sequence[Values], trends: Sequence[Sequence[Values]]) -> Estimate:
        counts = self.counts
        found = [correct(*each) for each in zip(self.rounds, values, trends, strict=True)]
        squares = np.square(counts)[:, None]
        corrections = squares * np.stack([each.of_correction for each in found])
        chains = squares * np.stack([each.of_chains for each in found])
        variance = (chains + corrections).sum(axis=0)
        degrees = [each.degrees for each in found] + [each.degrees_of_chains for each in found]
        return Estimate(
            value=counts @ np.stack([each.means for each in found]),
            error=np.sqrt(variance),
            effective=ratio(self._variances(values), variance),
            degrees=combine_degrees(
                np.concatenate([corrections, chains]), np.stack(degrees), variance
            ),
            calls=self.calls,
        )

    @functools.cached_property
    def _scores(self) -> list[list[Values]]:
        """Normal scores by number, and their squares: what quantiles see of scales."""
        found = []
        for each in self.rounds:
            ordered = np.sort(each.flat, axis=0)
            scores = self._apply(functools.partial(_scores, ordered), each)
            found.append([scores, Values(*map(np.square, attrs.astuple(scores)))])
        return found

    @property
    def with_masses(self) -> tuple[FloatArray, FloatArray]:
        """All draws, with those that were evaluated exactly as corrections."""
        points, masses = [], []
        for count, each in zip(self.counts, self.rounds, strict=True):
            even = np.full(len(each.flat), 1.0 / len(each.flat))
            # less that of the draws as they are
            ratios = (each.density_ratio - each.looked_at_weights).ravel()
            points += [each.flat, each.looked_at.reshape(len(ratios), -1), each.evaluated]
            masses += [count * even, count * ratios / len(ratios), count * added_shares(each)]
        return np.concatenate(points), np.concatenate(masses)


def _scores(ordered: FloatArray, positions: FloatArray) -> FloatArray:
    """Return the normal scores of positions (n, dim) among ordered numbers (m, dim)."""
    # imported late, so that importing the package stays fast
    from scipy.special import ndtri

    columns = zip(ordered.T, positions.T, strict=True)
    below = np.stack([np.searchsorted(those, these) for those, these in columns], axis=1)
    return np.asarray(ndtri((below + 0.5) / (len(ordered) + 1.0)))


def ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    """Return a ratio that is infinite where the denominator is zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below == 0.0, np.inf, above / below)
