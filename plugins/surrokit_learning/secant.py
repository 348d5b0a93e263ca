"""A search for a mode by outputs alone, for forward maps without derivatives.

Each step is one of Levenberg and Marquardt, by a Jacobian that secants keep up to date
(Broyden 1965, doi:10.1090/S0025-5718-1965-0198670-6). Where these do not lead on, differences
renew it. A mode that lies a hundred standard deviations away takes some five evaluations for each
parameter, where a surrogate of points that far apart shows next to nothing of it.
"""

from __future__ import annotations

from collections.abc import Generator

import attrs
import numpy as np

from surrokit.interfaces import Evaluations
from surrokit.modes import Modes
from surrokit.potentials import Energy
from surrokit.targets.differences import gauss_newton
from surrokit.types import FloatArray
from surrokit_learning.modes_found import inverse_curvature, leads_to, same_mode

NEAR = 0.5
"""Nats left to gain, by the Gauss-Newton matrix, at which the mode is found."""

FAILURES = 3
"""Steps with less than a tenth of the predicted gain after which differences are made."""

FIRST = 0.05
"""First steps of differences, in scales of the search; later ones go by the curvature."""


def search_by_outputs(
    energy: Energy, rows: Evaluations, scales: FloatArray, room: int, searches: int
) -> Generator[FloatArray, Evaluations, Modes]:
    """Go to modes from some rows with outputs: the lowest, and those far from where others ended.

    Yield positions (k, dim), and be sent evaluations there, whose outputs are NaN where one failed.
    ``scales (dim,)`` say how far modes may be. Another search begins while evaluations are left for
    one as long as the last, of ``room`` in all.
    """
    low = rows.take(np.argsort(rows.values, kind="stable")[: -(-len(rows) // 2)])
    low, modes, spent = low.take(np.isfinite(low.values)), None, 0
    for _ in range(searches):
        if not len(low) or room < spent or not (modes is None or modes.converged.all()):
            break
        away = np.zeros(len(low))  # of ends so far
        if modes is not None:
            apart = (low.positions[:, None] - modes.positions) / scales
            away = np.linalg.norm(apart, axis=2).min(axis=1)
        first = np.arange(len(low)) == np.argmax(away)
        end, spent = yield from secant_search(energy, low.take(first), scales, room, modes)
        low = low.take(~first)
        room, k = room - spent, same_mode(modes, end.positions[0], end.values[0])
        if modes is None:
            modes = end
        elif k is not None:
            modes = attrs.evolve(modes, ended=modes.ended + np.eye(len(modes), dtype=int)[k])
        else:
            modes = Modes.join([modes, end])
    assert modes is not None
    modes = modes.take(np.argsort(modes.values, kind="stable"))
    return modes.take(modes.matters)


def secant_search(
    energy: Energy, begin: Evaluations, scales: FloatArray, room: int, known: Modes | None
) -> Generator[FloatArray, Evaluations, tuple[Modes, int]]:
    """Go towards a mode from a row; return where the search ends, and its evaluations.

    It ends early where a Newton step leads to a known mode.
    """
    outputs, values = _read(begin)
    at, value, output, dim = begin.positions[0], values[0], outputs[0], len(scales)
    most = min(20 + 10 * dim, room)
    steps, failures, n = FIRST * scales, FAILURES, 0
    radius: float = 1.0
    while True:
        exact = failures >= FAILURES
        if exact:
            jacobian, failures = (yield from _differences(at, output, steps)), 0
            n += dim
        gradient, matrix = _derivatives(energy, at, output, jacobian)
        if not (np.isfinite(gradient).all() and np.isfinite(matrix).all()):  # they overflowed
            return _ended(at, value, np.diag(1.0 / np.square(scales)), converged=False), n
        left = -0.5 * gradient @ step_within(gradient, matrix, scales, np.inf)
        led = leads_to(known, at, value, gradient)
        if known is not None and led is not None:
            return known.take(np.array([led])), n
        converged = bool(left < NEAR) and exact
        if converged or n >= most:
            return _ended(at, value, matrix, converged=converged), n
        step = step_within(gradient, matrix, scales, radius)
        expected = -(gradient @ step + 0.5 * step @ matrix @ step)
        found, at_step = _read((yield (at + step)[None]))
        n, gain, length = n + 1, value - at_step[0], float(np.linalg.norm(step / scales))
        if np.isfinite(found).all():
            jacobian = _with_secant(jacobian, step, found[0] - output, scales)
        if gain >= 0.7 * expected:
            radius = min(max(radius, 2.0 * length), 3.0)  # a density may have no mode
        elif gain < 0.1 * expected:
            radius, failures = 0.4 * length, failures + 1
        if gain > 0.0:
            at, value, output = at + step, at_step[0], found[0]
        if left < NEAR:
            failures = FAILURES
        curvatures = np.maximum(np.diag(matrix), np.square(1e-6 / scales))
        steps = np.clip(0.3 / np.sqrt(curvatures), 1e-6 * scales, FIRST * scales)


def _derivatives(
    energy: Energy, at: FloatArray, output: FloatArray, jacobian: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the gradient of U (dim,) and its Gauss-Newton matrix (dim, dim)."""
    _, by_output, by_position = energy.value_and_gradients(output[None], at[None])
    matrix = gauss_newton(energy, output[None], jacobian[None], at[None])[0]
    return by_output[0] @ jacobian + by_position[0], matrix


def _with_secant(
    jacobian: FloatArray, step: FloatArray, change: FloatArray, scales: FloatArray
) -> FloatArray:
    """Return a Jacobian (m, dim) that gives the change of outputs (m,) along a step (dim,)."""
    along = step / np.square(scales)
    return jacobian + np.outer(change - jacobian @ step, along / (step @ along))


def _ended(at: FloatArray, value: float, matrix: FloatArray, *, converged: bool) -> Modes:
    covariances = inverse_curvature(matrix)[None]
    return Modes(
        positions=at[None],
        values=np.array([value]),
        covariances=covariances,
        ended=[1],
        converged=np.array([converged]),
    )


def step_within(
    gradient: FloatArray, matrix: FloatArray, scales: FloatArray, radius: float
) -> FloatArray:
    """Return the step (dim,) that a quadratic falls most by, of a length of at most the radius.

    The length is in ``scales (dim,)``. The matrix (dim, dim) has no negative eigenvalues.
    """
    sizes, ways = np.linalg.eigh(matrix * np.outer(scales, scales))
    sizes = np.maximum(sizes, 1e-12 * max(float(sizes[-1]), np.finfo(np.float64).tiny))
    slopes = ways.T @ (gradient * scales)

    def length(more: float) -> float:
        return float(np.linalg.norm(slopes / (sizes + more)))

    more = 0.0
    if length(0.0) > radius:
        low, high = 0.0, float(np.linalg.norm(slopes)) / radius  # where it is short enough
        for _ in range(50):
            more = 0.5 * (low + high)
            low, high = (more, high) if length(more) > radius else (low, more)
        more = high
    return np.asarray(-scales * (ways @ (slopes / (sizes + more))))


def _differences(
    at: FloatArray, output: FloatArray, steps: FloatArray
) -> Generator[FloatArray, Evaluations, FloatArray]:
    """Return a Jacobian (m, dim) by differences, to the other side where one fails; or else 0."""
    steps = steps.copy()
    found, _ = _read((yield at + np.diag(steps)))
    failed = np.flatnonzero(~np.isfinite(found).all(axis=1))
    if len(failed):
        steps[failed] *= -1.0
        found[failed], _ = _read((yield at + np.diag(steps)[failed]))
    slopes = (found - output) / steps[:, None]
    return np.where(np.isfinite(slopes), slopes, 0.0).T


def _read(rows: Evaluations) -> tuple[FloatArray, FloatArray]:
    """Return outputs (n, m), NaN where one failed, and U (n,), infinite there."""
    outputs = np.array(rows.outputs, dtype=np.float64)
    lost = ~(np.isfinite(outputs).all(axis=1) & np.isfinite(rows.values))
    outputs[lost] = np.nan
    return outputs, np.where(lost, np.inf, rows.values)
