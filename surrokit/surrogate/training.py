"""Rows to learn from: chosen by iteration, distinct, and bordered."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import attrs
import numpy as np

from surrokit.errors import ConfigurationError
from surrokit.interfaces import ChainState, Evaluations, LearnFrom, StepInfo
from surrokit.potentials import Potential
from surrokit.types import BoolArray, FloatArray, IntArray


def near_least(rows: Evaluations) -> Evaluations:
    """Return the evaluations near the least of them: at most 10 (dim + 20) nats above it."""
    most = np.min(rows.values, initial=np.inf) + 10.0 * (rows.positions.shape[1] + 20.0)
    return rows.take(np.asarray(rows.values <= most))


def are_beyond(surrogate: Potential | None, positions: FloatArray) -> BoolArray:
    """Return which positions (n, dim) lie beyond what a surrogate has learnt from, shape (n,).

    Its method ``is_beyond`` says which these are; without one there are none.
    """
    is_beyond: Any = getattr(surrogate, "is_beyond", None)
    if is_beyond is None:
        return np.zeros(len(positions), dtype=bool)
    return np.asarray(is_beyond(positions))


def part_beyond(surrogate: Potential | None, positions: FloatArray) -> float:
    """Return the part of positions (n, dim) beyond what a surrogate has learnt from.

    It is asked of some 12,000 at most, which tell a part to half a percent: each may take the
    variance of a process.
    """
    if not len(positions):
        return 0.0
    return float(are_beyond(surrogate, positions[:: -(-len(positions) // 12_000)]).mean())


Tail: TypeAlias = Literal["down-weighted", "full"]
"""Weight of far-tail rows: less the farther they are, or that of any other row."""


@attrs.frozen(kw_only=True, eq=False)
class Groups:
    """Groups of equal rows, such as a chain's rejections leave behind.

    The order of groups does not depend on that of rows.
    """

    first: IntArray  # row of each group
    group: IntArray  # of each row
    copies: FloatArray  # rows in each group, or the sum of their weights

    @classmethod
    def of(cls, table: FloatArray, weights: FloatArray | None = None) -> Groups:
        """Group the rows of a table, shape (n, m), that are equal to the bit.

        Rows count by their ``weights (n,)``, once unless these are given.
        """
        table = np.ascontiguousarray(table)
        # A row is one opaque item, since sorting bytes is enough to find equal rows.
        items = table.view(np.dtype((np.void, table.itemsize * table.shape[1]))).ravel()
        _, first, group = np.unique(items, return_index=True, return_inverse=True)
        copies = np.bincount(group.ravel(), weights, len(first)).astype(np.float64)
        return cls(first=first, group=group.ravel(), copies=copies)

    def first_known(self, array: FloatArray) -> FloatArray:
        """Return each group's first finite row of an array; NaN for groups without any."""
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
    """Return which positions (n, dim) are no far outliers, shape (n,).

    In each coordinate those lie no more than ``farthest`` median distances from the median.
    """
    # halved, since the difference of two finite numbers may be infinite
    away = np.abs(0.5 * positions - 0.5 * np.median(positions, axis=0))
    scale = np.median(away, axis=0)
    for k in np.flatnonzero(scale == 0.0):  # a coordinate in which most points are equal
        moved = away[:, k] > 0.0
        scale[k] = np.median(away[moved, k]) if moved.any() else 1.0
    return np.asarray((away <= farthest * np.minimum(scale, 1e290)).all(axis=1))


def demand_numbers(evaluations: Evaluations) -> None:
    """Check that no value is NaN, and no position with a finite value.

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
    """Return the fewest points for a fit to values: one more than fix a level and a slope."""
    return dim + 2


def training_rows(
    learn_from: LearnFrom, evaluated: Evaluations, state: ChainState, info: StepInfo
) -> Evaluations:
    """Return the rows to learn from after an iteration: what it did to the chains is ``info``.

    Gradients are known where the iteration has evaluated them.
    """
    if learn_from == "all":
        return evaluated
    chosen: BoolArray = ~np.isnan(state.values)  # a correction may not have evaluated them
    if learn_from == "accepted":
        chosen &= info.accepted
    positions = state.positions[chosen]
    found, more = evaluated.find(positions), {}
    for name in ("gradients", "outputs", "jacobians"):
        array: FloatArray | None = getattr(evaluated, name)
        if array is not None:
            more[name] = rows = array[found]
            rows[found < 0] = np.nan
    return Evaluations(positions=positions, values=state.values[chosen], **more)
