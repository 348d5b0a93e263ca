"""The windows of a warm-up, and the covariance collected in each."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.kernel.tuner_state import TunerState
from surrokit.types import BoolArray, FloatArray


def windows(n_iterations: int) -> tuple[int, tuple[int, ...]]:
    """Return the iteration after which the first window begins, and the ends of all windows.

    The lengths are Stan's: 75 iterations at the start, windows that double from 25 on, and 50
    iterations at the end for the step size alone. A warm-up of fewer than 150 iterations has one
    window, in proportion; one of fewer than 40 has none.
    """
    if n_iterations < 40:
        return 0, ()
    first, last, length = 75, 50, 25
    if n_iterations < first + last + length:
        first, last = int(0.15 * n_iterations), int(0.25 * n_iterations)
        return first, (n_iterations - last,)
    ends, end = [], first
    while end < n_iterations - last:
        end += length
        length *= 2
        if end + length > n_iterations - last:  # the next one does not fit: stretch this one
            end = n_iterations - last
        ends.append(end)
    return first, tuple(ends)


def collect(state: TunerState, positions: FloatArray) -> TunerState:
    """Add positions, shape (n, dim), to the window, and return the new state."""
    count = state.count + 1
    deviation = positions - state.mean
    mean = state.mean + deviation / count
    scatter = state.scatter + deviation[:, :, None] * (positions - mean)[:, None, :]
    return attrs.evolve(state, count=count, mean=mean, scatter=scatter)


def pool(state: TunerState, moving: BoolArray) -> FloatArray | None:
    """Return the covariance within moving chains, shrunk towards its diagonal; None if flat.

    The diagonal is taken in coordinates in which the last known covariance is the identity. In the
    target's own coordinates a diagonal can be much wider than the target: by a factor of a thousand
    in the best-determined directions, if columns of a design are nearly collinear.
    """
    n = int(moving.sum()) * (state.count - 1)
    if n < 1:
        return None
    covariance = state.scatter[moving].sum(axis=0) / n
    variance = np.diag(covariance)
    if not (np.isfinite(covariance).all() and (variance > 0).all()):
        return None
    dim = len(variance)
    weight = n / (n + 5.0 + dim)
    covariance = 0.5 * (covariance + covariance.T)
    diagonal = _diagonal(covariance, state.covariance)
    return np.asarray(weight * covariance + (1.0 - weight) * diagonal, dtype=np.float64)


def _diagonal(covariance: FloatArray, known: FloatArray | None) -> FloatArray:
    """Return the diagonal part of a covariance, in coordinates where another is the identity."""
    from scipy.linalg import solve_triangular

    own = np.diag(np.diag(covariance))
    if known is None:
        return own
    try:
        factor = np.linalg.cholesky(known)
    except np.linalg.LinAlgError:  # singular to rounding, so there are no such coordinates
        return own
    half = solve_triangular(factor, covariance, lower=True)
    variance = np.diag(solve_triangular(factor, half.T, lower=True))
    return np.asarray((factor * variance) @ factor.T)
