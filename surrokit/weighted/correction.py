"""How much the draws of a surrogate are off in the mean of a function, and how sure that is.

**Control variate.** V is a surrogate whose M draws are free, and U the exact potential, known at n
evaluated positions: draws of a density q, with weights w (the target's density over q) and
surrogate weights e (that of exp(-V) over q), each scaled to mean one. With m the mean of f over
all draws, the mean of f under the target is

    m + sum_j (share_j - even share_j) (f_j - m),

for which shares w_j / sum w would be biased by about Var(w) / n, as the sum is random too. They are
the delete-one jackknife's (Quenouille 1956, doi:10.1093/biomet/43.3-4.353).

**Cross-fitting.** V_k has learnt from all evaluations of the round but part k, and r_k is its
density over that of V. Evaluations of part k are new to it and may correct it: with e_k = r_k e,
the mean of f

    mean over k of [E_V r_k f + mean over part k of (w - e_k) f]

is unbiased given V, and better by as much as V_k is closer to the target (Chernozhukov et al. 2018,
doi:10.1111/ectj.12097). Where V ends and V_k goes on V has no draws, and r_k would look even. So
E_V is a mean over draws of V and of a wider density together, ``looked_at``, with weights b that
make them draws of V. The mean of the r_k is there, times b, the ``density_ratio``: it adds the mean
of (density_ratio - b) (f - m).

**Errors.** The variance has two parts, which may be added: the correction's mean, given all draws,
has a covariance with m of order sd(f) sd((w - 1) (f - m)) / M, at most a part sqrt(n / M) of their
sum. That of the draws is estimated by autocorrelations, or by means of whole chains, which see a
chain that was away in a tail for long, once, where they are farther apart than chance explains.
That of the correction is the jackknife's, but few positions are evaluated where a rare event
happens. So it is at least

- as if weights had nothing to do with f, or rose and fell with it as fitted lines say;
- by *predictive variance*, the mean over V of h (f - m)^2 / n. Where no evaluation lies in
  a tail that V gets wrong, weights are even and errors too small. A later surrogate V', which
  has learnt from these evaluations, predicts weights w = e r at every draw, r = exp(V - V') of
  mean one. An evaluation has the variance (w - e)^2 (f - m)^2 on average under q, which is
  h (f - m)^2, with h = e (r - 1)^2, on average under V. Where others were corrected in place of V
  their density ratios stand for the one. It is no part of an answer, since V' knows the points that
  correct V.

**Noise.** Weights of values with noise would be biased, as the exponential of noise is. So where U
is known by a process alone, whose mean is V, its draws are the answer, and no value corrects it.
The process has a covariance K of U at the draws, and the mean of f has the variance
E_V E_V' (f - m) K (f' - m), to first order (Bayesian quadrature: O'Hagan 1991,
doi:10.1016/0378-3758(91)90002-V).

**Degrees of freedom.** A variance of n numbers of kurtosis g has relative variance (g - 1) / n, and
one with d degrees 2 / d. The kurtosis of n numbers is at most n, and small if none of them lies in
the tail that matters: it is at least that of the function itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import attrs
import numpy as np

from surrokit.diagnostics import mean_error
from surrokit.types import BoolArray, FloatArray
from surrokit.weighted.round import Round, thin

CHANCE = 0.05
"""Probability with which means of chains look farther apart than autocorrelations explain: the
larger of both estimates, without a test, would be too large by a tenth."""

LEAST_DEGREES = 1.0
"""Degrees of freedom that an error has at least; its interval is then that of Cauchy's law."""


def shares(weights: FloatArray) -> FloatArray:
    """Return what each evaluated draw adds to a mean under the target, shape (n,), of sum one.

    n w_j / S - (n - 1) / n sum over i != j of w_j / (S - w_i), with S the sum of the weights; plain
    shares where all weight is on one draw, as nothing is left without it.
    """
    n, rest = len(weights), sum_without(weights)
    plain = weights / weights.sum()
    if not rest.all():
        return np.asarray(plain)
    inverse = 1.0 / rest
    return np.asarray(n * plain - (n - 1) / n * weights * (inverse.sum() - inverse))


