"""What a run is going to do: all parts made and checked, sizes and limits."""

from __future__ import annotations

import math

import attrs

from surrokit.budget import Budget, StopReason
from surrokit.clock import Clock
from surrokit.fallback import Fallback
from surrokit.parts import Parts
from surrokit.recording import RecordingPotential
from surrokit.records import Evaluations
from surrokit.safety import Safety
from surrokit.types import FloatArray

WARMUP = 1000
"""Iterations before any is kept, unless the run is told or knows better."""

DRAWS = 1000
"""Draws kept of each chain, unless the run is told otherwise."""

MOST_DRAWS = 100_000
"""Draws kept of each chain at most where a target ends the run and no number was given."""

TUNED_AFTER_DROP = 300
"""Iterations of warm-up on the exact potential where a surrogate was not worth its cost."""

SETTLING, SETTLING_SOON = 25, 10
"""Iterations of warm-up after an exploration that has tuned the run's sampler; the latter where it
foretells an acceptance of at least :data:`SURE`.

Chains begin at about draws of the surrogate and proposals are nearly independent, so few are left
where they began: with an acceptance of 0.8, one chain in ten million after ten iterations. And each
iteration is paid for.
"""

SURE = 0.8
"""Acceptance foretold by an exploration from which on chains settle soon."""

JUDGED = 20
"""The last of these, or half as many where there are no more, by which a surrogate is judged once
more."""

PART_BEFORE_DRAWS = 0.5
"""Part of the budget that a warm-up of open length may take, the exploration counted."""

LAST_PART = 0.1
"""Part of the iterations so far that such a warm-up goes on for when its part is about used up. By
then the chains have forgotten that the limit found them where iterations are dear."""


def settling(foretold: float | None) -> int:
    """Return the iterations of warm-up after an exploration that foretells an acceptance."""
    return SETTLING_SOON if foretold is not None and foretold >= SURE else SETTLING


def ending(iteration: int) -> int:
    """Return the iteration at which a warm-up ends whose part of the budget is about used up."""
    return iteration + math.ceil(LAST_PART * iteration)


@attrs.frozen(kw_only=True, eq=False)
class Plan:
    """All parts of a run, made and checked.

    Parameters
    ----------
    target
        The exact potential, recorded.
    parts
        What the run is made of.
    chains, draws
        Sizes.
    warmup
        Iterations before any is kept, the exploration counted; None for 1000, or after an
        exploration that has tuned the sampler for what it took and 10 or 25 more.
    initial : ndarray of shape (chains, dim), optional
        The user's starting positions, in the sampling coordinates.
    evaluations
        Exact evaluations already paid for, in the sampling coordinates.
    safety
        What to do when the surrogate fails.
    budget
        Limits of the whole run.
    exploration
        Limits of the exploration, which then ends early.
    fallback
        What to go on with where the surrogate is not worth its cost; None to keep it.
    choice
        What was picked automatically, and why.
    clock
        Counts the run's seconds.
    over
        Why the run is over before it has begun; None as a rule.
    error
        What was raised before it had begun, if that is why.
    """

    target: RecordingPotential
    parts: Parts
    chains: int
    warmup: int | None
    draws: int
    initial: FloatArray | None
    evaluations: Evaluations | None
    safety: Safety
    budget: Budget
    exploration: Budget
    fallback: Fallback | None = None
    choice: str | None = None
    clock: Clock = attrs.field(factory=Clock)
    over: StopReason | None = None
    error: Exception | None = None

    @property
    def hurry(self) -> Budget:
        """What is used of the budget when a warm-up of open length comes to its end."""
        return self.budget.part(PART_BEFORE_DRAWS / (1.0 + LAST_PART))

    @property
    def most_warmup(self) -> int:
        """Iterations of warm-up, as far as is known before the run."""
        return WARMUP if self.warmup is None else self.warmup
