"""The contract of potentials that are sums over rows of data, and of their expansions.

U(q) = sum over rows of U_i(q) + rest(q), where the rest (a prior, the logarithm of a Jacobian) is
cheap. The third derivatives of every term are bounded, so that a few rows, chosen at random, can
stand for all of them without any error: :mod:`surrokit_corrections.subsampled` says how. Where
fourth derivatives are bounded too (capability ``rows-third-order``), terms may be expanded to third
order, which leaves less to the rows.
"""

from __future__ import annotations

from typing import Protocol

from surrokit.protocols import Potential
from surrokit.types import FloatArray, IntArray

USUAL_ORDER = 2
"""To which terms are expanded unless asked otherwise; all summed potentials have it."""


class RowExpansion(Protocol):
    """Expansions of all rows' terms at one point, to second order or third, the rest as it is.

    V(q) = sum_i [U_i + g_i . h + h . H_i h / 2] + rest(q), with h = q - centre, and the terms,
    their gradients g_i and Hessians H_i taken at the centre; with order 3 the terms
    sum_i D^3 U_i[h, h, h] / 6 too. D_i = U_i less its expansion, so that U = V + sum_i D_i.
    Frozen; pickles.
    """

    @property
    def centre(self) -> FloatArray:
        """Where the terms were expanded, shape (dim,)."""
        ...

    @property
    def gradient(self) -> FloatArray:
        """Sum of g_i, without the rest, shape (dim,)."""
        ...

    @property
    def hessian(self) -> FloatArray:
        """Sum of H_i, without the rest, shape (dim, dim)."""
        ...

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim); it touches no row."""
        ...

    def remainders(self, positions: FloatArray, rows: IntArray, owners: IntArray) -> FloatArray:
        """Return D_i(q), shape (m,), for each pair of a row and a position.

        Parameters
        ----------
        positions : ndarray of shape (n, dim)
            Where.
        rows : ndarray of int, shape (m,)
            i of each pair; repeats are allowed.
        owners : ndarray of int, shape (m,)
            Which of the positions goes with it.
        """
        ...

    def changes(
        self, before: FloatArray, after: FloatArray, rows: IntArray, owners: IntArray
    ) -> FloatArray:
        """Return D_i(q') - D_i(q), shape (m,), for each pair of a row and a move.

        Parameters
        ----------
        before, after : ndarray of shape (n, dim)
            q and q' of each move.
        rows, owners : ndarray of int, shape (m,)
            As in :meth:`remainders`.
        """
        ...

    def increases(self, before: FloatArray, after: FloatArray) -> FloatArray:
        """Return sum_i max(0, D_i(q') - D_i(q)) over all rows, for moves (n, dim): shape (n,)."""
        ...


class SummedPotential(Potential, Protocol):
    """A potential with capability ``rows``: U(q) = sum over rows of U_i(q) + rest(q)."""

    @property
    def n_rows(self) -> int:
        """Number of terms."""
        ...

    def expanded(self, centre: FloatArray, order: int = 2) -> RowExpansion:
        """Return all terms' expansions at ``centre (dim,)``, in one pass over the rows.

        ``order`` is 2, or 3 with the capability ``rows-third-order``; the call may leave it out.
        """
        ...

    def row_bounds(self, factor: FloatArray, order: int = 2) -> FloatArray:
        """Return psi_i, shape (n_rows,), the bounds of the terms' next derivatives.

        The third derivative of U_i along any direction u, at any position, is at most
        6 psi_i |L^-1 u|^3 in absolute value, with L the ``factor (dim, dim)``. Hence
        |D_i(q)| <= psi_i |L^-1 (q - centre)|^3, wherever the terms were expanded.

        For a term f(x_i . q) with |f'''| <= B it is B |L^T x_i|^3 / 6. One pass over the rows,
        none of which is evaluated.

        With ``order=3`` all this holds of the fourth derivative, at most 24 psi_i |L^-1 u|^4, and
        |D_i(q)| <= psi_i |L^-1 (q - centre)|^4.
        """
        ...

    def selected(self, rows: IntArray) -> Potential:
        """Return the sum of some rows' terms alone, without the rest.

        It holds a copy of these rows (a row given twice counts twice), and offers ``gradient``,
        ``gradient-alone`` and ``hessian``.

        Parameters
        ----------
        rows : ndarray of int, shape (m,)
            Which.
        """
        ...


def of_order(order: int) -> dict[str, int]:
    """Return how an order is asked for: not at all where it is the usual one."""
    return {} if order == USUAL_ORDER else {"order": order}
