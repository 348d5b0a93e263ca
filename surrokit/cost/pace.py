"""The pace of a run, and the number of draws that a limit allows.

Draws are biased if their number depends on their own costs. If the run waits for the iteration in
progress at the limit, expensive positions come up too often, as a passenger is likelier to arrive
in a long interval between buses. If the run drops that iteration, independent draws keep their law
(Glynn and Heidelberger 1990, doi:10.1287/opre.38.5.801), and means of dependent draws move by at
most about half of their Monte Carlo error times the relative standard error of the mean cost. A
number that is settled before the first draw causes no bias.
"""

from __future__ import annotations

import math

import numpy as np

from surrokit.diagnostics import effective_sample_size
from surrokit.types import FloatArray

TOLERATED = 0.05
"""Share of the Monte Carlo error by which means may move so that a limit can be used in full."""

_FEWEST = 4  # with fewer costs nothing is estimated
_ROUNDING = 1e-9  # of a whole number of draws


class Pace:
    """Use of the limits by each iteration of a warm-up.

    Only the third quarter counts: the first half is tuning, and in the last quarter the chains
    forget the positions at which the counted costs arose.
    """

    def __init__(self) -> None:
        self._used: list[tuple[float, ...]] = []

    def begin(self, *used: float) -> None:
        """Begin anew, with the use of each limit so far."""
        self._used = [used]

    def add(self, *used: float) -> None:
        """Add the use of each limit after one more iteration."""
        self._used.append(used)

    def settle(self, limit: int, rest: float, margin: float) -> float:
        """Return the largest number of draws, before the first of them.

        Parameters
        ----------
        limit
            Number of the limit.
        rest
            Remainder of the limit.
        margin
            Standard errors of the predicted cost to keep in reserve.

        Returns
        -------
        float
            A whole number or infinity, as from :func:`settle`.
        """
        used = np.array([row[limit] for row in self._used])
        n = len(used) - 1
        return settle(np.diff(used[n // 2 : (3 * n) // 4 + 1]), rest, margin)


def settle(costs: FloatArray, rest: float, margin: float) -> float:
    """Return the number of draws that a limit allows.

    Parameters
    ----------
    costs : ndarray of shape (n,)
        Costs of iterations before the draws.
    rest
        Remainder of the limit.
    margin
        Standard errors of the predicted cost to keep in reserve.

    Returns
    -------
    float
        A whole number, expected to use up the limit except for the margin. Infinity lets the limit
        itself end the draws: where this moves means by no more than :data:`TOLERATED`, or where too
        little is known.
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
    unseen = 1.0 / len(costs)  # as if one more iteration cost twice as much
    return math.inf if 0.5 * math.sqrt((variance + unseen) / max(n, 1)) <= TOLERATED else n


def length_bias(costs: FloatArray) -> float:
    """Return the share of its Monte Carlo error by which a mean may be biased.

    Parameters
    ----------
    costs : ndarray of shape (n,)
        Costs of the draws that a limit let through, without the one in progress.

    Returns
    -------
    float
        Approximate maximum over the means of all functions; NaN with too few costs.
    """
    return 0.5 * relative_error(costs) if len(costs) >= _FEWEST else math.nan


def relative_error(costs: FloatArray) -> float:
    """Return the standard error of the mean of successive costs, relative to that mean."""
    n_independent = float(effective_sample_size(costs[None, :, None], "paper")[0])
    if math.isnan(n_independent):  # all costs are equal
        return 0.0
    return float(costs.std() / costs.mean()) / math.sqrt(n_independent)
