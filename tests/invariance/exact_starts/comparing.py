"""What is compared: where chains ended with what is known, and who came with who went."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import bdtr, chdtri, ndtri

from surrokit.testing.statistics import Comparison, Verdict, normality
from surrokit.types import FloatArray

SHARES = (0.01, 0.1, 0.5, 0.9, 0.99)
"""Probabilities of the regions that chains enter and leave."""

LARGEST = 38.0
"""The z-score of the least probability that is a number."""


def compared(start: FloatArray, end: FloatArray, label: str) -> Verdict:
    """Compare exact draws, some transitions later, with what they must be still.

    Parameters
    ----------
    start, end : ndarray of shape (n, 2)
        Before and after, as standard normals of the target.
    label
        Goes into the names of the comparisons.
    """
    with np.errstate(all="ignore"):
        return Verdict.join([normality(end, label), crossings(start, end, label)])


def crossings(start: FloatArray, end: FloatArray, label: str) -> Verdict:
    """Test whether as many chains entered each of some regions as left it.

    Of the chains that crossed an edge each is as likely to have come as to have gone, whatever
    the kernel, if it leaves the target as it is. So the number of those that came is binomial,
    and a small bias shows even where few chains have moved far.
    """
    found = []
    for (name, inside), (_, still) in zip(_regions(start), _regions(end), strict=True):
        came, went = int((still & ~inside).sum()), int((inside & ~still).sum())
        p_value = min(1.0, 2.0 * float(bdtr(min(came, went), came + went, 0.5)))
        found.append(Comparison(f"{label}{name}, came less went", came - went, p_value))
    return Verdict(tuple(found))


def _regions(normals: FloatArray) -> Iterator[tuple[str, np.ndarray]]:
    squared = np.square(normals).sum(axis=1)
    for share in SHARES:
        for k in range(normals.shape[1]):
            yield f"coordinate {k + 1} in the lowest {share:g}", normals[:, k] < ndtri(share)
        yield f"radius in the least {share:g}", squared < chdtri(normals.shape[1], 1.0 - share)


def z_score(comparison: Comparison) -> float:
    """Return the size of a standard normal that is as improbable as what was seen."""
    with np.errstate(divide="ignore"):
        return min(float(-ndtri(0.5 * comparison.p_value)), LARGEST)
