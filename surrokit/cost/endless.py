"""Directions in which a density does not fall, so that no distribution has it."""

from __future__ import annotations

import numpy as np

from surrokit.cost.budget import BudgetSpent
from surrokit.cost.recording import RecordingPotential
from surrokit.diagnostics import r_hat
from surrokit.mode.bottom import MANY
from surrokit.mode.directions import name_of, simplified
from surrokit.targets.bounds import labels_on_line, transform_of
from surrokit.types import FloatArray

FEWEST = 100
"""Iterations of each chain that tell at least."""

APART = 1.1
"""R-hat above which chains may be on their way for ever."""

FAR = (1e3, 1e6)
"""Times the range of the draws that is looked away from them, or as far as there are logarithms."""

HIGH = 50.0
"""Nats above a draw from which on it does not matter what a density does far away."""

_MOST = 3  # numbers that are looked along at most
_LOGARITHMS = (100.0, 600.0)
_LEVEL = 0.01  # nats, as rounding


def endless_along(target: RecordingPotential, positions: FloatArray) -> tuple[str, ...]:
    """Return the directions in which a density does not fall, or no faster than 1 / distance.

    They are single numbers, or the one in which the draws spread most. Only where chains disagree
    is anything evaluated: five values for a direction. They are counted.

    Parameters
    ----------
    target
        The exact potential.
    positions : ndarray of shape (chains, n, dim)
        Of the chains, on the line.
    """
    if positions.shape[1] < FEWEST or len(positions) < 2:
        return ()
    apart = np.nan_to_num(r_hat(positions), nan=np.inf)
    worst = np.argsort(-apart, kind="stable")[:_MOST]
    labels, axes = labels_on_line(target.target), np.eye(positions.shape[2])
    worst = worst[apart[worst] > APART]
    try:
        found = [labels[i] for i in worst if _goes_on(target, positions, axes[i])]
        if not found and len(worst) > 1 and len(axes) <= MANY:
            direction = simplified(target.target, _widest(positions))
            if direction is not None and _goes_on(target, positions, direction):
                found = [name_of(target.target, direction)]
    except BudgetSpent:
        return ()
    return tuple(found)


def _widest(positions: FloatArray) -> FloatArray:
    """Return the direction (dim,) in which draws (chains, n, dim) spread most."""
    places = positions.reshape(-1, positions.shape[2])
    return np.asarray(np.linalg.svd(places - places.mean(axis=0), full_matrices=False)[2][0])


def _goes_on(target: RecordingPotential, positions: FloatArray, along: FloatArray) -> bool:
    """Return whether the density in a direction falls too slowly towards one of its ends."""
    places = positions.reshape(-1, positions.shape[2])
    column = places @ along
    middle = places[int(np.argsort(column)[len(column) // 2])]
    away = np.array(FAR) * max(float(np.ptp(column)), 1.0)
    to_bounded = transform_of(target.target).to_bounded
    with np.errstate(all="ignore"):
        if not np.isfinite(to_bounded(middle + np.outer([-away[1], away[1]], along))).all():
            away = np.array(_LOGARITHMS)
        ends = middle + np.outer([away, -away], along)
        with target.exact.off_the_record():
            here, *there = target.fork(keep=False).value(np.vstack([middle, ends]))
    if not np.isfinite(here):  # it failed at a draw
        return False
    near, far = np.reshape(there, (2, 2)).T
    high = near <= here + HIGH
    rises = far[high] - near[high]
    return bool((rises <= np.log(away[1] / away[0]) + _LEVEL).any())
