"""Potentials that are sums over rows of data, their expansions and bounds.

U(q) = sum over rows of U_i(q) + rest(q), where the rest (a prior, the logarithm of a Jacobian) is
cheap. The third derivatives of every term are bounded, so that a few rows, chosen at random, can
stand for all of them without any error: :mod:`surrokit_corrections.subsampled` says how. Where
fourth derivatives are bounded too (capability ``rows-third-order``), terms may be expanded to third
order, which leaves less to the rows.
"""

from __future__ import annotations

from typing import Protocol

import attrs
import numpy as np

from surrokit.capabilities import ROWS
from surrokit.contracts.potential import Potential, Typed
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

    @property
    def gradient(self) -> FloatArray:
        """Sum of g_i, without the rest, shape (dim,)."""

    @property
    def hessian(self) -> FloatArray:
        """Sum of H_i, without the rest, shape (dim, dim)."""

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim); it touches no row."""

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

    def increases(self, before: FloatArray, after: FloatArray) -> FloatArray:
        """Return sum_i max(0, D_i(q') - D_i(q)) over all rows, for moves (n, dim): shape (n,)."""


class SummedPotential(Potential, Protocol):
    """A potential with capability ``rows``: U(q) = sum over rows of U_i(q) + rest(q)."""

    @property
    def n_rows(self) -> int:
        """Number of terms."""

    def expand(self, centre: FloatArray, order: int = 2) -> RowExpansion:
        """Return all terms' expansions at ``centre (dim,)``, in one pass over the rows.

        ``order`` is 2, or 3 with the capability ``rows-third-order``; the call may leave it out.
        """

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

    def select(self, rows: IntArray) -> Potential:
        """Return the sum of some rows' terms alone, without the rest.

        It holds a copy of these rows (a row given twice counts twice), and offers ``gradient``,
        ``gradient-alone`` and ``hessian``.

        Parameters
        ----------
        rows : ndarray of int, shape (m,)
            Which.
        """


def of_order(order: int) -> dict[str, int]:
    """Return how an order is asked for: not at all where it is the usual one."""
    return {} if order == USUAL_ORDER else {"order": order}


class Terms(Protocol):
    """What of a potential with capability ``rows`` says nothing about the sum over all rows.

    The methods are those of :class:`~surrokit.contracts.rows.SummedPotential`.
    """

    @property
    def n_rows(self) -> int:
        """Number of terms."""

    def select(self, rows: IntArray) -> Potential:
        """Return the sum of the terms of some rows, shape (m,), alone."""

    def row_bounds(self, factor: FloatArray) -> FloatArray:
        """Return psi_i, shape (n_rows,), for a factor L of shape (dim, dim)."""


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

    def select(self, rows: IntArray) -> Potential:
        """Return the sum of the terms of some rows alone, which holds a copy of them.

        Parameters
        ----------
        rows : ndarray of int, shape (m,)
            Which.
        """
        return self._target.select(rows)

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


with_rows = Typed[SummedPotential](ROWS)
"""A potential that is a sum over rows of data."""


def move_bounds(before: FloatArray, after: FloatArray, order: int = 2) -> FloatArray:
    """Return B(z, z') with |D(z') - D(z)| <= psi B for every move, shape (n,).

    D is a function less its expansion at 0 to an order of k - 1, and psi bounds its k-th
    derivative: along every direction u, everywhere, that is at most k! psi |u|^k in absolute value
    (see :meth:`surrokit.contracts.rows.SummedPotential.row_bounds`).

    Parameters
    ----------
    before, after : ndarray of shape (n, dim)
        z and z': the ends of the moves in whitened coordinates, L^-1 (q - centre).
    order
        k - 1, which is 2 or 3.

    Notes
    -----
    With r = |z|, r' = |z'| and a the angle between them,

        B = |r'^k exp(k i a) - r^k| for a < 180 / k degrees, and r^k + r'^k otherwise.

    Proof. The k-th derivative is a symmetric multilinear form, whose norm is that on the diagonal
    (Banach). D and its derivatives below the k-th vanish at 0; integrated from there,
    |grad D(z) . u| <= k psi |z|^(k-1) |u|. Along any path from z to z' then, |D(z') - D(z)| <= psi
    times the integral of k |z|^(k-1) |dz|. In a plane through 0 that holds both ends, written as
    complex numbers, k |z|^(k-1) |dz| = |d(z^k)|: the length of the image of the path under the k-th
    power. Sectors of less than 180 / k degrees are mapped one-to-one to sectors of less than 180,
    which hold the straight line between the images of the ends; its length is B. For wider angles
    go through 0. (Chains of inequalities that everybody knows are both looser: r^k + r'^k from
    |D(z)| <= psi r^k, and k max(r, r')^(k-1) |z' - z| from the straight path.)
    """
    r = np.sqrt(np.einsum("ij,ij->i", before, before))
    s = np.sqrt(np.einsum("ij,ij->i", after, after))
    apart = r ** (order + 1) + s ** (order + 1)
    inner = np.einsum("ij,ij->i", before, after)
    near = 2.0 * inner > r * s if order == 2 else (inner > 0.0) & (2.0 * inner**2 > (r * s) ** 2)
    if not near.any():
        return np.asarray(apart)
    # |s^k e^(kia) - r^k|^2 = (s^k - r^k)^2 + 2 r^k s^k (1 - cos ka), and 1 - cos ka is 1 - cos a
    # times (1 + 2 cos a)^2 for k = 3, and 8 (1 + cos a) cos(a)^2 for k = 4; both from the
    # difference of the ends, so that short moves keep their digits
    step = after - before
    longer = np.einsum("ij,ij->i", step, before + after)
    with np.errstate(divide="ignore", invalid="ignore"):
        longer /= r + s  # s - r
        sideways = np.maximum(np.einsum("ij,ij->i", step, step) - longer**2, 0.0)
        if order == 2:
            outward = longer * (r * r + r * s + s * s)
            turning = sideways * (r * s + 2.0 * inner) ** 2
        else:
            outward = longer * (r + s) * (r * r + s * s)
            turning = 8.0 * sideways * (r * s + inner) * inner**2
        close = np.sqrt(outward**2 + turning)
    return np.asarray(np.where(near, np.minimum(close, apart), apart))
