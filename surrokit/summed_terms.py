"""What a surrogate may copy of a summed potential."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs
import numpy as np

from surrokit.capabilities import ROWS, with_rows
from surrokit.types import FloatArray, IntArray

if TYPE_CHECKING:
    from surrokit.protocols import Potential


class Terms(Protocol):
    """What of a potential with capability ``rows`` says nothing about the sum over all rows.

    The methods are those of :class:`~surrokit.summed_potential.SummedPotential`.
    """

    @property
    def n_rows(self) -> int:
        """Number of terms."""
        ...

    def selected(self, rows: IntArray) -> Potential:
        """Return the sum of the terms of some rows, shape (m,), alone."""
        ...

    def row_bounds(self, factor: FloatArray) -> FloatArray:
        """Return psi_i, shape (n_rows,), for a factor L of shape (dim, dim)."""
        ...


@attrs.frozen(eq=False, repr=False)
class SummedTerms:
    """The terms of a potential that is a sum over rows: a few of them may be copied.

    Nothing here is counted among the exact calls. A copy of a few rows costs what a few rows cost,
    time spent on it is time spent on the surrogate, and the sum over all rows stays with the
    target; whoever copies all rows has the target over again, and pays as much in time.

    Parameters
    ----------
    target
        A potential with capability ``rows``.
    """

    _target: Terms = attrs.field(alias="target")

    @property
    def n_rows(self) -> int:
        """Rows that the target is a sum over."""
        return self._target.n_rows

    def selected(self, rows: IntArray) -> Potential:
        """Return the sum of the terms of some rows alone, which holds a copy of them.

        Parameters
        ----------
        rows : ndarray of int, shape (m,)
            Which.
        """
        return self._target.selected(rows)

    def row_bounds(self, factor: FloatArray) -> FloatArray:
        """Return how far each term can be from its expansion, shape (n_rows,), in nats.

        psi_i with |U_i - its expansion to second order at c| <= psi_i |L^-1 (q - c)|^3 for any c.

        Parameters
        ----------
        factor : ndarray of shape (dim, dim)
            L.
        """
        return np.asarray(self._target.row_bounds(factor), dtype=np.float64)


def terms_of(target: Potential) -> SummedTerms | None:
    """Return the terms of a target with capability ``rows``; None of any other."""
    return SummedTerms(with_rows(target)) if ROWS in target.capabilities else None
