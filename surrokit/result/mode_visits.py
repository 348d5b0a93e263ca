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
                [
                    # no draw is where nearly all of the mode's normal approximation lies
                    shares[k] < VISITED and modes.squares(k, rows).min() > (np.sqrt(dim) + 2.0) ** 2
                    for k in range(len(modes))
                ]
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

    def tell(self, labels: list[str], draws: FloatArray) -> str:
        """Return each mode's place, height and share of the draws, in words.

        A place has the four of the user's numbers by which modes differ most, in spreads of draws
        (chains, draws, n). These need not be the sampling coordinates: a simplex has one more.
        """
        modes, most = self.modes, 4
        sds = np.median(draws.std(axis=1), axis=0)  # over chains, of which most stay at one mode
        apart = np.ptp(modes.places, axis=0)
        apart[apart > 0] /= np.maximum(sds[apart > 0], np.finfo(float).tiny)
        columns = np.sort(np.argsort(-apart, kind="stable")[:most])
        told = []
        for k, value in enumerate(modes.values):
            place = ", ".join(f"{labels[i]} = {modes.places[k, i]:.4g}" for i in columns)
            higher = f"{round(value - modes.values[0], 1):g} nats higher"
            height = higher if k else f"potential {value:.6g}"
            told.append(
                f"{place}{', ...' if len(labels) > most else ''} ({height}, {modes.ended[k]} of "
                f"{self.found.searches} searches, {100 * self.shares[k]:.3g} % of the draws)"
            )
        return "; ".join(told)


def separate_modes(run: Run) -> Iterator[str]:
    """Yield that draws miss modes, or that chains hardly go between them, if so."""
    if run.modes is None or not len(run.kept) or run.modes.matters.sum() < 2:
        return
    visits = ModeVisits.of(run.modes, run.kept.positions)
    if not visits.joined:
        missed = "; draws miss modes altogether" if visits.missed.any() else ""
        yield (
            f"the target has {len(visits.modes)} modes, and chains went from one to another "
            f"{visits.moves} times{missed}: {visits.tell(run.labels, run.draws)}. The draws at "
            "each tell where chains began, and nothing of the target; begin chains at all of them "
            "with initial=..., and weigh each by itself, or find coordinates in which they are one"
        )


def modes_left(run: Run) -> Iterator[tuple[str, bool, str]]:
    """Yield the name, whether it warns, and the message of what is left open about modes."""
    if run.exchange is not None:
        one, other = (", ".join(map(repr, each)) for each in (run.exchange.one, run.exchange.other))
        message = (
            f"the density stays the same where {one} and {other} are exchanged, so that each side "
            f"has half of the mass, and one of them {run.exchange.part:.0%} of the draws; read "
            "results up to this exchange, or declare an order of the numbers that tell the two "
            "apart, such as surrokit.ordered(2)"
        )
        yield "exchange", True, message
    if run.modes is not None and run.modes.believed:
        yield from (("unseen_modes", True, message) for message in _unseen(run, run.modes))
    elif run.modes is not None:
        message = (
            "searches for modes ended where hardly any mass is (potential "
            f"{run.modes.values[0]:.6g} is the least), in a neck or in a shape unlike a normal "
            "one, so chains began at their starts; if they mix badly, give the target other "
            "coordinates, such as non-centred ones of a hierarchical model"
        )
        yield "modes_left", False, message


def _unseen(run: Run, modes: Modes) -> Iterator[str]:
    """Yield that searches kept ending in new places, or that hardly any ended in one."""
    if modes.concave or not len(run.kept):
        return
    visits = ModeVisits.of(modes, run.kept.positions)
    # what Modes.unseen says where modes that draws join count as one
    part, bound = modes.unseen(modes.matters if visits.joined else None)
    most = int(modes.ended[modes.matters].sum() if visits.joined else modes.ended.max())
    if part == 0.0 and most >= 3:  # searches that ended at one mode: little speaks for others
        return
    ends = list(zip(modes.ended, modes.values, strict=True))
    heights = ", ".join(f"{ended} at potential {value:.6g}" for ended, value in ends[:6])
    what = (
        f"searches for modes ended in {'one place' if len(modes) == 1 else f'{len(modes)} places'}"
        f" ({heights}{', ...' if len(ends) > 6 else ''}): by Good and Turing's estimate {part:.0%} "
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