def added_shares(found: Round) -> FloatArray:
    """Return what each evaluated draw adds to a mean over all draws, shape (n,), of sum zero."""
    return shares(found.weights) - shares(found.surrogate_weights)


@attrs.frozen(kw_only=True, eq=False)
class Corrected:
    """Means of k functions under the target by one round; arrays of shape (k,)."""

    means: FloatArray
    of_chains: FloatArray  # variance of what draws say
    of_correction: FloatArray  # of the rest; infinite where all weight is on one draw
    degrees: FloatArray  # of freedom, of the latter
    degrees_of_chains: FloatArray


@attrs.frozen(eq=False)
class Values:
    """Values of k functions."""

    draws: FloatArray  # at the draws, shape (chains, draws, k)
    looked_at: FloatArray  # where other surrogates are evaluated, shape (chains, m, k)
    evaluated: FloatArray  # at the evaluated positions, shape (n, k)

    @property
    def flat(self) -> FloatArray:
        """At the draws, chain by chain, shape (chains * draws, k)."""
        return np.asarray(self.draws.reshape(-1, self.draws.shape[2]))

    def less(self, numbers: FloatArray) -> Values:
        """Return the values less k numbers."""
        return Values(*(each - numbers for each in attrs.astuple(self)))

    def squared(self) -> Values:
        """Return the squares about the means of the draws."""
        centred = self.less(self.draws.mean(axis=(0, 1)))
        return Values(*map(np.square, attrs.astuple(centred)))


def correct_means(found: Round, values: Values) -> FloatArray:
    """Return the means under the target, shape (k,), of functions with these values."""
    mean = values.draws.mean(axis=(0, 1))
    reweighted = _reweighted(found, values.looked_at - mean).mean(axis=(0, 1))
    return np.asarray(mean + reweighted + added_shares(found) @ (values.evaluated - mean))


def _reweighted(found: Round, looked_at: FloatArray) -> FloatArray:
    """Return b (r - 1) (f - m) at the positions looked at, from f - m there (chains, m, k)."""
    return np.asarray((found.density_ratio - found.looked_at_weights)[..., None] * looked_at)


def correct(found: Round, values: Values, trends: Sequence[Values] = ()) -> Corrected:
    """Return the means under the target of functions with these values, and their variances.

    Log weights may rise or fall with the trends, or with the values alone if there are none.
    """
    means = correct_means(found, values)
    values = values.less(values.draws[0, 0])  # exact for constants, and squares keep their digits
    flat, n = values.flat, len(found)
    still = flat.max(axis=0) == flat.min(axis=0)
    centred = values.less(flat.mean(axis=0))
    moves = _without(found.weights, centred.evaluated) - _without(
        found.surrogate_weights, centred.evaluated
    )
    moves -= moves.mean(axis=0)
    jackknife = (n - 1) / n * np.square(moves).sum(axis=0)
    seen = np.maximum(jackknife, _predict_variance(found, centred, trends) / n)
    late = np.sqrt(found.predictive_variance)[..., None] * centred.looked_at
    late = late.reshape(-1, late.shape[2])
    by_later = np.square(late).mean(axis=0) / n
    of_chains, degrees_of_chains = _of_draws(found, centred)
    of_chains = of_chains + process_variance(found, centred)
    degrees = measure_degrees(moves, _kurtosis(centred.flat))
    still &= (values.evaluated == flat[0]).all(axis=0)
    unknown = not sum_without(found.weights).all()
    return Corrected(
        means=means,
        of_chains=np.where(still, 0.0, of_chains),
        of_correction=np.where(still, 0.0, np.inf if unknown else np.maximum(seen, by_later)),
        # predictive_variance is of many draws, where evaluations are few
        degrees=np.where(by_later > seen, measure_degrees(late), degrees),
        degrees_of_chains=degrees_of_chains,
    )


