"""Some rows of everything that is known of a batch of chains."""

from __future__ import annotations

from surrokit.contracts.dynamics import Phase
from surrokit.types import BoolArray, Cache, FloatArray, IntArray


def take(cache: Cache, rows: IntArray | BoolArray) -> dict[str, FloatArray]:
    """Return some rows of every array."""
    return {name: array[rows] for name, array in cache.items()}


def place(cache: dict[str, FloatArray], rows: IntArray, part: Cache) -> None:
    """Write ``part`` into some rows of every array of a cache, in place."""
    for name, array in part.items():
        cache[name][rows] = array


def phase_taken(phase: Phase, rows: IntArray | BoolArray) -> Phase:
    """Return the phase of some chains."""
    return Phase(
        positions=phase.positions[rows], momenta=phase.momenta[rows], cache=take(phase.cache, rows)
    )


def phase_placed(phase: Phase, rows: IntArray, part: Phase) -> Phase:
    """Return a phase in which ``part`` has taken the place of some rows."""
    if len(rows) == len(phase.positions):
        return part
    cache = {name: phase.cache[name].copy() for name in part.cache}
    place(cache, rows, part.cache)
    positions, momenta = phase.positions.copy(), phase.momenta.copy()
    positions[rows], momenta[rows] = part.positions, part.momenta
    return Phase(positions=positions, momenta=momenta, cache=cache)


class Part:
    """The rows of a cache that are still under way, taken anew only when they have changed.

    Parameters
    ----------
    cache
        Arrays of all rows.
    """

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._rows: IntArray | None = None
        self._part: Cache = cache

    def of(self, rows: IntArray) -> Cache:
        """Return the arrays at increasing row numbers."""
        if rows is not self._rows:
            n = len(next(iter(self._cache.values())))
            self._part = self._cache if len(rows) == n else take(self._cache, rows)
            self._rows = rows
        return self._part
