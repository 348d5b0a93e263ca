"""The state of a tuner."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.contracts.sampler import Tuning
from surrokit.kernel.lengths import LengthSearch
from surrokit.marginals.warp import Warp
from surrokit.types import FloatArray


@attrs.frozen(kw_only=True, eq=False)
class TunerState:
    """A tuner's state as a frozen record of arrays and numbers.

    Parameters
    ----------
    iteration
        Iterations seen.
    log_step, averaged_log_step
        Log step size to try next, and its average.
    error
        Running mean of the target acceptance minus the acceptance.
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
        Mean of these positions.
    scatter : ndarray of shape (chains, dim, dim)
        Sum of outer products of their deviations from the mean.
    covariance : ndarray of shape (dim, dim), optional
        Covariance from the last full window.
    lengths
        Search for the length of sub-chains.
    given : Tuning, optional
        Tuning known from the start, which is not searched.
    settled
        Whether a long window agreed with the one before it about the covariance.
    kept
        For a sampler that asks for a warp: positions of the window, and gradients there or None,
        all of shape (chains, dim).
    warp : Warp, optional
        From the last full window.
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
    slope: FloatArray | None
    tension: FloatArray | None
    covariance: FloatArray | None
    lengths: LengthSearch
    given: Tuning | None
    settled: bool = False
    kept: tuple[tuple[FloatArray, FloatArray | None], ...] = ()
    warp: Warp | None = None

    def empty_window(self) -> TunerState:
        """Return the state without the positions collected so far."""
        return attrs.evolve(
            self,
            count=0,
            mean=np.zeros_like(self.mean),
            scatter=np.zeros_like(self.scatter),
            slope=np.zeros_like(self.mean),
            tension=np.zeros_like(self.scatter),
            kept=(),
        )
