"""Second-order expansions of a user's terms."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.types import FloatArray, IntArray
from surrokit_problems.rows.normal_prior import NormalPrior
from surrokit_problems.rows.own.row_data import RowData, Rows
from surrokit_problems.rows.own.row_functions import RowFunctions

_BLOCK = 8192  # rows whose Hessians are held at once


@attrs.frozen(kw_only=True, eq=False)
class OwnExpansion:
    """Expansions of all terms at one point, with a normal prior kept as it is.

    Nothing is kept of single rows: the derivatives of those that are drawn are computed again.
    Remainders are differences of values, with the rounding errors of these.

    Parameters
    ----------
    functions
        Terms and derivatives.
    data
        A row for each term.
    prior
        Of the position.
    centre, gradient : ndarray of shape (dim,)
        Where the terms were expanded, and the sum of their gradients there.
    hessian : ndarray of shape (dim, dim)
        The sum of their Hessians there.
    level
        U at the centre, prior included, in nats.
    """

    functions: RowFunctions
    data: RowData
    prior: NormalPrior
    centre: FloatArray
    gradient: FloatArray
    hessian: FloatArray
    level: float

    @property
    def third(self) -> FloatArray | None:
        """None: terms are expanded to second order."""
        return None

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim)."""
        h = positions - self.centre
        slope = self.gradient + self.prior.gradient(self.centre)
        bend = 0.5 * (self.hessian + np.diag(self.prior.precision))
        return np.asarray(np.einsum("ni,ni->n", h @ bend + slope, h) + self.level)

    def remainders(self, positions: FloatArray, rows: IntArray, owners: IntArray) -> FloatArray:
        """Return D_i(q), shape (m,), for pairs of a row and a position."""
        found = np.empty(len(rows))
        for start in range(0, len(rows), _BLOCK):
            part = slice(start, start + _BLOCK)
            found[part] = self._remainders(positions, rows[part], owners[part])
        return found

    def changes(
        self, before: FloatArray, after: FloatArray, rows: IntArray, owners: IntArray
    ) -> FloatArray:
        """Return D_i(q') - D_i(q), shape (m,), for pairs of a row and a move."""
        there = self.remainders(after, rows, owners)
        return np.asarray(there - self.remainders(before, rows, owners))

    def increases(self, before: FloatArray, after: FloatArray) -> FloatArray:
        """Return sum_i max(0, D_i(q') - D_i(q)) over all rows, shape (n,)."""
        total = np.zeros(len(before))
        for part, _ in self.data.blocks(_BLOCK):
            rows = np.arange(part.start, part.stop)
            owners = np.zeros(len(rows), dtype=np.int64)
            for k in range(len(before)):
                moves = before[k : k + 1], after[k : k + 1]
                total[k] += np.maximum(self.changes(*moves, rows, owners), 0.0).sum()
        return total

    def _remainders(self, positions: FloatArray, rows: IntArray, owners: IntArray) -> FloatArray:
        if not len(rows):
            return np.zeros(0)
        chosen, n = self.data.take(rows), len(rows)
        h = (positions - self.centre)[owners]
        slopes = self.functions.gradients_at(self.centre, chosen, n)
        bends = self.functions.hessians_at(self.centre, chosen, n)
        expansion = self.functions.values_at(self.centre, chosen, n)
        expansion += np.einsum("mi,mi->m", slopes + 0.5 * np.einsum("mij,mj->mi", bends, h), h)
        return self._values(positions, rows, owners) - expansion

    def _values(self, positions: FloatArray, rows: IntArray, owners: IntArray) -> FloatArray:
        """Return terms for pairs of a row and a position: one call for each position."""
        found = np.empty(len(rows))
        for owner in np.unique(owners):
            ours = np.flatnonzero(owners == owner)
            some: Rows = self.data.take(rows[ours])
            found[ours] = self.functions.values_at(positions[owner], some, len(ours))
        return found
