"""The softabs function x coth(x), its slope, and its divided differences.

Betancourt (2013), arXiv:1212.4693. All to nearly full precision, near zero and for arguments that
nearly coincide too.
"""

from __future__ import annotations

import numpy as np

from surrokit.types import FloatArray

CERTAIN = 19.1
"""Beyond this, x coth(x) is x to the last digit of double precision."""

_SERIES = (2 / 3, -4 / 45, 4 / 315, -8 / 4725, 4 / 18711, -5528 / 212837625, 8 / 2606175)
"""Slope of x coth(x) around 0, by odd powers; below 0.2 the next term is 1e-17."""

_SMALL = 0.2
_CLOSE = 0.5
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(6)


def softabs(x: FloatArray) -> FloatArray:
    """Return x coth(x), which is 1 at 0 and close to abs(x) far from it."""
    with np.errstate(invalid="ignore"):
        return np.where(x == 0.0, 1.0, x / np.tanh(x))


def softabs_slope(x: FloatArray) -> FloatArray:
    """Return the derivative of x coth(x)."""
    square = np.square(x)
    series = np.zeros_like(x)
    for coefficient in reversed(_SERIES):
        series = series * square + coefficient
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        slope = 1.0 / np.tanh(x) - x / np.square(np.sinh(x))
    slope = np.where(np.abs(x) > CERTAIN, np.sign(x), slope)
    return np.where(np.abs(x) < _SMALL, x * series, slope)


def divided_differences(x: FloatArray) -> FloatArray:
    """Return (f(x_i) - f(x_j)) / (x_i - x_j) for f(x) = x coth(x), and f'(x_i) where i = j.

    Parameters
    ----------
    x : ndarray of shape (n, dim)
        Arguments.

    Returns
    -------
    ndarray of shape (n, dim, dim)
        Symmetric. For arguments close to each other it is the mean of the slope between them, by
        Gauss's quadrature with six points, which is exact to rounding for this function.
    """
    gap = x[:, :, None] - x[:, None, :]
    value = softabs(x)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (value[:, :, None] - value[:, None, :]) / gap
    close = np.abs(gap) < _CLOSE
    both = np.arange(x.shape[1])
    close[:, both, both] = False
    found[:, both, both] = softabs_slope(x)
    rows, i, j = np.nonzero(close)
    if rows.size:
        first, second = x[rows, i], x[rows, j]
        between = 0.5 * (first + second)[:, None] + 0.5 * (first - second)[:, None] * _NODES
        found[rows, i, j] = softabs_slope(between) @ (0.5 * _WEIGHTS)
    return found
