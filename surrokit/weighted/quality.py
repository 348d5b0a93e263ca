"""Whether weights may be believed."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.stats import norm

from surrokit.types import FloatArray
from surrokit.weighted.answer import Answer
from surrokit.weighted.round import Round

LARGEST_K = 0.7
"""Pareto's k of the weights above which means have no error to go by (Vehtari, Simpson, Gelman,
Yao and Gabry 2024, arXiv:1507.02646)."""

LEAST_EFFECTIVE = 0.1
"""Part of the paid draws that equally weighted ones must be worth."""

FEWEST = 25
"""Draws paid for in a round, below which the tail of their weights tells nothing."""

FALSE_ALARM = 1e-3
"""Probability with which two rounds that are right are said to disagree."""

LEVEL = 0.05
"""Largest log weight, less their mean, up to which there is no tail to speak of."""


def pareto_k(log_weights: FloatArray) -> float:
    """Return Pareto's k of the largest weights, by ArviZ.

    Parameters
    ----------
    log_weights : ndarray of shape (n,)
        Up to a constant. Where all are the same but for :data:`LEVEL`, k is -inf.
    """
    from arviz_stats.base import array_stats

    finite = log_weights[np.isfinite(log_weights)]
    if not finite.size or finite.max() - finite.mean() <= LEVEL:
        return -np.inf if finite.size else np.inf
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        _, k = array_stats.psislw(finite[None])
    found = float(np.squeeze(k))
    return np.inf if np.isnan(found) else found


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
    return None


def disagreement(one: Round, other: Round) -> str | None:
    """Return by how much two rounds disagree about a mean, if by more than their errors allow."""
    first, second = (Answer(rounds=(each,), calls=0.0).mean() for each in (one, other))
    error = np.hypot(first.error, second.error)
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = np.abs(first.value - second.value) / error
    apart = np.where(np.isnan(apart), 0.0, apart)
    worst = int(np.argmax(apart))
    if apart[worst] <= norm.isf(0.5 * FALSE_ALARM / len(apart)) * 1.2:
        return None
    return f"two rounds put the mean of number {worst} {apart[worst]:.1f} standard errors apart"
