"""Derivatives by central differences, row by row and in whole batches."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from surrokit.types import FloatArray

Function = Callable[[FloatArray], FloatArray]
"""A function of rows (n, dim) that returns an array whose first axis runs over the rows."""


def difference(
    function: Function, positions: FloatArray, step: float = 1e-4
) -> tuple[FloatArray, FloatArray]:
    """Return the derivative of a function of rows, and an estimate of its error.

    Parameters
    ----------
    function
        Returns shape (n, ...).
    positions : ndarray of shape (n, dim)
        Where to differentiate.
    step
        Half the distance between the two points of a difference, relative to 1 + abs(q).

    Returns
    -------
    derivative : ndarray of shape (n, ..., dim)
        Richardson's combination of differences at ``step`` and twice that.
    error : ndarray of the same shape
        How far the two differences are apart, plus how far the combination is from that at twice
        the steps, plus the error of rounding. The second term shows noise, such as that of a solver
        with adaptive steps.
    """
    columns, errors = [], []
    for k in range(positions.shape[1]):
        narrow, size = _central(function, positions, k, step)
        wide, _ = _central(function, positions, k, 2.0 * step)
        wider, _ = _central(function, positions, k, 4.0 * step)
        fine, coarse = (4.0 * narrow - wide) / 3.0, (4.0 * wide - wider) / 3.0
        columns.append(fine)
        errors.append(
            np.abs(narrow - wide) + np.abs(fine - coarse) + 8.0 * np.finfo(float).eps * size / step
        )
    return np.stack(columns, axis=-1), np.stack(errors, axis=-1)


def _central(
    function: Function, positions: FloatArray, k: int, step: float
) -> tuple[FloatArray, FloatArray]:
    h = step * (1.0 + np.abs(positions[:, k]))
    upper, lower = positions.copy(), positions.copy()
    upper[:, k] += h
    lower[:, k] -= h
    above, below = function(upper), function(lower)
    width = (upper[:, k] - lower[:, k]).reshape((-1,) + (1,) * (above.ndim - 1))
    return (above - below) / width, np.maximum(np.abs(above), np.abs(below))
