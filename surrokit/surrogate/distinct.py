"""Observed rows that are of use to a fit, those that repeat others put together."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs
import numpy as np

from surrokit.contracts.learner import Evaluations
from surrokit.errors import ConfigurationError
from surrokit.types import BoolArray, FloatArray, IntArray

Tail: TypeAlias = Literal["down-weighted", "full"]
"""What far-tail rows count: less and less, or as much as any other."""


@attrs.frozen(kw_only=True, eq=False)
class Groups:
    """Rows that are equal, such as a chain's rejections leave behind, as one group each.

    Parameters
    ----------
    first : ndarray of int, shape (n_groups,)
        The first row of each group; their order does not depend on when the rows came.
    group : ndarray of int, shape (n,)
        Of each row.
    copies : ndarray of shape (n_groups,)
        Rows in each.
    """

    first: IntArray
    group: IntArray
    copies: FloatArray

    @classmethod
    def of(cls, table: FloatArray) -> Groups:
        """Group the rows of a table, shape (n, m), that are equal to the bit."""
        table = np.ascontiguousarray(table)
        # As one opaque item a row: sorting bytes is enough to find what is equal.
        items = table.view(np.dtype((np.void, table.itemsize * table.shape[1]))).ravel()
        _, first, group, counts = np.unique(
            items, return_index=True, return_inverse=True, return_counts=True
        )
        return cls(first=first, group=group.ravel(), copies=counts.astype(np.float64))

    def first_known(self, array: FloatArray) -> FloatArray:
        """Return of each group the first row of an array without NaN; NaN where all have some."""
        finite = np.isfinite(array).all(axis=tuple(range(1, array.ndim)))
        rows = np.flatnonzero(finite)[::-1]
        chosen = np.full((len(self.first), *array.shape[1:]), np.nan)
        chosen[self.group[rows]] = array[rows]
        return chosen


def are_finite(observed: Evaluations) -> BoolArray:
    """Return which rows have a finite value at a finite position, shape (n,).

    The others are failed evaluations, and points outside the support.
    """
    return np.asarray(np.isfinite(observed.values) & np.isfinite(observed.positions).all(axis=1))


def are_near(positions: FloatArray, farthest: float) -> BoolArray:
    """Return which positions did not run away, shape (n,).

    Parameters
    ----------
    positions : ndarray of shape (n, dim)
        All of them.
    farthest
        Distance from the median in some coordinate, in median distances, of those that are near.
    """
    # Halved, as the difference of two finite numbers may be infinite.
    away = np.abs(0.5 * positions - 0.5 * np.median(positions, axis=0))
    scale = np.median(away, axis=0)
    for k in np.flatnonzero(scale == 0.0):  # a coordinate in which most points are equal
        moved = away[:, k] > 0.0
        scale[k] = np.median(away[moved, k]) if moved.any() else 1.0
    return np.asarray((away <= farthest * np.minimum(scale, 1e290)).all(axis=1))


def demand_numbers(evaluations: Evaluations) -> None:
    """Raise if a value is NaN, or a position that has a finite value.

    Raises
    ------
    ConfigurationError
        If one is; the message names the first such row.
    """
    valued = np.isfinite(evaluations.values)
    for name, wrong in (
        ("positions", valued & np.isnan(evaluations.positions).any(axis=1)),
        ("values", np.isnan(evaluations.values)),
    ):
        if wrong.any():
            raise ConfigurationError(
                f"{name} of training rows must be numbers, got NaN in row "
                f"{int(np.argmax(wrong))} of {len(evaluations)}; drop such rows, or give failed "
                "evaluations the value inf"
            )


def least_points(dim: int) -> int:
    """Return how many points a fit to values needs: one more than fix a level and a slope."""
    return dim + 2
