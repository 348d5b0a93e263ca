"""Visits of draws to the modes, and moves of chains between them."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.contracts.explorer import Modes
from surrokit.types import BoolArray, FloatArray, IntArray

ENOUGH = 40
"""Moves of chains between modes from which on the modes' shares of the draws mean something."""

SELDOM = 0.1
"""Like :data:`ENOUGH`, but as a part of the moves that independent draws would make."""

VISITED = 0.01
"""Part of the draws nearest to a mode from which on it is not missed."""

_MOST_NUMBERS = 4  # coordinates of a mode in a message: those in which modes differ most


@attrs.frozen(kw_only=True, eq=False)
class ModeVisits:
    """Draws by mode.

    Parameters
    ----------
    modes
        The modes that matter.
    searches
        Number of all searches, wherever they ended.
    shares : ndarray of shape (k,)
        Part of the draws at each mode.
    missed : ndarray of shape (k,)
        Whether no draw has come near the mode, and hardly any is nearest to it. In many dimensions
        draws may all be far from where the normal approximation at a mode has its mass.
    moves
        How often a chain went from one mode to another.
    expected
        How often independent draws would.
    """

    modes: Modes
    searches: int
    shares: FloatArray
    missed: BoolArray
    moves: int
    expected: float

    @classmethod
    def of(cls, modes: Modes, positions: FloatArray) -> ModeVisits:
        """Return where draws lie, from ``positions (chains, draws, dim)``."""
        chains, draws, dim = positions.shape
        searches, modes = modes.searches, modes.take(modes.matters)
        rows = positions.reshape(-1, dim)
        visited: IntArray = modes.nearest(rows).reshape(chains, draws)
        shares = np.bincount(visited.ravel(), minlength=len(modes)) / visited.size
        return cls(
            modes=modes,
            searches=searches,
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

    def tell(self, labels: list[str], draws: FloatArray) -> str:
        """Return each mode's place, height and share of the draws, in words.

        Parameters
        ----------
        labels
            A name for each of the user's numbers.
        draws : ndarray of shape (chains, draws, len(labels))
            Draws in the user's coordinates, whose spread is the unit in which modes are apart.
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
            + f", {modes.ended[k]} of {self.searches} searches, "
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
