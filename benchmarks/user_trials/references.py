"""Means and standard deviations of the trials' targets, by other means than the program's."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import numpy as np
from scipy.integrate import quad
from scipy.optimize import minimize

from surrokit.types import FloatArray
from user_trials import densities
from user_trials.densities import CURVE, DAYS, PEOPLE, flow

Moments: TypeAlias = tuple[FloatArray, FloatArray]
"""Means and standard deviations, shape (dim,) each."""

Batched: TypeAlias = Callable[[FloatArray], FloatArray]


def two_modes() -> Moments:
    """Return those of the two modes."""
    return np.ones(2), np.full(2, 3.0)


def correlated() -> Moments:
    """Return those of the correlated normal."""
    return np.ones(20), np.sqrt(np.diag(densities.covariance()))


@cache
def sir() -> Moments:
    """Return those of the epidemic, on a grid in logarithms that is laid three times."""

    def density(z: FloatArray) -> FloatArray:
        q = np.exp(z.T)
        found = densities.density_of_counts(q, _solved(q)) + z.sum(axis=1)
        return np.where(q[2] < 1.0, found, -np.inf)

    found = minimize(
        lambda z: -float(density(z[None])[0]), np.log([1.7, 0.5, 0.003]), method="BFGS"
    )
    steps = np.stack(np.meshgrid(*[np.linspace(-7.0, 7.0, 49)] * 3), axis=-1).reshape(-1, 3)
    centre, spread = found.x, 0.03**2 * np.eye(3)
    for _ in range(3):  # by what the grid before has found
        z = centre + steps @ np.linalg.cholesky(spread).T
        log_density = density(z)
        weights = np.exp(log_density - log_density.max())
        centre, spread = np.average(z, axis=0, weights=weights), np.cov(z.T, aweights=weights)
    mean = np.average(np.exp(z), axis=0, weights=weights)
    return mean, np.sqrt(np.average((np.exp(z) - mean) ** 2, axis=0, weights=weights))


def _solved(q: FloatArray, each: int = 20) -> FloatArray:
    """Return expected counts (days, n) of many epidemics (3, n), by Runge and Kutta's method."""
    infection, recovery, infected = q
    y, h, found = np.stack([1.0 - infected, infected]), 1.0 / each, []
    for _ in DAYS:
        for _ in range(each):
            k1 = flow(0.0, y, infection, recovery)
            k2 = flow(0.0, y + 0.5 * h * k1, infection, recovery)
            k3 = flow(0.0, y + 0.5 * h * k2, infection, recovery)
            k4 = flow(0.0, y + h * k3, infection, recovery)
            y = y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        found.append(PEOPLE * y[1])
    return np.stack(found)


@cache
def curve() -> Moments:
    """Return those of the curve, by an ensemble of 400 walkers on the line.

    They agree between two seeds to 0.01 standard deviations.
    """
    low, high = np.array(list(CURVE.values()), dtype=float).T

    def position(z: FloatArray) -> FloatArray:
        return low + (high - low) / (1.0 + np.exp(-z))

    def density(z: FloatArray) -> FloatArray:
        jacobian = -np.logaddexp(0.0, z) - np.logaddexp(0.0, -z)
        return densities.density_of_curves(position(z)) + jacobian.sum(axis=1)

    truth = (np.array([3.0, 1.5, 1.5, 0.2, 0.1]) - low) / (high - low)
    draws = position(ensemble(density, np.log(truth / (1.0 - truth)), 400, 10_000, seed=1))
    return draws.mean(axis=0), draws.std(axis=0)


def ensemble(density: Batched, near: FloatArray, walkers: int, n: int, seed: int) -> FloatArray:
    """Return draws (k, dim) by stretch moves, every tenth, the first fifth left out.

    Goodman and Weare 2010, doi:10.2140/camcos.2010.5.65.
    """
    rng, dim, half = np.random.default_rng(seed), len(near), walkers // 2
    halves = [near + 0.01 * rng.standard_normal((half, dim)) for _ in range(2)]
    known, kept = [density(each) for each in halves], []
    for i in range(n):
        for one in range(2):
            stretch = (1.0 + rng.random(half)) ** 2 / 2.0
            about = halves[1 - one][rng.integers(half, size=half)]
            moved = about + stretch[:, None] * (halves[one] - about)
            at = density(moved)
            more = (dim - 1) * np.log(stretch) + at - known[one]
            goes = np.log(rng.random(half)) < more
            halves[one] = np.where(goes[:, None], moved, halves[one])
            known[one] = np.where(goes, at, known[one])
        if i >= n // 5 and i % 10 == 0:
            kept += halves
    return np.concatenate(kept)


@cache
def scores() -> Moments:
    """Return those of the regression: normal given sigma, of which one integral is left."""
    columns, score = densities.children()
    inverse = np.linalg.inv(columns.T @ columns)
    best = inverse @ (columns.T @ score)
    rest, free = float(np.sum((score - columns @ best) ** 2)), len(score) - 4
    top = np.sqrt(rest / free)

    def density(sigma: float) -> float:
        near = -free * np.log(sigma / top) - 0.5 * rest * (sigma**-2 - top**-2)
        return float(np.exp(near) / (1.0 + (sigma / 2.5) ** 2))

    zeroth, first, second = (
        quad(lambda s, k=k: s**k * density(s), 0.6 * top, 1.6 * top)[0] for k in range(3)
    )
    spread = np.sqrt(np.diag(inverse) * second / zeroth)
    mean = first / zeroth
    return np.append(best, mean), np.append(spread, np.sqrt(second / zeroth - mean**2))
