"""Means of two sets of draws, compared."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr

import surrokit as sk


def least_p_value(
    pairs: Sequence[tuple[np.ndarray, np.ndarray]], varies: np.ndarray
) -> tuple[float, int]:
    """Return the least two-sided p-value of equal means and mean squares, and their number.

    Parameters
    ----------
    pairs
        Draws of one quantity by either, shape (chains, draws, ...).
    varies
        Which of all numbers are not constant: the others must be the same.
    """
    ours, theirs = (
        np.concatenate([array.reshape(*array.shape[:2], -1) for array in arrays], axis=2)
        for arrays in zip(*pairs, strict=True)
    )
    np.testing.assert_allclose(
        ours[..., ~varies].mean(axis=(0, 1)), theirs[..., ~varies].mean(axis=(0, 1)), atol=1e-12
    )
    p_values = [
        _p_values(ours[..., varies] ** power, theirs[..., varies] ** power) for power in (1, 2)
    ]
    return float(np.min(p_values)), int(np.size(p_values))


def _p_values(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    errors = [
        array.std(axis=(0, 1)) / np.sqrt(sk.effective_sample_size(array, "bulk"))
        for array in (ours, theirs)
    ]
    apart = np.abs(ours.mean(axis=(0, 1)) - theirs.mean(axis=(0, 1)))
    return np.asarray(2.0 * ndtr(-apart / np.hypot(*errors)))