def process_variance(found: Round, centred: Values) -> FloatArray:
    """Return the variance of means, (k,), that comes from what a process does not know of U."""
    chains, m, n = found.realisations.shape
    if not n:
        return np.zeros(centred.draws.shape[2])
    values = thin(centred.draws, m).reshape(chains * m, -1)
    logs = -found.realisations.reshape(-1, n)
    weights = np.exp(logs - logs.max(axis=0))
    moves = weights.T @ values / weights.sum(axis=0)[:, None] - values.mean(axis=0)
    return np.asarray(np.square(moves).mean(axis=0))


def _of_draws(found: Round, centred: Values) -> tuple[FloatArray, FloatArray]:
    """Return the variance of the mean over draws, reweighted, and its degrees, each (k,)."""
    plain, degrees = chain_variance(centred.draws)
    degrees = np.where(is_heavy(centred.draws, plain), LEAST_DEGREES, degrees)
    if not found.is_reweighted:
        return plain, degrees
    reweighted = _reweighted(found, centred.looked_at)
    both = np.mean(reweighted * centred.looked_at, axis=(0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        # as a part of the variance of f, since both have about its autocorrelation
        shared = np.nan_to_num(both / np.square(centred.draws).mean(axis=(0, 1)))
    own = np.square(mean_error(reweighted))
    return plain * (1.0 + 2.0 * np.maximum(shared, 0.0)) + own, degrees


def chain_variance(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the variance of means over chains of values (chains, n, k), and its degrees, (k,).

    Means of whole chains, or of parts of them where chains are few, are independent whatever the
    chains do between their ends. Where few were in a tail, degrees are few.
    """
    from scipy.special import chdtri  # late: importing the package stays fast

    chains, n, k = values.shape
    parts = min(-(-32 // chains), n)
    length = n // parts
    kept = values[:, : parts * length].reshape(chains * parts, length, k)
    batches = np.asarray(kept.mean(axis=1))
    apart = batches - batches.mean(axis=0)
    free = max(len(apart) - 1, 1)
    between = np.square(apart).sum(axis=0) / (len(apart) * free)
    within = np.square(mean_error(values))
    degrees = measure_degrees(apart)
    # a chain that is away has a mean far from all others
    by_chance = (between * free <= within * chdtri(free, CHANCE)) & (degrees >= 0.5 * len(apart))
    return np.where(by_chance, within, np.fmax(within, between)), degrees


def is_heavy(values: FloatArray, variance: FloatArray) -> BoolArray:
    """Return whether values (chains, n, k) of functions may have no variance, shape (k,).

    The interval of their means, whose variance is given, is then that of Cauchy's law. Pareto's k
    of how far values lie from their mean is within its own standard error of 1/2, or above: chains
    that have yet to see the tail find it too small. The error of k is (1 + k) / sqrt(m) for m draws
    of the tail, here as many as independent ones are worth.
    """
    n = values.shape[0] * values.shape[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        part = values.var(axis=(0, 1)) / (variance * n)  # independent draws, of all
        tail = min(3.0 * np.sqrt(n), 0.2 * n) * np.minimum(part, 1.0)
        k = np.full(values.shape[2], -np.inf)
        for i, column in enumerate(np.moveaxis(values, 2, 0) if n > 100 else ()):
            # events have two values, and no tail
            if not np.isin(column, (column.min(), column.max())).all():
                apart = np.abs(column - column.mean()).reshape(1, -1)
                k[i] = np.nan_to_num(pareto_k_of(apart / apart.max()), nan=-np.inf)
        return np.asarray(k + (1.0 + k) / np.sqrt(tail) > 0.5)


def pareto_k_of(numbers: FloatArray) -> float:
    """Return Pareto's k of the right tail of numbers (1, n), by ArviZ; NaN where there is none."""
    # imported late, so that importing the package stays fast
    from arviz_stats.base import array_stats

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return float(np.squeeze(array_stats.pareto_khat(numbers, r_eff=1.0, tail="right")))


def _predict_variance(found: Round, values: Values, trends: Sequence[Values]) -> FloatArray:
    """Return the variance of (w - e) (f - m) that trends of log weights predict, shape (k,).

    Logarithms of weights that are predicted do not leave one and a half times the range of those
    seen.
    """
    squares = np.square(values.flat)
    usual = np.asarray(found.variance * squares.mean(axis=0))
    if np.isfinite(found.log_ratios).sum() < 8:  # too few for a line
        return usual
    lines = [_fit_line(found, trend) for trend in trends or (values,)]
    at_draws, at_evaluated = (np.exp(sum(parts)) for parts in zip(*lines, strict=True))
    known = found.surrogate_weights > 0.0
    seen = found.weights[known] / found.surrogate_weights[known]
    scale, least, largest = at_draws.mean(axis=0), seen.min(), seen.max()
    predicted, there = (
        np.clip(each / scale, least**1.5, largest**1.5) - 1.0 for each in (at_draws, at_evaluated)
    )
    rest = (found.weights - found.surrogate_weights)[:, None] - found.surrogate_weights[
        :, None
    ] * there
    mean = np.mean(predicted * values.flat, axis=0)
    variance = np.mean(np.square(predicted) * squares, axis=0) - np.square(mean)
    variance += np.square(rest).mean(axis=0) * squares.mean(axis=0)
    return np.asarray(np.maximum(usual, variance))


def _fit_line(found: Round, trend: Values) -> tuple[FloatArray, FloatArray]:
    """Return lines through log weights along columns, at all draws and at those evaluated.

    They are flat where no slope is to be seen: slopes are shrunk (James and Stein) by the noise
    that residuals say they have (HC3 of MacKinnon and White 1985,
    doi:10.1016/0304-4076(85)90158-7). Positions count by their surrogate_weights.
    """
    known = np.isfinite(found.log_ratios)
    counts, logs = found.surrogate_weights[known], found.log_ratios[known]
    counts = counts / counts.mean()
    evaluated = trend.evaluated[known]
    centre, centred = counts @ evaluated / len(logs), logs - counts @ logs / len(logs)
    apart = evaluated - centre
    squares = counts @ np.square(apart)
    with np.errstate(divide="ignore", invalid="ignore"):
        pulls = counts[:, None] * apart / squares
        slope = centred @ pulls
        # residuals from lines without each position: one far out has none from its own line
        rest = (centred[:, None] - slope * apart) / (1.0 - pulls * apart)
        slope *= np.maximum(1.0 - np.square(pulls * rest).sum(axis=0) / np.square(slope), 0.0)
    slope = np.nan_to_num(slope, posinf=0.0, neginf=0.0)
    at_draws, at_evaluated = (slope * (each - centre) for each in (trend.flat, trend.evaluated))
    # exponentials of 50 are far above all weights seen
    return np.minimum(at_draws, 50.0), np.minimum(at_evaluated, 50.0)


def _without(weights: FloatArray, evaluated: FloatArray) -> FloatArray:
    """Return weighted means of all values (n, k) but one, shape (n, k)."""
    rest = np.maximum(sum_without(weights), np.finfo(float).tiny)
    return np.asarray((weights @ evaluated - weights[:, None] * evaluated) / rest[:, None])


def measure_degrees(moves: FloatArray, least: FloatArray | float = 1.0) -> FloatArray:
    """Return the degrees of freedom of the variance of moves (n, k): few where few make it up.

    Moves are of mean zero, and ``least`` (k,) is the kurtosis of the function.
    """
    n, kurtosis = len(moves), np.fmax(_kurtosis(moves), least)
    with np.errstate(divide="ignore"):
        degrees = 2.0 * n / (kurtosis - 1.0)
    return np.clip(np.nan_to_num(degrees, nan=n - 1.0), LEAST_DEGREES, max(n - 1.0, LEAST_DEGREES))


def _kurtosis(numbers: FloatArray) -> FloatArray:
    """Return the fourth moment over the square of the second, of columns of mean zero (n, k)."""
    squares = np.square(numbers)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.square(squares).mean(axis=0) / np.square(squares.mean(axis=0)))


def sum_without(weights: FloatArray) -> FloatArray:
    """Return the sums of all weights but one (n,), each to rounding error."""
    before, after = np.cumsum(weights), np.cumsum(weights[::-1])[::-1]
    return np.asarray(np.append(0.0, before[:-1]) + np.append(after[1:], 0.0))
