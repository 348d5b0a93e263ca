"""The Metropolis rule, in the one place that corrections and sub-chains share."""

from __future__ import annotations

import numpy as np

from surrokit.types import BoolArray, FloatArray


def metropolis(log_ratio: FloatArray, rng: np.random.Generator) -> tuple[BoolArray, FloatArray]:
    """Accept each chain with probability min(1, exp(log_ratio)).

    Parameters
    ----------
    log_ratio : ndarray of shape (n,)
        Log of the ratio of proposed to current density, with all corrections; NaN never accepts.
    rng
        One uniform number is drawn for every chain, whatever the ratios.

    Returns
    -------
    accepted : ndarray of bool, shape (n,)
    acceptance : ndarray of shape (n,)
        The probabilities used.
    """
    acceptance = np.exp(np.minimum(np.where(np.isnan(log_ratio), -np.inf, log_ratio), 0.0))
    return rng.random(len(log_ratio)) < acceptance, acceptance
