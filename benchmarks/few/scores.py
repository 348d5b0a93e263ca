"""How far draws are from those of a reference."""

from __future__ import annotations

import numpy as np

from surrokit.types import FloatArray

SHOWN = 4000
"""Draws of which densities are estimated for the total variation."""

RESAMPLED = 20_000


def distances(draws: FloatArray, reference: FloatArray) -> dict[str, float]:
    """Return GsKL and MMTV of draws."""
    moments = [(each.mean(axis=0), np.cov(each.T)) for each in (draws, reference)]
    (mean, covariance), (mean_there, covariance_there) = moments
    inverses = [np.linalg.inv(each) for each in (covariance, covariance_there)]
    away = mean - mean_there
    total = np.trace(inverses[0] @ covariance_there) + np.trace(inverses[1] @ covariance)
    total += away @ (inverses[0] + inverses[1]) @ away - 2 * len(mean)
    return {"gskl": float(0.25 * total), "mmtv": _total_variation(draws, reference)}


def _total_variation(draws: FloatArray, reference: FloatArray) -> float:
    from scipy.stats import gaussian_kde

    found = []
    for ours, theirs in zip(draws.T, reference.T, strict=True):
        ours, theirs = (each[:: max(1, len(each) // SHOWN)] for each in (ours, theirs))
        low, high = np.quantile(np.r_[ours, theirs], [0.0005, 0.9995])
        grid = np.linspace(low - 0.1 * (high - low), high + 0.1 * (high - low), 300)
        apart = np.abs(gaussian_kde(ours)(grid) - gaussian_kde(theirs)(grid))
        found.append(0.5 * float(np.trapezoid(apart, grid)))
    return float(np.mean(found))


def unweighted(draws: FloatArray, weights: FloatArray | None, seed: int) -> FloatArray:
    """Return draws of equal weight out of weighted ones."""
    if weights is None:
        return draws
    rng = np.random.default_rng(seed)
    return draws[rng.choice(len(draws), RESAMPLED, p=weights / np.sum(weights))]
