"""Whether weights may be believed."""

from __future__ import annotations

import warnings

import numpy as np

from surrokit.contracts.potential import Potential
from surrokit.contracts.sampler import SurrogateSample
from surrokit.diagnostics import r_hat
from surrokit.surrogate.border import part_beyond
from surrokit.types import FloatArray
from surrokit.weighted.answer import Answer
from surrokit.weighted.answering import Function
from surrokit.weighted.estimate import Estimate
from surrokit.weighted.round import Round

LARGEST_K = 0.7
"""Pareto's k of the weights above which means have no error to go by (Vehtari, Simpson, Gelman,
Yao and Gabry 2024, arXiv:1507.02646)."""

LEAST_EFFECTIVE = 0.1
"""Part of the paid draws that equally weighted ones must be worth."""

LARGEST_VARIANCE = 4.0
"""Variance of the weights above which a paid draw is worth less than a quarter of an exact one.
Such a round would spoil the others by what it counts."""

LARGEST_RHAT = 1.02
"""R-hat of chains on the surrogate above which their draws are not its own."""

MOST_BEYOND = 0.05
"""Part of the surrogate's draws beyond its border above which its mass is not known."""

MARGIN = 2.0
"""By how much more than their limits short chains have to miss them to be refused at once."""

FEWEST = 25
"""Draws paid for in a round, below which the largest fifth is fewer than the five that a tail is
fitted to."""

FALSE_ALARM = 1e-3
"""Probability with which two rounds that are right are said to disagree."""

LEVEL = 0.05
"""Logarithm of the largest weight over their mean up to which there is no tail to speak of."""


def pareto_k(log_weights: FloatArray) -> float:
    """Return Pareto's k of the largest weights, by ArviZ.

    Parameters
    ----------
    log_weights : ndarray of shape (n,)
        Up to a constant; -inf where a weight is zero. Where all are the same but for
        :data:`LEVEL`, or those of the tail are, k is -inf. Where they are fewer than
        :data:`FEWEST`, or most are zero, it is inf.
    """
    largest = log_weights.max(initial=-np.inf)
    if not np.isfinite(largest):
        return np.inf
    weights = np.exp(log_weights - largest)
    if weights.mean() >= np.exp(-LEVEL):
        return -np.inf
    tail = np.sort(weights)[-max(len(weights) // 5, 1) :]
    if len(weights) < FEWEST or tail[0] == 0.0:
        return np.inf
    # where as many are about as large as the largest there is no tail
    return -np.inf if tail[0] >= np.exp(-LEVEL) * tail[-1] else _k_of_arviz(weights)


def _k_of_arviz(weights: FloatArray) -> float:
    from arviz_stats.base import array_stats

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        k = array_stats.pareto_khat(weights[None], r_eff=1.0, tail="right")
    found = float(np.squeeze(k))
    return np.inf if np.isnan(found) else found


def complaint_about_draws(sample: SurrogateSample, surrogate: Potential | None) -> str | None:
    """Return why draws are not the surrogate's, or not to be used, or None."""
    rhat = float(np.max(r_hat(sample.positions)))
    if not rhat <= LARGEST_RHAT:
        return f"chains on the surrogate alone are apart, with R-hat {rhat:.3g}"
    beyond = part_beyond(surrogate, sample.flat)
    if beyond > MOST_BEYOND:
        return f"{beyond:.2g} of the surrogate's draws lie beyond all that it has learnt from"
    return None


def stay_refused(positions: FloatArray, surrogate: Potential | None, longer: float) -> bool:
    """Return whether :func:`complaint_about_draws` would refuse chains however they go on.

    Where chains mix, the square of R-hat less one falls about as one over their length.

    Parameters
    ----------
    positions : ndarray of shape (chains, draws, dim)
        Draws so far.
    surrogate
        V.
    longer
        How many times as long chains may become.
    """
    apart, refused = np.square([np.max(r_hat(positions)), LARGEST_RHAT]) - 1.0
    if apart > MARGIN * longer * refused:
        return True
    return part_beyond(surrogate, positions.reshape(-1, positions.shape[2])) > MARGIN * MOST_BEYOND


def complaint(found: Round) -> str | None:
    """Return why the weights of a round are not to be believed, or None."""
    if len(found) < FEWEST:
        return f"{len(found)} weights tell nothing of their tail, {FEWEST} are the least"
    if not np.isfinite(found.log_weights).any():
        return "the target is zero at all draws of the surrogate"
    if (k := pareto_k(found.log_weights)) > LARGEST_K:
        return f"Pareto's k of the weights is {k:.2f}, above {LARGEST_K}"
    least = LEAST_EFFECTIVE * len(found)
    if found.effective < least:
        return (
            f"{len(found)} weights are worth {found.effective:.1f} equal ones, {least:.1f} needed"
        )
    if found.variance > LARGEST_VARIANCE:
        return f"the variance of the weights is {found.variance:.2g}, above {LARGEST_VARIANCE:g}"
    return None


def disagreement(one: Round, other: Round) -> str | None:
    """Return by how much two rounds disagree about a mean, if by more than their errors allow.

    The means are those of the numbers and of their squares: false modes may change either.
    """
    from scipy.stats import t as student

    centre = one.flat.mean(axis=0)
    pair = [
        Answer(rounds=(each,), calls=0.0).expectation(_moments(centre)) for each in (one, other)
    ]
    apart, degrees = _compare(*pair)
    likely = 2.0 * student.sf(apart, degrees) * len(apart)
    worst = int(np.argmin(likely))
    if likely[worst] >= FALSE_ALARM:
        return None
    dim = len(centre)
    of = "mean" if worst < dim else "mean square"
    return (
        f"two rounds put the {of} of number {worst % dim} {apart[worst]:.1f} standard errors apart"
    )


def _moments(centre: FloatArray) -> Function:
    return lambda positions: np.hstack([positions - centre, np.square(positions - centre)])


def _compare(one: Estimate, other: Estimate) -> tuple[FloatArray, FloatArray]:
    """Return differences in standard errors, and their degrees of freedom; of constants zero."""
    first, second = np.square(one.error), np.square(other.error)
    difference = np.abs(one.value - other.value)
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = difference / np.sqrt(first + second)
        parts = np.square(first / (first + second)) / one.degrees
        degrees = 1.0 / (parts + np.square(second / (first + second)) / other.degrees)
    return np.where(difference == 0.0, 0.0, apart), np.where(np.isnan(degrees), np.inf, degrees)
