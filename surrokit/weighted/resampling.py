"""Draws of equal weight in place of weighted ones."""

from __future__ import annotations

import numpy as np

from surrokit.types import FloatArray, IntArray

RESAMPLING_SEED = 0
"""By which weighted draws are drawn anew unless another is given: exports are the same each time.
"""


def shares(log_weights: FloatArray) -> FloatArray:
    """Return weights of sum one, shape (n,), of logarithms of any shape with n numbers."""
    logs = log_weights.ravel()
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def effective(log_weights: FloatArray) -> float:
    """Return the number of equally weighted draws that weights are worth (Kish 1965)."""
    return float(1.0 / np.square(shares(log_weights)).sum())


def resampled_rows(log_weights: FloatArray, rng: np.random.Generator) -> IntArray:
    """Return as many places of draws as there are, in random order, each as often as its weight.

    Systematic resampling: a draw of weight w, in units of the mean weight, comes floor(w) or
    ceil(w) times, which adds less noise than independent choices do (Douc, Cappe and Moulines 2005,
    doi:10.1109/ISPA.2005.195385).

    Parameters
    ----------
    log_weights : ndarray of shape (chains, draws)
        Of the draws.
    rng
        Draws places.
    """
    n = log_weights.size
    edges = np.cumsum(shares(log_weights))
    rows = np.searchsorted(edges, (rng.random() + np.arange(n)) / n, side="right")
    return np.asarray(rng.permutation(np.minimum(rows, n - 1)))
