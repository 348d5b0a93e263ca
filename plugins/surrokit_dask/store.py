"""Rows that were fetched from partitions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from surrokit.types import IntArray
from surrokit_dask.block import Columns

Fetch = Callable[[IntArray], Columns]
"""Of row numbers, all different: what these rows hold, in that order."""

MOST_ROWS = 200_000
"""Rows that are kept at most; when there are more, it begins anew."""


class Store:
    """Rows by their numbers.

    Parameters
    ----------
    fetch
        Gets rows that are not here.

    Attributes
    ----------
    version
        Another number whenever rows are added.
    """

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._numbers = np.zeros(0, dtype=np.int64)  # sorted
        self._columns: Columns | None = None
        self.version = 0

    @property
    def columns(self) -> Columns:
        """All rows that are here."""
        assert self._columns is not None
        return self._columns

    def add(self, numbers: IntArray, columns: Columns) -> None:
        """Keep rows; those that are here already are not kept twice.

        Parameters
        ----------
        numbers : ndarray of int, shape (m,)
            Of the rows.
        columns
            What they hold.
        """
        if self._columns is None or len(self._numbers) + len(numbers) > MOST_ROWS:
            joined, every = columns, numbers
        else:
            joined = Columns.joined([self._columns, columns])
            every = np.concatenate([self._numbers, numbers])
        self._numbers, first = np.unique(every, return_index=True)
        self._columns = joined.select(first)
        self.version += 1

    def places(self, rows: IntArray) -> IntArray:
        """Return where rows are in :attr:`columns`, shape (m,); fetch those that are not here."""
        places = self._find(rows)
        if len(self._numbers):
            known = self._numbers[places] == rows
            if known.all():
                return places
            wanted = np.unique(rows[~known])
        else:
            wanted = np.unique(rows)
        if len(self._numbers) + len(wanted) > MOST_ROWS:
            wanted = np.unique(rows)  # it begins anew
        self.add(wanted, self._fetch(wanted))
        return self._find(rows)

    def _find(self, rows: IntArray) -> IntArray:
        found = np.searchsorted(self._numbers, rows)
        return np.minimum(found, max(len(self._numbers) - 1, 0))
