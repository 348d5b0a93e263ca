"""The choice of points that tell a process most."""

from __future__ import annotations

import numpy as np

from surrokit.types import FloatArray, IntArray
from surrokit_gp.quadratic.process import QuadraticProcess

_NOISE = 1e-4  # nats squared; a point next to a chosen one tells nothing more


def choose(
    process: QuadraticProcess, z: FloatArray, heights: FloatArray, n: int, tilt: float
) -> IntArray:
    """Return which of ``z (m, dim)`` a process is least sure of, one after the other, shape (n,).

    The variance of U given the values so far, and those of points chosen before, times
    exp(-2 tilt V): each step is one of a pivoted Cholesky factorisation.

    Parameters
    ----------
    process
        The process.
    z
        Draws from it.
    heights : ndarray of shape (m,)
        Its mean V there.
    n
        How many.
    tilt
        0 for the least sure, wherever it lies; more for points of higher density.
    """
    covariance = process.covariance(z)
    counts = np.exp(-2.0 * tilt * (heights - heights.min()))
    left = np.diag(covariance).copy()
    rows = np.empty((0, len(z)))
    chosen: list[int] = []
    for _ in range(min(n, len(z))):
        j = int(np.argmax(counts * left))
        row = (covariance[j] - rows[:, j] @ rows) / np.sqrt(max(left[j], 0.0) + _NOISE)
        rows = np.vstack([rows, row])
        left = np.maximum(left - np.square(row), 0.0)
        left[j] = 0.0
        chosen.append(j)
    return np.array(chosen, dtype=np.int64)
