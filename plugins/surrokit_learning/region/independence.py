"""Importance of independent draws from a surrogate, by the exact potential."""

from __future__ import annotations

import numpy as np

from surrokit.types import FloatArray, IntArray


def predicted_acceptance(differences: FloatArray) -> float:
    """Return the mean probability of accepting an independent draw of the surrogate.

    With w = exp(V - U), a chain at a draw of the target accepts a draw of the surrogate with
    probability min(1, w' / w) on average over E[min(w, w')] / E[w], both drawn from the surrogate
    (Liu 1996, doi:10.1007/BF00162521).

    Parameters
    ----------
    differences : ndarray of shape (n,)
        V - U at independent draws of the surrogate, in nats; -inf where the target cannot be
        evaluated. An additive constant makes no difference.

    Returns
    -------
    float
        NaN with fewer than two draws; 0 where the target is finite at none.
    """
    n = len(differences)
    if n < 2:
        return float("nan")
    weights = importance_weights(differences)
    if weights is None:
        return 0.0
    # sorted, the lesser of a pair is the earlier one
    ascending = np.sort(weights)
    lesser = float(ascending @ np.arange(n - 1, -1, -1)) / (0.5 * n * (n - 1))
    return lesser / float(weights.mean())


def importance_weights(differences: FloatArray) -> FloatArray | None:
    """Return exp(V - U), the largest being 1, at differences (n,); None if all are 0."""
    largest = np.max(differences, initial=-np.inf)
    if not np.isfinite(largest):
        return None
    return np.asarray(np.exp(differences - largest))


def resample(differences: FloatArray, n: int, rng: np.random.Generator) -> IntArray:
    """Return n distinct rows, or as many as there are, drawn by importance weight exp(V - U).

    Parameters
    ----------
    differences : ndarray of shape (m,)
        V - U; rows with -inf are never drawn.
    n
        How many.
    rng
        Generator.
    """
    noise = rng.gumbel(size=len(differences))  # the largest sums are a draw without replacement
    keys = np.where(np.isfinite(differences), differences + noise, -np.inf)
    order = np.argsort(-keys, kind="stable")
    return np.asarray(order[: min(n, int(np.isfinite(keys).sum()))])


def quotas(shares: FloatArray, n: int) -> IntArray:
    """Return how many of n to take of each kind: in proportion to its share, and one at least.

    Parameters
    ----------
    shares : ndarray of shape (k,)
        They sum to 1.
    n
        How many in all, at least k.
    """
    counts = np.ones(len(shares), dtype=np.int64)
    for _ in range(n - len(shares)):  # whoever has least of what is due comes next
        counts[np.argmin((counts + 0.5) / np.maximum(shares, 1e-12))] += 1
    return counts


def spread(differences: FloatArray) -> float:
    """Return the standard deviation of V - U, in nats, as far as half of the draws tell it.

    By the quartiles, so that a few draws far out do not hide that the others come nearer.
    """
    finite = differences[np.isfinite(differences)]
    if len(finite) < 2:
        return float("inf")
    low, high = np.quantile(finite, (0.25, 0.75))
    return float(high - low) / 1.349


def temperature_of(values: FloatArray, n: float) -> float:
    """Return the lowest temperature, at least 1, at which points still count as so many.

    With weights w = exp(-U / T), points count as (sum w)^2 / sum w^2 (Kong 1992).

    Parameters
    ----------
    values : ndarray of shape (m,)
        U at the points, finite.
    n
        As how many they should count.
    """
    excess = values - values.min()

    def count(temperature: float) -> float:
        weights = np.exp(-excess / temperature)
        return float(np.square(weights.sum()) / np.square(weights).sum())

    low, high = 1.0, max(float(excess.max()), 1.0)
    if count(low) >= n or count(high) < n:
        return low if count(low) >= n else high
    while high > 1.01 * low:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if count(middle) >= n else (middle, high)
    return high
