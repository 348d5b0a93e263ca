"""The windows of a warm-up, and the covariance that is collected in them."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.kernel.tuner_state import TunerState
from surrokit.types import BoolArray, FloatArray


def windows(n_iterations: int) -> tuple[int, tuple[int, ...]]:
    """Return where covariance is first collected, and the ends of the windows.

    Stan's lengths: a start of 75 iterations, windows from 25 on that double, 50 at the end for
    the step size alone; in proportion where the warm-up is shorter than 150. Below 40 iterations
    there is no window.
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
        if end + length > n_iterations - last:  # the next would not fit, so this one is stretched
            end = n_iterations - last
        ends.append(end)
    return first, tuple(ends)


def collect(state: TunerState, positions: FloatArray) -> TunerState:
    """Return the state after positions, shape (n, dim), were added to the window."""
    count = state.count + 1
    deviation = positions - state.mean
    mean = state.mean + deviation / count
    scatter = state.scatter + deviation[:, :, None] * (positions - mean)[:, None, :]
    return attrs.evolve(state, count=count, mean=mean, scatter=scatter)


def pool(state: TunerState, moving: BoolArray) -> FloatArray | None:
    """Return the covariance within the chains that move, shrunk to its diagonal; None if flat.

    The diagonal is that in the coordinates in which what was known so far is the identity. In the
    target's own coordinates it may be much wider than the target: where columns of a design are
    nearly collinear, by a factor of a thousand in the directions that are determined best.
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
    """Return the diagonal part of a covariance in coordinates in which another is the identity."""
    from scipy.linalg import solve_triangular

    own = np.diag(np.diag(covariance))
    if known is None:
        return own
    try:
        factor = np.linalg.cholesky(known)
    except np.linalg.LinAlgError:  # singular to rounding: no coordinates to go by
        return own
    half = solve_triangular(factor, covariance, lower=True)
    variance = np.diag(solve_triangular(factor, half.T, lower=True))
    return np.asarray((factor * variance) @ factor.T)
