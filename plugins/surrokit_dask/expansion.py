"""Expansions of the terms of all partitions."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.potentials import RowExpansion, of_order
from surrokit.types import FloatArray, IntArray
from surrokit_dask import tasks
from surrokit_dask.block import Family
from surrokit_dask.partitions import Partitions
from surrokit_dask.store import Store


@attrs.frozen(kw_only=True, eq=False)
class Rest:
    """Minus the log density of a normal prior; a flat one counts as 1.

    Parameters
    ----------
    mean, precision : ndarray of shape (dim,)
        Of each coefficient; a precision of 0 for none.
    """

    mean: FloatArray
    precision: FloatArray

    def value(self, positions: FloatArray) -> FloatArray:
        """Return it, shape (n,)."""
        proper = self.precision[self.precision > 0.0]
        constant = 0.5 * np.log(2.0 * np.pi / proper).sum()
        return np.asarray(0.5 * np.square(positions - self.mean) @ self.precision + constant)

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return its gradient, shape (n, dim)."""
        return np.asarray(self.precision * (positions - self.mean))


@attrs.define(kw_only=True, eq=False)
class DaskExpansion:
    """Expansions of all terms at one point: sums of all rows, and the rows that were fetched.

    Parameters
    ----------
    partitions
        The rows.
    family
        Of the terms.
    rest
        The prior, kept as it is.
    store
        Rows that were fetched.
    centre : ndarray of shape (dim,)
        Where the terms were expanded.
    order
        To which.
    level
        Sum of the terms there, in nats.
    gradient, hessian, third : ndarray
        Sums of their derivatives; third ones if the order is 3.
    """

    partitions: Partitions
    family: Family
    rest: Rest
    store: Store
    centre: FloatArray
    order: int
    level: float
    gradient: FloatArray
    hessian: FloatArray
    third: FloatArray | None
    _local: RowExpansion | None = attrs.field(default=None, init=False)
    _version: int = attrs.field(default=-1, init=False)

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim); nothing travels."""
        h = positions - self.centre
        slopes = self.gradient + 0.5 * h @ self.hessian
        if self.third is not None:
            dim = len(self.centre)
            matrices = (h @ self.third.reshape(dim, -1)).reshape(-1, dim, dim)
            slopes += np.einsum("nij,nj->ni", matrices, h) / 6.0
        total = np.einsum("ni,ni->n", slopes, h) + self.level
        return np.asarray(total + self.rest.value(positions))

    def remainders(self, positions: FloatArray, rows: IntArray, owners: IntArray) -> FloatArray:
        """Return D_i(q), shape (m,), for pairs of a row and a position."""
        places = self.store.places(rows)
        return self._expanded().remainders(positions, places, owners)

    def changes(
        self, before: FloatArray, after: FloatArray, rows: IntArray, owners: IntArray
    ) -> FloatArray:
        """Return D_i(q') - D_i(q), shape (m,), for pairs of a row and a move."""
        places = self.store.places(rows)
        return self._expanded().changes(before, after, places, owners)

    def increases(self, before: FloatArray, after: FloatArray) -> FloatArray:
        """Return sum_i max(0, D_i(q') - D_i(q)) over all rows, shape (n,): one pass."""
        found = self.partitions.map(tasks.increases, self.centre, self.order, before, after)
        return np.asarray(sum(found), dtype=np.float64)

    def _expanded(self) -> RowExpansion:
        """Return the expansions of the rows that are here."""
        if self._local is None or self._version != self.store.version:
            potential = self.family.potential(self.store.columns)
            self._local = potential.expand(self.centre, **of_order(self.order))
            self._version = self.store.version
        return self._local
