"""What searches for modes may pay for."""

from __future__ import annotations

import attrs

from surrokit.capabilities import CONVEX
from surrokit.potentials import Potential

LEAST = 3
"""Searches that are made as long as there are starts, whatever they cost."""

FEW, MOST = 8, 12
"""Starts to search from at most: the former and one for each dimension, but no more than the
latter."""

_USUAL, _UNNOTICED = 4000, 0.01  # calls of a run without a limit at least, and a part of any run's


def unnoticed(calls: int | None) -> int:
    """Return how many calls are few beside those of a run, which are limited or not."""
    return int(_UNNOTICED * (_USUAL if calls is None else calls))


@attrs.frozen(kw_only=True)
class Limits:
    """What may be paid for.

    Parameters
    ----------
    total
        Evaluations by all searches.
    later
        Evaluations by those after the first. One that has begun may finish, and :data:`LEAST`
        begin in any case.
    searches
        Starts at most; None for as many as ``later`` pays for.
    spare
        Evaluations more, in total and by later searches, while a mode is known that one search
        alone has found.
    beside
        Gradients beside the first mode, on top of these.
    """

    total: int
    later: float
    searches: int | None
    spare: int = 0
    beside: int = 0

    def more(self) -> Limits:
        """Return the limits with what is spare."""
        return attrs.evolve(
            self, total=self.total + self.spare, later=self.later + self.spare, spare=0
        )

    def starts(self, exact: Potential) -> int:
        """Return from how many starts to search at most."""
        if CONVEX in exact.capabilities:
            return 1
        return min(FEW + exact.dim, MOST) if self.searches is None else self.searches
