"""Tests of a distribution, with a stated rate of false alarms.

Every statistical check of the suite gathers all its p-values in one :class:`Verdict`. It fails if
the smallest p-value times their number (Bonferroni) is below :data:`CHECK_RATE`. So a thousand
such checks raise a false alarm with a probability of at most 1e-3, over all seeds. The seeds of the
suite are fixed, so a new failure means that the code changed.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs
import numpy as np
from scipy.special import chdtr, chdtrc, kolmogorov, ndtr

from surrokit.types import FloatArray

CHECK_RATE = 1e-6
"""Largest probability that one statistical check fails a correct part."""


@attrs.frozen
class Comparison:
    """One p-value: the probability of a statistic at least as extreme under the hypothesis."""

    what: str
    statistic: float
    p_value: float


@attrs.frozen
class Verdict:
    """All p-values of one check."""

    comparisons: tuple[Comparison, ...]

    @classmethod
    def join(cls, verdicts: Iterable[Verdict]) -> Verdict:
        """Return one verdict on the comparisons of several."""
        return cls(tuple(one for verdict in verdicts for one in verdict.comparisons))

    @property
    def p_value(self) -> float:
        """The smallest p-value times their number (Bonferroni), at most 1."""
        least = min((one.p_value for one in self.comparisons), default=1.0)
        return min(1.0, least * max(len(self.comparisons), 1))

    @property
    def rejected(self) -> bool:
        """Whether the hypothesis is rejected at :data:`CHECK_RATE`."""
        return self.p_value < CHECK_RATE

    def require(self, claim: str) -> None:
        """Raise if the claim is rejected.

        Raises
        ------
        AssertionError
            If it is; the message lists the worst comparisons.
        """
        if self.rejected:
            worst = sorted(self.comparisons, key=lambda one: one.p_value)[:4]
            lines = "".join(f"\n  {w.what}: {w.statistic:.5g}, p = {w.p_value:.2g}" for w in worst)
            raise AssertionError(
                f"{claim}, but of {len(self.comparisons)} comparisons the worst are{lines}\n"
                f"corrected for their number p = {self.p_value:.2g}; a correct part gets below "
                f"{CHECK_RATE:g} with at most that probability"
            )


def normality(normals: FloatArray, label: str = "") -> Verdict:
    """Test whether rows of shape (n, dim) are independent standard normals.

    Projections on the axes and the diagonals are compared in distribution (Kolmogorov-Smirnov),
    mean and mean square, and the squared radius in distribution.
    """
    # rows that ran away, or are NaN, count as a million away
    normals = np.clip(np.nan_to_num(normals, nan=1e6), -1e6, 1e6)
    n, dim = normals.shape
    projections = [(f"coordinate {k + 1}", normals[:, k]) for k in range(dim)]
    for k in range(dim - 1):
        a, b = normals[:, k], normals[:, k + 1]
        projections.append((f"sum of {k + 1} and {k + 2}", (a + b) / np.sqrt(2.0)))
        projections.append((f"difference of {k + 1} and {k + 2}", (a - b) / np.sqrt(2.0)))
    found = []
    for name, rows in projections:
        mean, total = float(rows.mean()), float(np.square(rows).sum())
        of_mean = 2.0 * float(ndtr(-abs(mean) * np.sqrt(n)))
        of_square = min(1.0, 2.0 * min(float(chdtr(n, total)), float(chdtrc(n, total))))
        found += [
            _kolmogorov(f"{label}{name}", ndtr(rows)),
            Comparison(f"{label}{name}, mean", mean, of_mean),
            Comparison(f"{label}{name}, mean square where it should be 1", total / n, of_square),
        ]
    radius = np.square(normals).sum(axis=1)
    return Verdict((*found, _kolmogorov(f"{label}squared radius", chdtr(dim, radius))))


def _kolmogorov(what: str, uniform: FloatArray) -> Comparison:
    n = len(uniform)
    ordered = np.sort(uniform)
    above = (np.arange(1, n + 1) / n - ordered).max()
    distance = float(max(above, (ordered - np.arange(n) / n).max()))
    p_value = float(kolmogorov(np.sqrt(n) * distance))
    return Comparison(f"{what}, Kolmogorov-Smirnov distance", distance, p_value)
