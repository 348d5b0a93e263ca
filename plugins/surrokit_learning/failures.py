"""Points chosen away from where the target fails, by a classifier.

A surrogate learns nothing of where the target fails, and goes on to propose points there. So where
failures are frequent, a classifier learns from failed and from good points which of the next ones
would fail, and these are left out. It only chooses points; what is accepted, the target decides.
"""

from __future__ import annotations

import numpy as np

from surrokit.types import BoolArray, FloatArray

FREQUENT, FEWEST = 0.1, 20
"""Part of the points, and number of them, that must have failed for a classifier to be learnt."""

MOST = 1000
"""Latest points of each kind that it learns from."""

# where exactly a position is does not matter beyond, and it might overflow
_FARTHEST = 1e3  # standard deviations
_CLOSE_FIT = 10.0  # cost of a point on the wrong side, as failures do not depend on chance


def promising(good: FloatArray, failed: FloatArray, positions: FloatArray) -> BoolArray:
    """Return at which positions (k, dim) the target is not likely to fail; all if it is at each.

    Parameters
    ----------
    good, failed : ndarrays of shape (n, dim) and (m, dim)
        Where it did not, and where it did.
    positions : ndarray of shape (k, dim)
        Where it may be evaluated.
    """
    every = np.ones(len(positions), dtype=bool)
    if not len(positions) or not len(good):
        return every
    if len(failed) < max(FEWEST, FREQUENT * (len(failed) + len(good))):
        return every
    fine = ~predict_failures(good[-MOST:], failed[-MOST:], positions)
    return fine if fine.any() else every


def predict_failures(good: FloatArray, failed: FloatArray, positions: FloatArray) -> BoolArray:
    """Return at which positions (k, dim) a target is likely to fail; see :func:`promising`."""
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
