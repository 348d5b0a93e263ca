"""The rows that a regressor is fitted to."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.contracts.learner import Evaluations
from surrokit.errors import SurrogateFitError
from surrokit.surrogate.distinct import Tail, are_finite, are_near, least_points
from surrokit.types import BoolArray, FloatArray, IntArray

_LEAST_WEIGHT = 1e-4
"""Trust below which a row is left out, where weights can be given."""

_LEAST_WITHOUT_WEIGHTS = 1.0 / 625.0
"""The same where all rows count alike: an excess of five times what is typical."""

_FAR = 1e3
"""Spreads from the middle beyond which a position cannot be of use."""


@attrs.frozen(kw_only=True, eq=False)
class TrainingRows:
    """Distinct evaluations in an order of their own, and how much each counts.

    Parameters
    ----------
    evaluations : Evaluations
        Rows with finite values, sorted, so that the order in which they came does not matter.
    trust : ndarray of shape (n,)
        Weight of a row for where it lies: 1, or less in the far tail.
    copies : ndarray of shape (n,)
        How often the row was seen.
    """

    evaluations: Evaluations
    trust: FloatArray
    copies: FloatArray

    def __len__(self) -> int:
        return len(self.trust)

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return int(self.evaluations.positions.shape[1])

    @property
    def weights(self) -> FloatArray:
        """Weight of each squared error, shape (n,)."""
        return self.trust * self.copies

    @classmethod
    def of(cls, observed: Evaluations, tail: Tail, *, weighted: bool) -> TrainingRows:
        """Sort out what was observed.

        Rows with a value that is not finite (failed evaluations, points outside the support) are
        left out, and exact duplicates, such as a chain's rejections leave behind, become one row.
        With ``tail="down-weighted"`` the trust in a row is 1 where U exceeds the least value by no
        more than c = 2 dim + 10, which covers what is typical of a posterior, and (c / excess)^4
        beyond. Rows of little trust are left out: below 1e-4, or 1/625 if the estimator takes no
        weights. So are positions a thousand times further out than most.

        Parameters
        ----------
        observed
            All that was observed.
        tail
            Whether far-tail rows count less.
        weighted
            Whether weights can be handed to the estimator.

        Raises
        ------
        SurrogateFitError
            If there are too few points to fit anything to.
        """
        dim = observed.positions.shape[1]
        finite = are_finite(observed)
        rows, copies = _distinct(observed.take(finite))
        n_distinct = len(rows)
        trust = np.ones(n_distinct)
        if tail == "down-weighted" and n_distinct:
            trust = _trust(rows.values, dim)
            kept = trust >= (_LEAST_WEIGHT if weighted else _LEAST_WITHOUT_WEIGHTS)
            kept[kept] = are_near(rows.positions[kept], _FAR)
            rows, trust, copies = rows.take(kept), trust[kept], copies[kept]
        if len(rows) < least_points(dim):
            raise SurrogateFitError(
                f"a regressor in {dim} dimensions needs at least {least_points(dim)} distinct "
                f"points with a finite value, got {len(rows)} ({len(observed)} rows were observed, "
                f"{np.count_nonzero(~finite)} of them not finite, and {n_distinct - len(rows)} "
                "distinct ones were too far out); explore for longer, or pass evaluations that are "
                "already paid for"
            )
        return cls(evaluations=rows, trust=trust, copies=copies)

    def take(self, rows: IntArray | BoolArray) -> TrainingRows:
        """Return the rows chosen by an index or a mask."""
        return TrainingRows(
            evaluations=self.evaluations.take(rows),
            trust=self.trust[rows],
            copies=self.copies[rows],
        )


def _distinct(rows: Evaluations) -> tuple[Evaluations, FloatArray]:
    if not len(rows):
        return rows, np.empty(0)
    # Of copies the one with a gradient comes first, and is the one that stays.
    unpaid = (
        np.zeros(len(rows), dtype=bool)
        if rows.gradients is None
        else np.isnan(rows.gradients).any(axis=1)
    )
    order = np.lexsort([unpaid, rows.values, *rows.positions.T])
    table = np.column_stack([rows.positions, rows.values])[order]
    first = np.r_[True, (table[1:] != table[:-1]).any(axis=1)]
    starts = np.flatnonzero(first)
    copies = np.diff(np.r_[starts, len(rows)]).astype(np.float64)
    return rows.take(np.asarray(order[starts], dtype=np.int64)), copies


def _trust(values: FloatArray, dim: int) -> FloatArray:
    typical = 2.0 * dim + 10.0
    # Halved, as the difference of two finite numbers may be infinite.
    excess = 0.5 * values - 0.5 * values.min()
    return np.asarray((0.5 * typical / np.maximum(excess, 0.5 * typical)) ** 4)
