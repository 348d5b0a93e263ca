"""Visits of draws to the modes, moves of chains between them, and modes that none may have seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs
import numpy as np

from surrokit.modes import Modes
from surrokit.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from surrokit.result.run import Run

ENOUGH = 40
"""Moves of chains between modes from which on the modes' shares of the draws mean something."""

SELDOM = 0.1
"""Like :data:`ENOUGH`, but as a part of the moves that independent draws would make."""

VISITED = 0.01
"""Part of the draws nearest to a mode from which on it is not missed."""

FEWEST_SEARCHES = 3
"""Searches that must have ended at one mode, or else hardly anything speaks against others."""

_MOST_ENDS = 6  # ends of searches that a message names
_MOST_NUMBERS = 4  # coordinates of a mode in a message: those in which modes differ most


@attrs.frozen(kw_only=True, eq=False)
class ModeVisits:
    """Draws by mode.

    A mode is missed if no draw has come near it, and hardly any is nearest to it. In many
    dimensions draws may all be far from where the normal approximation at a mode has its mass.
    """

    found: Modes  # all of them
    modes: Modes  # those that matter
    shares: FloatArray  # part of the draws at each of these, shape (k,)
    missed: BoolArray  # whether each of these is, shape (k,)
    moves: int  # how often a chain went from one mode to another
    expected: float  # how often independent draws would

    @classmethod
    def of(cls, modes: Modes, positions: FloatArray) -> ModeVisits:
        """Return where draws lie, from ``positions (chains, draws, dim)``."""
        chains, draws, dim = positions.shape
        found, modes = modes, modes.take(modes.matters)
        rows = positions.reshape(-1, dim)
        visited: IntArray = modes.nearest(rows).reshape(chains, draws)
        shares = np.bincount(visited.ravel(), minlength=len(modes)) / visited.size
        return cls(
            found=found,
            modes=modes,
            shares=shares,
            missed=np.array(
                [shares[k] < VISITED and _missed(modes, k, rows) for k in range(len(modes))]
            ),
            moves=int((np.diff(visited, axis=1) != 0).sum()),
            expected=chains * (draws - 1) * float(1.0 - np.square(shares).sum()),
        )

    @property
    def joined(self) -> bool:
        """Whether draws come near every mode, and chains go between modes often enough."""
        if self.missed.any():
            return False
        return self.moves >= ENOUGH or self.moves >= SELDOM * self.expected

    @property
    def unseen(self) -> tuple[float, float]:
        """What :meth:`Modes.unseen` says where modes that draws join count as one."""
        return self.found.unseen(self.found.matters if self.joined else None)

    def tell(self, labels: list[str], draws: FloatArray) -> str:
        """Return each mode's place, height and share of the draws, in words.

        The spread of draws (chains, draws, n) in the user's coordinates, by their labels, is the
        unit in which modes are apart.
        """
        modes = self.modes
        heights = modes.values - modes.values[0]
        told = _farthest_apart(modes.places, draws)
        return "; ".join(
            f"{self._place(k, labels, told)} ("
            + (
                f"potential {modes.values[0]:.6g}"
                if k == 0
                else f"{round(heights[k], 1):g} nats higher"
            )
            + f", {modes.ended[k]} of {self.found.searches} searches, "
            f"{100 * self.shares[k]:.3g} % of the draws)"
            for k in range(len(modes))
        )

    def _place(self, k: int, labels: list[str], told: IntArray) -> str:
        place = ", ".join(f"{labels[i]} = {self.modes.places[k, i]:.4g}" for i in told)
        return place + (", ..." if len(labels) > _MOST_NUMBERS else "")


def _farthest_apart(places: FloatArray, draws: FloatArray) -> IntArray:
    """Return in which of the user's numbers modes at ``places (k, n)`` differ most, in order.

    The user's numbers need not be as many as the sampling coordinates: a simplex has one more.
    """
    sds = np.median(draws.std(axis=1), axis=0)  # over chains, of which most stay at one mode
    apart = np.ptp(places, axis=0)
    apart[apart > 0] /= np.maximum(sds[apart > 0], np.finfo(float).tiny)
    return np.sort(np.argsort(-apart, kind="stable")[:_MOST_NUMBERS])


def _missed(modes: Modes, k: int, draws: FloatArray) -> bool:
    """Return whether no draw is where nearly all of a mode's normal approximation lies."""
    return bool(modes.squares(k, draws).min() > (np.sqrt(draws.shape[1]) + 2.0) ** 2)


def exchanged(run: Run) -> Iterator[str]:
    """Yield that an exchange of parameters leads where draws are missing, if so."""
    if run.exchange is None:
        return
    one, other = (", ".join(map(repr, side)) for side in (run.exchange.one, run.exchange.other))
    yield (
        f"the density stays the same where {one} and {other} are exchanged, so that each side has "
        f"half of the mass, and one of them {run.exchange.part:.0%} of the draws; read results "
        "up to this exchange, or declare an order of the numbers that tell the two apart, "
        "such as surrokit.ordered(2)"
    )


def unbelieved(run: Run) -> Iterator[str]:
    """Yield that chains began elsewhere than where searches for modes ended, if so."""
    if run.modes is not None and not run.modes.believed:
        yield (
            "searches for modes ended where hardly any mass is (potential "
            f"{run.modes.values[0]:.6g} is the least), in a neck or in a shape unlike a normal "
            "one, so chains began at their starts; if they mix badly, give the target other "
            "coordinates, such as non-centred ones of a hierarchical model"
        )


def unseen_modes(run: Run) -> Iterator[str]:
    """Yield that searches kept ending in new places, or that fewer than three ended in one."""
    modes = run.modes
    if modes is None or not modes.believed or modes.concave or not len(run.kept):
        return
    visits = ModeVisits.of(modes, run.kept.positions)
    part, bound = visits.unseen
    most = int(modes.ended[modes.matters].sum() if visits.joined else modes.ended.max())
    if part == 0.0 and most >= FEWEST_SEARCHES:
        return
    what = (
        f"searches for modes {_describe_ends(modes)}: by Good and Turing's estimate {part:.0%} "
        "of further searches would end at a mode that none has found, at most "
        f"{bound:.0%} with a probability of 0.95"
    )
    if modes.ended.sum() == 1:
        what = f"a single search for modes came to its end, of {modes.searches}"
    budget = "raise max_calls, " * (run.stopped == "max_calls")
    yield (
        f"{what}; nothing says how much of the mass another mode holds; {budget}begin in more "
        "places with initial=..., let the explorer make more searches, or say in plausible= where "
        "to look"
    )


def _describe_ends(modes: Modes) -> str:
    """Return where searches ended, in words."""
    ends = zip(modes.ended[:_MOST_ENDS], modes.values[:_MOST_ENDS], strict=True)
    heights = ", ".join(f"{ended} at potential {value:.6g}" for ended, value in ends)
    more = ", ..." if len(modes) > _MOST_ENDS else ""
    places = "one place" if len(modes) == 1 else f"{len(modes)} places"
    return f"ended in {places} ({heights}{more})"
