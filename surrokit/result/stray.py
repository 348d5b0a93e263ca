"""A chain that was far from the others in warm-up, and what became of it."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class Stray:
    """A chain that was found far above the others in warm-up.

    Parameters
    ----------
    iteration
        Iteration of the run, counted from 1, after which it was found.
    chain
        Which one.
    above
        Nats by which the least potential it had lately seen exceeded the others' median.
    begun_again
        Whether it was begun again where another chain was; else it stays, as it sits in a mode of
        its own.
    """

    iteration: int
    chain: int
    above: float
    begun_again: bool
