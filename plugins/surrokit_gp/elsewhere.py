"""Other modes by few values: where the target is denser than processes of known ones expect."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from surrokit.errors import NumericalError
from surrokit.mode.descent import descend
from surrokit.modes import Modes
from surrokit.surrogate.whitening import cholesky_factor
from surrokit.types import BoolArray, FloatArray
from surrokit_gp.coordinates import flat_from
from surrokit_gp.quadratic import QuadraticProcess

MOST, PART = 8, 12
"""Values far away at most, and values of an exploration for each of them."""

SURE, LEAST = 0.8, 5.0
"""Part of the height that a process expects below which a value is of another mode, or of a heavy
tail; and nats by which it has to be lower."""

BARRIER = 1.0
"""Nats between two ends of searches on a process, from which on they are two modes."""

_PARTS = np.array([0.25, 0.5, 0.75])


def are_lower(
    processes: Sequence[QuadraticProcess], least: float, positions: FloatArray, values: FloatArray
) -> BoolArray:
    """Return where U (n,) at positions (n, dim) is far lower than all processes expect.

    What they expect is without their walls, as a normal density falls, from the ``least`` value.
    """
    expected = np.min([each.process.value(each.whiten(positions)) for each in processes], axis=0)
    with np.errstate(invalid="ignore"):
        low = values - least < SURE * (expected - least)
        return np.asarray(low & (expected - values > LEAST))


def find_modes(process: QuadraticProcess, starts: FloatArray) -> Modes:
    """Return the modes of a process that descents from ``starts (n, dim)`` end at, the best first.

    Ends are one mode unless V between them is above both by :data:`BARRIER`.
    """
    ends = np.array([_end_of(process, start) for start in starts])
    values = process.value(ends)
    kept: list[int] = []
    for i in np.argsort(values, kind="stable"):
        if values[i] > values.min() + flat_from(process.dim):
            break
        ways = [ends[k] + _PARTS[:, None] * (ends[i] - ends[k]) for k in kept]
        if all(process.value(way).max() > values[i] + BARRIER for way in ways):
            kept.append(int(i))
    return Modes(
        positions=ends[kept],
        values=values[kept],
        covariances=np.array([_covariance(process, ends[i]) for i in kept]),
        ended=np.ones(len(kept), dtype=np.int64),
    )


def _end_of(process: QuadraticProcess, start: FloatArray) -> FloatArray:
    try:
        return descend(process, start, max_calls=100).position
    except NumericalError:
        return start


def _covariance(process: QuadraticProcess, mode: FloatArray) -> FloatArray:
    """Return the inverse of the second derivatives of V at a mode, (dim, dim)."""
    step, factor = 0.1, process.whitening.factor
    moves = step * np.concatenate([factor.T, -factor.T])
    ahead, back = np.split(process.gradient(mode + moves) @ factor, 2)
    matrix = (ahead - back) / (2.0 * step)
    sizes, ways = np.linalg.eigh(0.5 * (matrix + matrix.T))
    spread = factor @ (ways / np.sqrt(np.clip(np.abs(sizes), 0.1, None)))
    return np.asarray(spread @ spread.T)


def box_about(position: FloatArray, covariance: FloatArray) -> FloatArray:
    """Return a box (2, dim) as wide as another mode about a position (dim,)."""
    half = 2.0 * np.abs(cholesky_factor(covariance)).sum(axis=1)
    return np.array([position - half, position + half])
