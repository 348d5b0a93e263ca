"""The windows of a warm-up, and the covariance collected in each."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.kernel.tuner_state import TunerState
from surrokit.marginals.fit import fit_heavy, fit_marginals
from surrokit.marginals.warp import Warp
from surrokit.types import BoolArray, FloatArray

LAST = 50
"""Iterations after the last window, for the step size alone."""

_FAINT = 1e-14  # of the largest eigenvalue, the least that is more than rounding
_AGREED = 2.0  # factor by which variances of two windows may differ


def windows(n_iterations: int, *, arrived: bool = False) -> tuple[int, tuple[int, ...]]:
    """Return the iteration after which the first window begins, and the ends of all windows.

    The lengths are Stan's: 75 iterations at the start, windows that double from 25 on, and 50
    iterations at the end for the step size alone. A warm-up of fewer than 150 iterations has one
    window, in proportion; one of fewer than 40 has none. Chains that have ``arrived`` where the
    mass is need no start, and what they begin with may be no more than a guess: their first window
    begins after 5 iterations and takes 10.
    """
    if n_iterations < 40:
        return 0, ()
    first, length = (5, 10) if arrived else (75, 25)
    last = LAST
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


def collect(
    state: TunerState, positions: FloatArray, gradients: FloatArray | None = None
) -> TunerState:
    """Return the state after positions, shape (n, dim), were added to the window.

    Gradients there, of the same shape, are of use only if they are known throughout a window.
    """
    count = state.count + 1
    mean, scatter = _add(state.mean, state.scatter, positions, count)
    slope, tension = None, None
    if gradients is not None and state.slope is not None and state.tension is not None:
        with np.errstate(all="ignore"):  # what overflows is not used
            slope, tension = _add(state.slope, state.tension, gradients, count)
    return attrs.evolve(
        state, count=count, mean=mean, scatter=scatter, slope=slope, tension=tension
    )


def _add(
    mean: FloatArray, scatter: FloatArray, rows: FloatArray, count: int
) -> tuple[FloatArray, FloatArray]:
    """Return mean and scatter of each chain with one more row (n, dim)."""
    deviation = rows - mean
    mean = mean + deviation / count
    return mean, scatter + deviation[:, :, None] * (rows - mean)[:, None, :]


def pool(state: TunerState, moving: BoolArray) -> FloatArray | None:
    """Return the covariance within the chains that move, shrunk to its diagonal; None if flat.

    Flat are those, too, that rounding makes singular, as where chains run off along a line.

    Where gradients are known it is their compromise with the positions, see :func:`_balance`. The
    diagonal is that in the coordinates in which what was known so far is the identity. In the
    target's own coordinates it may be much wider than the target: where columns of a design are
    nearly collinear, by a factor of a thousand in the directions that are determined best.
    """
    n = int(moving.sum()) * (state.count - 1)
    if n < 1:
        return None
    covariance = _within(state.scatter, moving, n)
    if not _is_usable(covariance):
        return None
    if state.tension is not None:
        covariance = _balance(covariance, _within(state.tension, moving, n), n)
    dim = len(covariance)
    weight = n / (n + 5.0 + dim)
    diagonal = _diagonal(covariance, state.covariance)
    shrunk = np.asarray(weight * covariance + (1.0 - weight) * diagonal, dtype=np.float64)
    return shrunk if _is_definite(shrunk) else None


def learn_warp(state: TunerState, moving: BoolArray, *, heavy: bool = False) -> Warp | None:
    """Return the warp for what a window kept of the chains that move; None if they are flat.

    Its covariance is that of all the window's positions in the new coordinates, by :func:`pool`.
    One for ``heavy`` tails alone is None, too, where there are none.
    """
    positions = np.concatenate([rows[moving] for rows, _ in state.kept])
    fitted = fit_heavy(positions) if heavy else fit_marginals(positions)
    if fitted is None:
        return None
    centre, scale, lean, tail = fitted
    dim = positions.shape[1]
    warp = Warp(centre=centre, scale=scale, lean=lean, tail=tail, covariance=np.eye(dim))
    straight = attrs.evolve(state.empty_window(), covariance=_about_centre(warp, state.covariance))
    for rows, gradients in state.kept:
        z = warp.straighten(rows)
        pulled = None if gradients is None else warp.pull(gradients, z)
        straight = collect(straight, z, pulled)
    covariance = pool(straight, moving)
    return None if covariance is None else attrs.evolve(warp, covariance=covariance)


def _about_centre(warp: Warp, known: FloatArray | None) -> FloatArray | None:
    """Return a covariance (dim, dim) of x as one of z, by the slopes of a warp at its centre."""
    if known is None:
        return None
    slope = warp.slopes(np.zeros((1, len(known))))[0][0]
    return np.asarray(known / slope / slope[:, None])


def agree(one: FloatArray, other: FloatArray) -> bool:
    """Return whether two covariances (dim, dim) agree within a factor of 2 in every direction."""
    try:
        factor = np.linalg.cholesky(one)
    except np.linalg.LinAlgError:
        return False
    between = np.linalg.solve(factor, np.linalg.solve(factor, other).T)
    eigenvalues = np.linalg.eigvalsh(0.5 * (between + between.T))
    return bool(eigenvalues[0] > 1.0 / _AGREED and eigenvalues[-1] < _AGREED)


def _within(scatter: FloatArray, moving: BoolArray, n: int) -> FloatArray:
    """Return the mean scatter (dim, dim) of some chains about their own means."""
    mean = scatter[moving].sum(axis=0) / n
    return np.asarray(0.5 * (mean + mean.T))


def _is_usable(covariance: FloatArray) -> bool:
    return bool(np.isfinite(covariance).all() and (np.diag(covariance) > 0).all())


def _is_definite(covariance: FloatArray) -> bool:
    try:
        np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        return False
    return True


def _balance(covariance: FloatArray, tension: FloatArray, n: int) -> FloatArray:
    """Return X with X cov(g) X = cov(q), or cov(q) where that of the gradients is of no use.

    It minimises the Fisher divergence (Seyboldt, Carlson and Carpenter 2026, arXiv:2603.18845). On
    a normal target it is exact from more positions than dimensions on.
    """
    dim = len(covariance)
    if n <= 2 * dim or not _is_usable(tension):
        return covariance
    scales = (np.diag(covariance) / np.diag(tension)) ** 0.25
    try:
        root = np.linalg.cholesky(covariance / scales / scales[:, None])
        inside = root.T @ (tension * scales * scales[:, None]) @ root
        eigenvalues, vectors = np.linalg.eigh(0.5 * (inside + inside.T))
    except np.linalg.LinAlgError:
        return covariance
    if not eigenvalues[0] > _FAINT * eigenvalues[-1]:
        return covariance
    factor = scales[:, None] * (root @ (vectors * eigenvalues**-0.25))
    return np.asarray(factor @ factor.T)


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
