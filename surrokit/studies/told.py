"""What a study was told, in the place of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from surrokit.types import FloatArray


class Pending(KeyboardInterrupt):
    """Ends a run at positions of which nobody has told anything yet."""


class Told:
    """A function of rows that knows what it was told, and else ends the run.

    Parameters
    ----------
    results
        Position, as bytes, to the results there.

    Attributes
    ----------
    pending : ndarray of shape (n, dim) or None
        Where a result is wanted; None as long as none is.
    """

    def __init__(self, results: Mapping[bytes, tuple[FloatArray, ...]]) -> None:
        self.pending: FloatArray | None = None
        self._results = results

    def __contains__(self, key: bytes) -> bool:
        """Return whether the result is known at a position, given as :func:`key_of` does."""
        return key in self._results

    def __call__(self, positions: FloatArray) -> tuple[FloatArray, ...]:
        """Return the results at positions (n, dim), each stacked.

        Raises
        ------
        Pending
            If one of them is unknown.
        """
        keys = [key_of(row) for row in positions]
        unknown = [key not in self._results for key in keys]
        if any(unknown):
            self.pending = np.array(positions[unknown])
            raise Pending
        rows = [self._results[key] for key in keys]
        return tuple(np.stack(each) for each in zip(*rows, strict=True))


class Nearest:
    """A function of rows that gives what was told at the nearest position: bounds round a little.

    Parameters
    ----------
    positions : ndarray of shape (n, dim)
        At least one.
    results
        What was told there, each of shape (n, ...).
    """

    def __init__(self, positions: FloatArray, results: Sequence[FloatArray]) -> None:
        from scipy.spatial import KDTree

        spans = np.ptp(positions, axis=0)
        self._spans, self._results = np.where(spans > 0.0, spans, 1.0), tuple(results)
        self._tree = KDTree(positions / self._spans)

    def __call__(self, positions: FloatArray) -> tuple[FloatArray, ...]:
        """Return the results at positions (m, dim), each stacked."""
        _, at = self._tree.query(positions / self._spans)
        return tuple(np.asarray(each[at]) for each in self._results)


def key_of(position: FloatArray) -> bytes:
    """Return by what a position (dim,) is known: all of its bits, and no sign of zero."""
    return np.ascontiguousarray(position + 0.0, dtype=np.float64).tobytes()
