"""The rows that a network is fitted to."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs
import numpy as np

from surrokit.errors import SurrogateFitError
from surrokit.types import FloatArray

Tail: TypeAlias = Literal["down-weighted", "full"]
"""What far-tail rows count: less and less, or as much as any other."""


@attrs.frozen(kw_only=True, eq=False)
class TrainingRows:
    """Distinct points with finite values, and how much each counts.

    Parameters
    ----------
    positions : ndarray of shape (n, dim)
        Distinct positions, in the order in which they were first seen.
    values : ndarray of shape (n,)
        U there.
    trust : ndarray of shape (n,)
        Weight of a row for where it lies: 1, or less in the far tail.
    copies : ndarray of shape (n,)
        How often the row was seen; a squared error counts ``trust * copies`` times.
    """

    positions: FloatArray
    values: FloatArray
    trust: FloatArray
    copies: FloatArray

    def __len__(self) -> int:
        return len(self.values)

    @property
    def weights(self) -> FloatArray:
        """Weight of each squared error, shape (n,)."""
        return self.trust * self.copies

    @classmethod
    def of(cls, positions: FloatArray, values: FloatArray, tail: Tail) -> TrainingRows:
        """Sort out what was observed.

        Rows with a value that is not finite (failed evaluations, points outside the support) are
        dropped. Exact duplicates, such as a chain's rejections leave behind, become one row that
        counts as many times: the least-squares solution is the same, while the choice of the
        ridge must not take copies for independent confirmation. With ``tail="down-weighted"`` a
        row counts 1 where U exceeds the least value by no more than c = 2 dim + 10, which covers
        what is typical of a posterior (about dim / 2), and (c / excess)^4 beyond; so the steep
        start of a burn-in does not spoil the fit where the chains will be.

        Parameters
        ----------
        positions : ndarray of shape (n, dim)
            All positions observed.
        values : ndarray of shape (n,)
            U at them.
        tail
            Whether far-tail rows count less.

        Raises
        ------
        SurrogateFitError
            If there are too few points to fit anything to.
        """
        dim = positions.shape[1]
        finite = np.isfinite(values) & np.isfinite(positions).all(axis=1)
        positions, values, copies = _distinct(positions[finite], values[finite])
        if len(values) < least_points(dim):
            raise SurrogateFitError(
                f"a network in {dim} dimensions needs at least {least_points(dim)} distinct points "
                f"with a finite value, got {len(values)} ({len(finite)} rows were observed, "
                f"{np.count_nonzero(~finite)} of them not finite); explore for longer, or pass "
                "evaluations that are already paid for"
            )
        trust = _trust(values, dim) if tail == "down-weighted" else np.ones(len(values))
        return cls(positions=positions, values=values, trust=trust, copies=copies)


def least_points(dim: int) -> int:
    """Return how many points a fit needs: one more than fix a level and a slope."""
    return dim + 2


def _distinct(
    positions: FloatArray, values: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    table = np.ascontiguousarray(np.column_stack([positions, values]))
    # As one opaque item a row: sorting bytes is enough to find what is equal.
    items = table.view(np.dtype((np.void, table.itemsize * table.shape[1]))).ravel()
    _, first, counts = np.unique(items, return_index=True, return_counts=True)
    order = np.argsort(first)
    chosen = first[order]
    return positions[chosen], values[chosen], counts[order].astype(np.float64)


def _trust(values: FloatArray, dim: int) -> FloatArray:
    typical = 2.0 * dim + 10.0
    excess = values - values.min()
    return np.asarray((typical / np.maximum(excess, typical)) ** 4)
