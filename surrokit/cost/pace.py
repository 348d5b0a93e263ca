"""The pace of a run, and the number of draws that a limit allows for.

A number of draws that depends on what these draws cost favours some of them. Where an iteration in
progress at the end is waited for, dear positions are met too often: its length is biased as that of
the interval between buses that a passenger arrives in. Where it is dropped, draws that are
independent of each other keep their law (Glynn and Heidelberger 1990, doi:10.1287/opre.38.5.801),
and means of others move by at most about half of their Monte Carlo error times the relative
standard error of the mean cost. A number that was settled before the first draw favours none.
"""

from __future__ import annotations

import math

import numpy as np

from surrokit.diagnostics import effective_sample_size
from surrokit.types import FloatArray

TOLERATED = 0.05
"""Part of the Monte Carlo error by which means may move, so that a limit is used to the full."""

_FEWEST = 4  # costs from which on something is known
_ROUNDING = 1e-9  # of a whole number of draws


class Pace:
    """What the iterations of a warm-up use of the limits.

    Costs are those of its third quarter. The first half is tuning; over the last quarter the chains
    forget where they were when these were paid.
    """

    def __init__(self) -> None:
        self._used: list[tuple[float, ...]] = []

    def begin(self, *used: float) -> None:
        """Begin with what is used of each limit, and forget what was before."""
        self._used = [used]

    def add(self, *used: float) -> None:
        """Take note of what is used after one more iteration."""
        self._used.append(used)

    def settle(self, limit: int, rest: float, margin: float) -> float:
        """Return how many draws there are to be at most, before the first of them.

        Parameters
        ----------
        limit
            Which of the limits.
        rest
            What is left of it.
        margin
            Standard errors of the foretold cost that are left to chance.

        Returns
        -------
        float
            A whole number; or infinity, see :func:`settle`.
        """
        used = np.array([row[limit] for row in self._used])
        n = len(used) - 1
        return settle(np.diff(used[n // 2 : (3 * n) // 4 + 1]), rest, margin)


def settle(costs: FloatArray, rest: float, margin: float) -> float:
    """Return how many draws a limit allows for.

    Parameters
    ----------
    costs : ndarray of shape (n,)
        Of iterations before the draws.
    rest
        What is left of the limit.
    margin
        Standard errors of the foretold cost that are left to chance.

    Returns
    -------
    float
        A whole number that is expected to use the limit but for the margin. Infinity, so that the
        limit itself ends the draws, where that moves means by no more than :data:`TOLERATED`, or
        where too little is known.
    """
    mean = float(costs.mean()) if len(costs) >= _FEWEST else 0.0
    if mean <= 0.0:
        return math.inf
    variance = len(costs) * relative_error(costs) ** 2  # of one iteration
    # n + margin (sqrt(n variance) + n sqrt(variance / len(costs))) = rest / mean, in sqrt(n)
    square = 1.0 + margin * math.sqrt(variance / len(costs))
    linear = margin * math.sqrt(variance)
    root = math.sqrt(linear**2 + 4.0 * square * max(rest, 0.0) / mean) - linear
    n = math.floor((root / (2.0 * square)) ** 2 + _ROUNDING)
    unseen = 1.0 / len(costs)  # one more that is twice as dear, say
    return math.inf if 0.5 * math.sqrt((variance + unseen) / max(n, 1)) <= TOLERATED else n


def length_bias(costs: FloatArray) -> float:
    """Return the part of its Monte Carlo error by which a mean may be off.

    Parameters
    ----------
    costs : ndarray of shape (n,)
        Of draws whose number is what a limit let through, the one in progress dropped.

    Returns
    -------
    float
        About the most, whatever the mean is of; NaN where costs are too few to say.
    """
    return 0.5 * relative_error(costs) if len(costs) >= _FEWEST else math.nan


def relative_error(costs: FloatArray) -> float:
    """Return the standard error of the mean of successive costs, over that mean."""
    n_independent = float(effective_sample_size(costs[None, :, None], "paper")[0])
    if math.isnan(n_independent):  # all the same
        return 0.0
    return float(costs.std() / costs.mean()) / math.sqrt(n_independent)
