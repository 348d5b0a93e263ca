"""Means of all draws up to given times, and how far they are from the truth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from surrokit.types import FloatArray


def means_at(
    draws: npt.ArrayLike, seconds: npt.ArrayLike, times: npt.ArrayLike
) -> list[list[float] | None]:
    """Return the mean of the draws that were there at each time.

    Parameters
    ----------
    draws : array_like of shape (draws, dim)
        Of one chain.
    seconds : array_like of shape (draws,)
        When each was there, rising.
    times : array_like of shape (times,)
        In the same units.

    Returns
    -------
    list
        For each time a mean, or None before the first draw and after the last one: nothing is
        known of what a run would have drawn later.
    """
    positions = np.asarray(draws, dtype=np.float64)
    when = np.asarray(seconds, dtype=np.float64)
    counts = np.searchsorted(when, np.asarray(times, dtype=np.float64), side="right")
    sums = np.cumsum(positions, axis=0)
    return [
        (sums[count - 1] / count).tolist() if count and time <= when[-1] else None
        for count, time in zip(counts, np.asarray(times, dtype=np.float64), strict=True)
    ]


def relative_errors(
    means: Sequence[Sequence[float] | None], expected: Sequence[float]
) -> FloatArray:
    """Return |mean - E q| / |E q| for each mean, NaN where there is none (section 5.3).

    Parameters
    ----------
    means
        As :func:`means_at` returns them.
    expected
        E q.
    """
    truth = np.asarray(expected, dtype=np.float64)
    size = np.linalg.norm(truth)
    return np.array(
        [
            np.nan if mean is None else np.linalg.norm(np.asarray(mean) - truth) / size
            for mean in means
        ]
    )


def part_below(
    times: npt.ArrayLike, ours: npt.ArrayLike, theirs: npt.ArrayLike, since: float
) -> float | None:
    """Return the part of the time, from a moment on, at which one curve is below another.

    Parameters
    ----------
    times : array_like of shape (n,)
        At which the curves are known, rising. Each stands for the time since the one before it.
    ours, theirs : array_like of shape (n,)
        The curves; times at which either is NaN are left out.
    since
        The moment.

    Returns
    -------
    float or None
        None if the curves are not known at any time from then on.
    """
    moments = np.asarray(times, dtype=np.float64)
    first, second = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    before = np.concatenate([[0.0], moments[:-1]])
    stands_for = moments - np.maximum(before, since)
    counted = (moments >= since) & np.isfinite(first) & np.isfinite(second)
    total = float(stands_for[counted].sum())
    return float(stands_for[counted & (first < second)].sum()) / total if total > 0 else None
