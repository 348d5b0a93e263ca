"""What one method did with one problem."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import attrs

from surrokit.potentials import Potential
from surrokit.types import FloatArray

PHASES = ("warmup", "training", "sampling")
"""What the seconds consist of; compilation is told apart."""

LONGEST_WARMUP = 1.5
"""In parts of the time; one that takes longer is given up."""


@attrs.frozen(kw_only=True, eq=False)
class Task:
    """A problem with its data, and what a method may spend on it.

    Parameters
    ----------
    target
        The registered target.
    design, response : ndarray of shape (n_rows, dim) and (n_rows,)
        The same data.
    prior_variance
        Of each coefficient.
    starts : ndarray of shape (chains, dim)
        Starting positions.
    step_size, n_steps
        Of the paper's HMC.
    dense
        Whether peers adapt a dense mass matrix; else a diagonal one.
    warmup
        Iterations of warm-up where a method wants their number.
    draws
        Most draws a chain.
    seconds
        After these no further draws are begun; compilation does not count.
    seed
        Of everything random.
    """

    target: Potential
    design: FloatArray
    response: FloatArray
    prior_variance: float
    starts: FloatArray
    step_size: float
    n_steps: int
    dense: bool
    warmup: int
    draws: int
    seconds: float
    seed: int

    @property
    def chains(self) -> int:
        """Number of chains."""
        return int(self.starts.shape[0])

    @property
    def longest_warmup(self) -> float:
        """Seconds after which a warm-up is given up."""
        return LONGEST_WARMUP * self.seconds

    @property
    def dim(self) -> int:
        """Number of coefficients."""
        return int(self.starts.shape[1])


@attrs.frozen(kw_only=True, eq=False)
class Outcome:
    """Draws and what they cost.

    Parameters
    ----------
    draws : ndarray of shape (chains, draws, dim)
        After warm-up.
    seconds
        By phase, and ``compilation``.
    calls
        Exact evaluations by kind, in positions (``rows``: in data rows), warm-up and training
        included. Samplers that follow gradients count one for each leapfrog step.
    acceptance
        Mean acceptance of the kept draws, where it says something; else None.
    note
        What a reader of the table should know.
    """

    draws: FloatArray
    seconds: Mapping[str, float]
    calls: Mapping[str, float]
    acceptance: float | None = None
    note: str = ""


class OverTimeError(Exception):
    """A warm-up takes so long that nothing would come of it."""

    @classmethod
    def after(cls, done: int, of: int, seconds: float) -> OverTimeError:
        """Return the error of a warm-up, or one chain's, given iterations done and wanted."""
        return cls(f"{done} of {of} iterations of warm-up in {seconds:.0f} s")


class Stopwatch:
    """Charges seconds to phases, and says when the time is used up."""

    def __init__(self, seconds: float) -> None:
        self.limit = seconds
        self.seconds = dict.fromkeys(("compilation", *PHASES), 0.0)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Charge what the block takes."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] += time.perf_counter() - start

    @property
    def spent(self) -> float:
        """Seconds of all finished phases, compilation left out."""
        return sum(self.seconds[name] for name in PHASES)

    @property
    def is_over(self) -> bool:
        """Whether the time is used up."""
        return self.spent >= self.limit
