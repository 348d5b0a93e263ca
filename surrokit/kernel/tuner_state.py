"""The state of a tuner."""

from __future__ import annotations

import attrs

from surrokit.contracts.sampler import Tuning
from surrokit.kernel.lengths import LengthSearch
from surrokit.types import FloatArray


@attrs.frozen(kw_only=True, eq=False)
class TunerState:
    """What a tuner knows; a frozen record of arrays and numbers.

    Parameters
    ----------
    iteration
        Iterations seen.
    log_step, averaged_log_step
        Log step size to try next, and its average.
    error
        Running mean of how far acceptance falls short.
    centre
        Log step size towards which dual averaging shrinks.
    averaged
        Iterations averaged since the last restart.
    searching
        Iterations of search so far; -1 once the search is over.
    direction
        Whether the search doubles (1) or halves (-1); 0 before its first iteration.
    recent : ndarray of shape (chains,)
        Recent acceptance of each chain.
    count
        Positions of each chain in the window.
    mean : ndarray of shape (chains, dim)
        Their mean.
    scatter : ndarray of shape (chains, dim, dim)
        Sum of outer products of their deviations.
    covariance : ndarray of shape (dim, dim), optional
        From the last full window.
    lengths
        What is known of the lengths of sub-chains.
    given : Tuning, optional
        What was known from the start, and is not searched.
    """

    iteration: int
    log_step: float
    averaged_log_step: float
    error: float
    centre: float
    averaged: int
    searching: int
    direction: int
    recent: FloatArray
    count: int
    mean: FloatArray
    scatter: FloatArray
    covariance: FloatArray | None
    lengths: LengthSearch
    given: Tuning | None
