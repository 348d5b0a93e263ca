"""Means under the target from draws of it, with moves on a surrogate as their control."""

from __future__ import annotations

import functools

import attrs
import numpy as np

from surrokit.diagnostics import mean_error
from surrokit.types import BoolArray, FloatArray
from surrokit.weighted.answer import (
    Answering,
    Figures,
    Function,
    bounded_by,
    quantile_of,
    ratio,
)
from surrokit.weighted.correction import LEAST_DEGREES, is_heavy, measure_degrees
from surrokit.weighted.round import Distribution, Estimate


@attrs.frozen(kw_only=True, eq=False, slots=False)
class Sharpened(Answering):
    """Answers of chains whose proposals come from a kernel P on a surrogate.

    A draw x is the end y of a move of P, or, where that was rejected, the draw before. The moves
    that were proposed began at draws of the target, and so do other moves of P from the same draws,
    which cost no exact call. Let Pf(x) be the average of f over the latter. Then f(y) and Pf(x)
    have one and the same mean, whatever the surrogate misses and however slowly P mixes, so the
    mean of

        f(x) + c (Pf(x) - f(y))

    is that of f for every number c (a control variate: Ripley 1987, "Stochastic Simulation",
    section 5.3). Where a move forgets a part 1 - r of f, and all moves are accepted, Pf is r f up
    to a constant, and with c = 1 / (1 - r) nothing is left of the noise of f. This c is
    Dellaportas and Kontoyiannis's (2012, doi:10.1111/j.1467-9868.2011.01000.x). Here c is fitted.

    Parameters
    ----------
    draws : ndarray of shape (chains, n, dim)
        Of the target, in the user's coordinates.
    ends : ndarray of shape (chains, n, dim)
        Where the moves to them ended; NaN where a move was none on the surrogate.
    moves : ndarray of shape (m, chains, n, dim)
        Where m other moves from each draw end.
    calls
        Exact calls of the whole run.
    """

    draws: FloatArray
    ends: FloatArray
    moves: FloatArray
    calls: float

    def expectation(self, function: Function) -> Estimate:
        """Return the means of functions under the target."""
        at_draws, ahead, at_ends = self._values(function)
        # centred, so that a constant is exact
        centre = at_draws[0, 0]
        x, control = at_draws - centre, np.where(self._known[..., None], ahead - at_ends, 0.0)
        c = _slope(x, control)
        sharp, variance, n = x + c * control, x.var(axis=(0, 1)), x[..., 0].size
        # one rejection more or less is not to be excluded
        least = np.where(control.any(axis=(0, 1)), 2.0 * variance / n**2, 0.0)
        squared = np.maximum(self._variance(sharp), np.square(c) * least)
        heavy = is_heavy(x, self._variance(x))
        apart = (sharp - sharp.mean(axis=(0, 1))).reshape(n, -1)
        return Estimate(
            value=centre + sharp.mean(axis=(0, 1)),
            error=np.sqrt(squared),
            effective=ratio(variance, squared),
            degrees=np.where(heavy, LEAST_DEGREES, measure_degrees(apart)),
            calls=self.calls,
        )

    def quantile(self, probability: float) -> Estimate:
        """Return a quantile of each number of a position; see :func:`quantile_of`."""
        aims = np.full(self.draws.shape[2], probability)
        for _ in range(3):  # the control of each part has a slope of its own
            found = self.expectation(bounded_by(self.distribution.invert(aims)))
            aims = np.clip(aims + probability - found.value, 0.0, 1.0)
        # where draws of the target are few, moves tell better how dense they lie
        return quantile_of(self.distribution, aims, self.expectation, self._of_moves)

    @functools.cached_property
    def figures(self) -> Figures:
        """Mean, sd and quantiles of each number."""
        return Figures.of(self)

    @property
    def with_masses(self) -> tuple[FloatArray, FloatArray]:
        """All draws, with a slope of one for all parts."""
        known, n = self._known.ravel(), self._known.size
        flat = [each.reshape(-1, self.draws.shape[2]) for each in self._all]
        m = len(self.moves)
        masses = [np.full(n, 1.0 / n), np.tile(known / (n * m), m), -1.0 / n * known]
        return np.concatenate(flat), np.concatenate(masses)

    @functools.cached_property
    def _of_moves(self) -> Distribution:
        flat = self._all[1].reshape(-1, self.draws.shape[2])
        return Distribution.of(flat, np.full(len(flat), 1.0 / len(flat)))

    @functools.cached_property
    def _known(self) -> BoolArray:
        """Which moves were on the surrogate, shape (chains, n)."""
        ends, moves = (np.isfinite(each).all(axis=-1) for each in (self.ends, self.moves))
        return np.asarray(ends & moves.all(axis=0))

    @functools.cached_property
    def _all(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Draws, moves and ends; a draw stands for those that are not known."""
        known = self._known[..., None]
        return (
            self.draws,
            np.where(known, self.moves, self.draws),
            np.where(known, self.ends, self.draws),
        )

    def _values(self, function: Function) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return f at draws, its averages over moves, and f at ends, each (chains, n, k)."""

        def apply(positions: FloatArray) -> FloatArray:
            values = np.asarray(function(positions.reshape(-1, positions.shape[-1])), np.float64)
            return values.reshape(*positions.shape[:-1], -1)

        draws, moves, ends = self._all
        return apply(draws), apply(moves).mean(axis=0), apply(ends)

    def _variance(self, values: FloatArray) -> FloatArray:
        """Return the variance of means of values (chains, n, k), shape (k,).

        Noise without a memory hides the autocorrelations of a small part that changes slowly, such
        as that of a mode. What follows the position is looked at alone.
        """
        numbers = self.draws.reshape(-1, self.draws.shape[2])
        numbers = numbers - numbers.mean(axis=0)
        flat = values.reshape(len(numbers), -1)
        fit = numbers @ np.linalg.lstsq(numbers, flat - flat.mean(axis=0), rcond=None)[0]
        slow = fit.reshape(values.shape)
        whole, *parts = (
            np.square(np.nan_to_num(mean_error(each))) for each in (values, slow, values - slow)
        )
        return np.asarray(np.maximum(whole, sum(parts)))


def _slope(x: FloatArray, control: FloatArray) -> FloatArray:
    """Return the c with which x + c * control (chains, n, k) vary least, shape (k,)."""
    apart, about = (each - each.mean(axis=(0, 1)) for each in (x, control))
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = -(apart * about).sum(axis=(0, 1)) / np.square(about).sum(axis=(0, 1))
    return np.asarray(np.nan_to_num(slope, posinf=0.0, neginf=0.0))
