"""The plain sampler that stands by for one whose paths may turn out too dear."""

from __future__ import annotations

import attrs

from surrokit.contracts.sampler import Sampler
from surrokit.plan.fallback import in_words

LATELY = 20
"""Last iterations of the warm-up by which a sampler's paths are judged."""

ENOUGH = 0.25
"""Part of the draws wanted that the time has to allow for."""

SOONER = 5
"""Iterations that tell enough where a tenth of the time is used up; before them nothing is told."""

_TENTH = 0.1


@attrs.frozen(kw_only=True)
class Pace:
    """How a warm-up goes, by its last iterations.

    Parameters
    ----------
    iterations
        Those since it began.
    steps
        Mean number of integrator steps in a path.
    explorer_steps
        The same in the last iterations of the exploration, by its own sampler; infinite where that
        is not known.
    seconds
        Of an iteration.
    draws
        How many for each chain the time that is left allows; infinite without a limit.
    used
        Part of the time that is used up; 0 without a limit.
    """

    iterations: int
    steps: float
    explorer_steps: float
    seconds: float
    draws: float
    used: float


@attrs.frozen(kw_only=True, eq=False)
class Standby:
    """A sampler with a constant mass matrix, on the same potential as the one it stands by for.

    Parameters
    ----------
    name
        Its name in messages.
    sampler
        Not bound to a potential yet.
    most_steps
        Steps of a path up to which the run's own sampler pays.
    wanted
        Draws wanted of each chain.
    """

    name: str
    sampler: Sampler
    most_steps: int
    wanted: int

    def complaint(self, pace: Pace) -> str | None:
        """Return why the run's own sampler is to be replaced, or None.

        Without a limit of time the steps of its paths decide, which no clock can change: where
        the explorer's paths took no more, the metric does not make up for its cost.
        """
        if pace.iterations >= LATELY and pace.steps > max(self.most_steps, pace.explorer_steps):
            return (
                f"its paths took {pace.steps:.2g} steps, as longer ones failed, where "
                f"{pace.explorer_steps:.2g} were enough while exploring; to keep it, give its "
                "n_steps"
            )
        told = pace.iterations >= LATELY or (pace.iterations >= SOONER and pace.used > _TENTH)
        if not told or pace.draws >= ENOUGH * self.wanted:
            return None
        return (
            f"an iteration took {in_words(pace.seconds)}, and the time left would allow "
            f"{max(int(pace.draws), 0)} draws of {self.wanted}"
        )
