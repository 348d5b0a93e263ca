"""Acceptance against the number of training points."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import numpy.typing as npt


def binned_acceptance(
    points: npt.ArrayLike, acceptance: npt.ArrayLike, edges: npt.ArrayLike
) -> list[float | None]:
    """Return the mean acceptance probability in bins of training points.

    Parameters
    ----------
    points : array_like of shape (iterations,)
        Training points at hand when each proposal was made.
    acceptance : array_like of shape (iterations,)
        Probabilities with which they were accepted.
    edges : array_like of shape (bins + 1,)
        Of the bins, rising; a bin holds its left edge.

    Returns
    -------
    list
        One number for each bin, None where no proposal fell.
    """
    bounds = np.asarray(edges, dtype=np.float64)
    inside = np.searchsorted(bounds, np.asarray(points), side="right") - 1
    numbers = np.asarray(acceptance, dtype=np.float64)
    return [
        float(numbers[inside == i].mean()) if (inside == i).any() else None
        for i in range(len(bounds) - 1)
    ]


@attrs.frozen(kw_only=True)
class Curve:
    """Median and 90 % interval over runs, bin by bin.

    Parameters
    ----------
    ends
        Training points at the right edge of each bin.
    low, median, high
        Quantiles of 5 %, 50 % and 95 %; None where no run has a number.
    """

    ends: tuple[float, ...]
    low: tuple[float | None, ...]
    median: tuple[float | None, ...]
    high: tuple[float | None, ...]

    @classmethod
    def over_runs(cls, edges: Sequence[float], runs: Sequence[Sequence[float | None]]) -> Curve:
        """Return the curve of several runs.

        Parameters
        ----------
        edges
            Of the bins, one more than there are bins.
        runs
            For each run what :func:`binned_acceptance` returns.
        """
        quantiles: list[tuple[float | None, ...]] = []
        for numbers in zip(*runs, strict=True):
            known = [number for number in numbers if number is not None]
            found = np.quantile(known, [0.05, 0.5, 0.95]).tolist() if known else [None] * 3
            quantiles.append(tuple(found))
        low, median, high = zip(*quantiles, strict=True)
        return cls(ends=tuple(edges[1:]), low=low, median=median, high=high)

    def reached(self, level: float) -> float | None:
        """Return after how many points the median first is at a level; None if it never is."""
        return next((end for end, at_least in self._complete_modes(level) if at_least), None)

    def stays(self, level: float) -> float | None:
        """Return after how many points the median is at a level and no longer falls below it.

        None if its last bin is below.
        """
        since: float | None = None
        for end, at_least in self._complete_modes(level):
            since = (end if since is None else since) if at_least else None
        return since

    @property
    def last(self) -> float | None:
        """The median over the last quarter of the bins, averaged."""
        quarter = self.median[-max(len(self.median) // 4, 1) :]
        known = [number for number in quarter if number is not None]
        return float(np.mean(known)) if known else None

    def _complete_modes(self, level: float) -> list[tuple[float, bool]]:
        pairs = zip(self.ends, self.median, strict=True)
        return [(end, number >= level) for end, number in pairs if number is not None]
