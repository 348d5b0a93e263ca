"""For samplers that make one chain at a time: all chains get as many draws as the first."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np

from peers.outcome import Outcome, Stopwatch, Task
from surrokit.types import FloatArray

FEWEST_DRAWS = 20
"""The first chain makes as many even where its share of the time is over."""


@attrs.frozen(kw_only=True, eq=False)
class Chain:
    """One chain, finished.

    Parameters
    ----------
    draws : ndarray of shape (draws, dim)
        After warm-up.
    steps
        Leapfrog steps, warm-up included.
    compilation, warmup, sampling
        Seconds; whatever passed before the first iteration counts as compilation.
    """

    draws: FloatArray
    steps: int
    compilation: float = 0.0
    warmup: float
    sampling: float


@attrs.frozen(kw_only=True)
class Share:
    """What one chain may spend.

    Parameters
    ----------
    number
        Of the chain, from 0.
    draws
        Most draws after warm-up.
    seconds
        After these, warm-up included, no draw is begun; but ``FEWEST_DRAWS`` are made in any case.
    """

    number: int
    draws: int
    seconds: float

    def is_over(self, draws: int, seconds: float) -> bool:
        """Whether a chain with so many draws after so many seconds should stop."""
        return draws >= FEWEST_DRAWS and seconds >= self.seconds


def run_chains(
    task: Task, watch: Stopwatch, chain: Callable[[Share], Chain], note: str = ""
) -> Outcome:
    """Run the chains: the first for its part of the time, the others until they have as many draws.

    Parameters
    ----------
    task
        What is sampled.
    watch
        Has been charged with the compilation.
    chain
        Makes one chain.
    note
        For the table.
    """
    share = Share(number=0, draws=task.draws, seconds=task.seconds / task.chains)
    made: list[Chain] = []
    for number in range(task.chains):
        made.append(chain(attrs.evolve(share, number=number)))
        share = Share(number=0, draws=len(made[0].draws), seconds=np.inf)
    seconds = dict(watch.seconds)
    for phase in ("compilation", "warmup", "sampling"):
        seconds[phase] += sum(getattr(one, phase) for one in made)
    return Outcome(
        draws=np.stack([one.draws for one in made]),
        seconds=seconds,
        calls={"gradient": sum(one.steps for one in made)},
        note=note,
    )
