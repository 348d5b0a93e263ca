"""Points chosen away from where the target fails, by a classifier.

A surrogate learns nothing of where the target fails, and goes on to propose points there. So where
failures are frequent, a classifier learns from failed and from good points which of the next ones
would fail, and these are left out. It only chooses points; what is accepted, the target decides.
"""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.types import BoolArray, FloatArray
from surrokit_learning.rounds.queue import Queue
from surrokit_learning.rounds.state import RoundsState

FREQUENT, FEWEST = 0.1, 20
"""Part of the points, and number of them, that must have failed for a classifier to be learnt."""

MOST = 1000
"""Latest points of each kind that it learns from."""

# where exactly a position is does not matter beyond, and it might overflow
_FARTHEST = 1e3  # standard deviations
_CLOSE_FIT = 10.0  # cost of a point on the wrong side, as failures do not depend on chance


def steer(state: RoundsState) -> Queue:
    """Return the queue without points at which the target is likely to fail, unless all are.

    Parameters
    ----------
    state
        Of the exploration, with the points at which the target was and was not finite.
    """
    fine = promising(state, state.queue.positions)
    return state.queue if fine.all() else state.queue.take(fine)


def promising(state: RoundsState, positions: FloatArray) -> BoolArray:
    """Return at which positions (k, dim) the target is not likely to fail; all if it is at each.

    Parameters
    ----------
    state
        Of the exploration, with the points at which the target was and was not finite.
    positions : ndarray of shape (k, dim)
        Where it may be evaluated.
    """
    failed, good = state.failed, state.seen.positions
    every = np.ones(len(positions), dtype=bool)
    if failed is None or not len(positions) or not len(good):
        return every
    if len(failed) < max(FEWEST, FREQUENT * (len(failed) + len(good))):
        return every
    fine = ~predict_failures(good[-MOST:], failed[-MOST:], positions)
    return fine if fine.any() else every


def predict_failures(good: FloatArray, failed: FloatArray, positions: FloatArray) -> BoolArray:
    """Return at which positions (k, dim) a target is likely to fail.

    Parameters
    ----------
    good, failed : ndarrays of shape (n, dim) and (m, dim)
        Where it did not, and where it did.
    positions : ndarray of shape (k, dim)
        Where it may.
    """
    from sklearn.svm import SVC

    with np.errstate(over="ignore", invalid="ignore"):  # searches may have gone very far
        centre, width = good.mean(axis=0), good.std(axis=0)
    width = np.where((width > 0.0) & np.isfinite(width), width, 1.0)

    def standardize(rows: FloatArray) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):
            apart = np.nan_to_num((rows - centre) / width, nan=_FARTHEST)
        return np.asarray(np.clip(apart, -_FARTHEST, _FARTHEST))

    labels = np.arange(len(good) + len(failed)) >= len(good)
    classifier = SVC(C=_CLOSE_FIT).fit(standardize(np.vstack([good, failed])), labels)
    return np.asarray(classifier.predict(standardize(positions)), dtype=bool)


def with_failures(state: RoundsState, positions: FloatArray) -> RoundsState:
    """Return the state that knows of more positions (n, dim) at which the target failed."""
    if not len(positions):
        return state
    known = [] if state.failed is None else [state.failed]
    return attrs.evolve(state, failed=np.vstack([*known, positions]))
