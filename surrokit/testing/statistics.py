"""Tests of a distribution, with a stated rate of false alarms.

Every statistical check of the suite gathers all its p-values in one :class:`Verdict`. It fails if
the smallest p-value times their number (Bonferroni) is below :data:`CHECK_RATE`. So a family of up
to :data:`FAMILY_SIZE` such checks raises a false alarm with a probability of at most
:data:`FAMILY_RATE`, over all seeds. The seeds of the suite are fixed, so a new failure means that
the code changed. These rates are part of the interface.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs
import numpy as np
from scipy.special import bdtr, chdtr, chdtrc, kolmogorov, ndtr

from surrokit.types import FloatArray, IntArray

CHECK_RATE = 1e-6
"""Largest probability that one statistical check fails a correct part."""

FAMILY_SIZE = 1000
"""Number of statistical checks for which :data:`FAMILY_RATE` holds."""

FAMILY_RATE = CHECK_RATE * FAMILY_SIZE
"""Largest probability that any of so many checks fails a correct part: 1e-3."""


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


def balance(before: FloatArray, after: FloatArray, label: str = "", n_regions: int = 4) -> Verdict:
    """Test detailed balance: as many moves go from each region to each other one as back.

    Regions have equal probability in each coordinate and in the squared radius; pairs of
    coordinates have the square of their number.

    ``before`` and ``after`` (n, dim) are the ends of one transition of each chain, started from
    exact draws, as standard normals of the target.
    """
    comparisons: list[Comparison] = []
    regions = zip(_regions(before, n_regions), _regions(after, n_regions), strict=True)
    for (name, x), (_, y) in regions:
        size, name = max(int(x.max()), int(y.max())) + 1, f"{label}regions of {name}"
        counts = np.zeros((size, size), dtype=np.int64)
        np.add.at(counts, (x, y), 1)
        for i, j in zip(*np.tril_indices(size, -1), strict=True):
            there, back = int(counts[i, j]), int(counts[j, i])
            p_value = min(1.0, 2.0 * float(bdtr(min(there, back), there + back, 0.5)))
            what = f"{name}, moves {i + 1} to {j + 1} less those back"
            comparisons.append(Comparison(what, there - back, p_value))
        both, odd = np.triu(counts + counts.T, 1), np.triu(counts - counts.T, 1)
        enough = both >= 20
        total, pairs = float((odd[enough] ** 2 / both[enough]).sum()), int(enough.sum())
        p_value = float(chdtrc(pairs, total)) if pairs else 1.0
        what = f"{name}, chi-square of all {pairs} pairs"
        comparisons.append(Comparison(what, total, p_value))
    return Verdict(tuple(comparisons))


def _regions(normals: FloatArray, n_regions: int) -> Iterator[tuple[str, IntArray]]:
    """Yield the region of each row, in several divisions of the space."""
    dim = normals.shape[1]
    edges = np.arange(1, n_regions) / n_regions
    cells = [np.digitize(ndtr(normals[:, k]), edges) for k in range(dim)]
    for k, cell in enumerate(cells):
        yield f"coordinate {k + 1}", cell
    yield "radius", np.digitize(chdtr(dim, np.square(normals).sum(axis=1)), edges)
    for k in range(dim - 1):
        yield f"coordinates {k + 1} and {k + 2}", cells[k] * n_regions + cells[k + 1]
