"""Means under the target from draws of it and, as their control, from draws of a surrogate."""

from __future__ import annotations

import functools

import attrs
import numpy as np

from surrokit.diagnostics import mean_error
from surrokit.types import BoolArray, FloatArray
from surrokit.weighted.answering import Answering, Function, bounded_by, quantile_of
from surrokit.weighted.combination import combine_degrees
from surrokit.weighted.correction import measure_degrees
from surrokit.weighted.distribution import Distribution
from surrokit.weighted.estimate import Estimate
from surrokit.weighted.figures import Figures

LARGEST_MEMORY = 0.5
"""Correlation of where a move ends with where it began, above which the end is no control."""

_STEPS = 3  # towards a quantile; the last one is far below its error


@attrs.frozen(kw_only=True, eq=False, slots=False)
class Sharpened(Answering):
    """Answers of chains whose moves keep a surrogate's density s.

    A draw x is the end y of its move on the surrogate, or, where that was rejected, the draw
    before. Were the chain's law s, so would be that of y. So y is nearly a draw of s, and the mean
    of f under s is known well, from long chains that cost no exact call. What draws have to tell is
    the mean of f(x) - f(y), which is zero wherever a move was accepted (a control variate: Ripley
    1987, "Stochastic Simulation", section 5.3).

    Let m be the mean under s, and rho the correlation of f(y) with f at the start of the move. The
    mean of f(y) is m + rho (E f - m), if f falls to its mean at one rate. So the mean of f(x) - m -
    c (f(y) - m) is (1 - c rho) (E f - m), and the estimate

        m + mean[f(x) - m - c (f(y) - m)] / (1 - c rho)

    Parameters
    ----------
    draws : ndarray of shape (chains, n, dim)
        Of the target, in the user's coordinates.
    ends : ndarray of shape (chains, n, dim)
        Where the moves to them ended; NaN where a move was none on the surrogate.
    surrogate : ndarray of shape (m, k, dim)
        Draws of chains on the surrogate alone.
    calls
        Exact calls of the whole run.
    """

    draws: FloatArray
    ends: FloatArray
    surrogate: FloatArray
    calls: float

    def expectation(self, function: Function) -> Estimate:
        """Return the means of functions under the target."""
        return self._estimate(function, control=None)

    def quantile(self, probability: float) -> Estimate:
        """Return a quantile of each number of a position; see :func:`quantile_of`."""
        part_below = functools.partial(self._estimate, control=1.0)
        aims = np.full(self.draws.shape[2], probability)
        for _ in range(_STEPS):  # each part remembers more or less
            found = part_below(bounded_by(self.distribution.invert(aims)))
            aims = np.clip(aims + probability - found.value, 0.0, 1.0)
        # where draws of the target are few, the surrogate's tell better how dense they lie
        return quantile_of(self.distribution, aims, part_below, self._of_surrogate)

    @functools.cached_property
    def figures(self) -> Figures:
        """Mean, sd and quantiles of each number."""
        return Figures.of(self)

    @functools.cached_property
    def _known(self) -> BoolArray:
        """Which moves were on the surrogate, shape (chains, n)."""
        return np.asarray(np.isfinite(self.ends).all(axis=2))

    def _values(self, function: Function) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return a function at draws, ends and draws of the surrogate, each (chains, n, k).

        Where a move was none on the surrogate, the draw stands for its end.
        """
        ends = np.where(self._known[..., None], self.ends, self.draws)

        def apply(positions: FloatArray) -> FloatArray:
            values = np.asarray(function(positions.reshape(-1, positions.shape[2])), np.float64)
            return values.reshape(*positions.shape[:2], -1)

        return apply(self.draws), apply(ends), apply(self.surrogate)

    def _estimate(self, function: Function, control: float | None) -> Estimate:
        at_draws, at_ends, of_surrogate = self._values(function)
        known, part = self._known[..., None], float(self._known.mean())
        mean = of_surrogate.mean(axis=(0, 1))
        x, y = at_draws - mean, np.where(known, at_ends - mean, 0.0)
        memory = self._memory(x, y)
        c = _slope(x[self._known], y[self._known]) if control is None else control
        c = np.where(memory > LARGEST_MEMORY, 0.0, c)
        rest, left = x - c * y, 1.0 - c * memory * part
        moved = rest.mean(axis=(0, 1)) / left
        variance, n = x.var(axis=(0, 1)), x.shape[0] * x.shape[1]
        # one rejection more or less is not to be excluded
        least = 2.0 * variance / n**2
        of_draws = np.maximum(np.square(np.nan_to_num(mean_error(rest))), least) / left**2
        of_draws += np.square(c * memory * moved)  # as f may fall at more rates than one
        of_chains = np.square(
            (1.0 - (1.0 - c * part) / left) * np.nan_to_num(mean_error(of_surrogate))
        )
        flat = (rest - rest.mean(axis=(0, 1))).reshape(n, -1)
        total = of_draws + of_chains
        with np.errstate(divide="ignore", invalid="ignore"):
            effective = variance / total
        return Estimate(
            value=mean + moved,
            error=np.sqrt(total),
            effective=np.where(total == 0.0, np.inf, effective),
            degrees=combine_degrees(of_draws[None], measure_degrees(flat)[None], total),
            calls=self.calls,
        )

    def _memory(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Return the slope of f(y) on f at the start of the move, at least 0; shape (k,)."""
        known = self._known[:, 1:]
        return np.maximum(_slope(y[:, 1:][known], x[:, :-1][known]), 0.0)

    @functools.cached_property
    def _of_surrogate(self) -> Distribution:
        flat = self.surrogate.reshape(-1, self.surrogate.shape[2])
        return Distribution.of(flat, np.full(len(flat), 1.0 / len(flat)))

    @property
    def with_masses(self) -> tuple[FloatArray, FloatArray]:
        """All draws, as if moves remembered nothing."""
        x, y, of_surrogate = self._values(lambda positions: positions)
        dim, n, m = x.shape[2], x[..., 0].size, of_surrogate[..., 0].size
        known = self._known.ravel()
        points = [each.reshape(-1, dim) for each in (of_surrogate, x, y)]
        masses = [np.full(m, known.mean() / m), np.full(n, 1.0 / n), -1.0 / n * known]
        return np.concatenate(points), np.concatenate(masses)


def _slope(of: FloatArray, on: FloatArray) -> FloatArray:
    """Return slopes of columns (n, k) on others, between -1 and 1; 0 where these do not vary."""
    if len(of) < 2:
        return np.zeros(of.shape[1])
    apart = on - on.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = (apart * (of - of.mean(axis=0))).sum(axis=0) / np.square(apart).sum(axis=0)
    return np.asarray(np.clip(np.nan_to_num(slope, posinf=0.0, neginf=0.0), -1.0, 1.0))
