"""Potentials that are sums over rows of data, their expansions and bounds.

U(q) = sum over rows of U_i(q) + rest(q), where the rest (a prior, the logarithm of a Jacobian) is
cheap. The third derivatives of every term are bounded, so that a few random rows can stand for all
of them without error: :mod:`surrokit_corrections.subsampled` says how. Where fourth derivatives are
bounded too (capability ``rows-third-order``), an expansion to third order needs fewer rows. Some
terms have derivatives that are bounded in every ball of positions, but not everywhere (capability
``rows-in-balls``).
"""

from __future__ import annotations

from typing import Any, Protocol

import attrs
import numpy as np

from surrokit.capabilities import ROWS, ROWS_IN_BALLS
from surrokit.contracts.potential import Potential, Typed
from surrokit.errors import ConfigurationError
from surrokit.types import FloatArray, IntArray

USUAL_ORDER = 2
"""Default order of an expansion, which every summed potential offers."""


class RowExpansion(Protocol):
    """Expansions of all terms at one point, to second or third order; the rest stays exact.

    V(q) = sum_i [U_i + g_i . h + h . H_i h / 2] + rest(q), where h = q - centre, and the terms U_i,
    gradients g_i and Hessians H_i are those at the centre. Order 3 adds
    sum_i D^3 U_i[h, h, h] / 6. D_i is U_i minus its expansion, so that U = V + sum_i D_i.
    An expansion is frozen and can be pickled.
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

    @property
    def third(self) -> FloatArray | None:
        """Sum of third derivatives, without the rest, (dim, dim, dim); None if to second order."""

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim); it touches no row."""

    def remainders(self, positions: FloatArray, rows: IntArray, owners: IntArray) -> FloatArray:
        """Return D_i(q), shape (m,), for each pair of a row and a position.

        Parameters
        ----------
        positions : ndarray of shape (n, dim)
            Positions q.
        rows : ndarray of int, shape (m,)
            Row i of each pair; repeats are allowed.
        owners : ndarray of int, shape (m,)
            Number of the position in each pair.
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


@attrs.frozen(eq=False)
class WrappedExpansion:
    """Expansions that another one makes; what a derived class does not say otherwise is its.

    Parameters
    ----------
    inner
        The other one.
    """

    inner: RowExpansion

    @property
    def centre(self) -> FloatArray:
        """Where the terms were expanded, shape (dim,)."""
        return self.inner.centre

    @property
    def gradient(self) -> FloatArray:
        """Sum of the terms' gradients at the centre, shape (dim,)."""
        return self.inner.gradient

    @property
    def hessian(self) -> FloatArray:
        """Sum of the terms' Hessians at the centre, shape (dim, dim)."""
        return self.inner.hessian

    @property
    def third(self) -> FloatArray | None:
        """Sum of third derivatives at the centre, (dim, dim, dim); None if to second order."""
        return self.inner.third

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim)."""
        return self.inner.value(positions)

    def remainders(self, positions: FloatArray, rows: IntArray, owners: IntArray) -> FloatArray:
        """Return D_i(q), shape (m,), for pairs of a row and a position."""
        return self.inner.remainders(positions, rows, owners)

    def changes(
        self, before: FloatArray, after: FloatArray, rows: IntArray, owners: IntArray
    ) -> FloatArray:
        """Return D_i(q') - D_i(q), shape (m,), for pairs of a row and a move."""
        return self.inner.changes(before, after, rows, owners)

    def increases(self, before: FloatArray, after: FloatArray) -> FloatArray:
        """Return sum_i max(0, D_i(q') - D_i(q)) over all rows, shape (n,)."""
        return self.inner.increases(before, after)


@attrs.frozen(kw_only=True, eq=False)
class Ball:
    """The positions q with |L^-1 (q - centre)| <= radius, L the factor it is given with.

    Parameters
    ----------
    centre : ndarray of shape (dim,)
        Its middle.
    radius
        In whitened coordinates.
    """

    centre: FloatArray
    radius: float


def check_ball(ball: Ball | None, whose: str) -> Ball:
    """Return the ball that was given.

    Raises
    ------
    ConfigurationError
        If there is none.
    """
    if ball is None:
        raise ConfigurationError(
            f"{whose} have no bound at every position; give row_bounds a ball in which it is to "
            "hold"
        )
    return ball


class RowDraws(Protocol):
    """Draws of rows in proportion to their bounds psi."""

    @property
    def total(self) -> float:
        """Sum of all psi."""

    def draw(self, n: int, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
        """Return n rows, drawn independently with probabilities psi_i / total, and their psi.

        Rows that are drawn are likely to be asked for next.
        """


class SummedPotential(Potential, Protocol):
    """A potential with capability ``rows``: U(q) = sum over rows of U_i(q) + rest(q)."""

    @property
    def n_rows(self) -> int:
        """Number of terms."""

    def expand(self, centre: FloatArray, order: int = 2) -> RowExpansion:
        """Return the expansions of all terms at ``centre (dim,)``, in one pass over the rows.

        ``order`` is 2, or 3 with the capability ``rows-third-order``.
        """

    def row_bounds(
        self, factor: FloatArray, order: int = 2, ball: Ball | None = None
    ) -> FloatArray:
        """Return psi_i, shape (n_rows,), the bounds of the terms' next derivatives.

        The third derivative of U_i along any direction u, at any position, is at most
        6 psi_i |L^-1 u|^3 in absolute value, with L the ``factor (dim, dim)``. Hence
        |D_i(q)| <= psi_i |L^-1 (q - centre)|^3 for every centre.

        For a term f(x_i . q) with |f'''| <= B, psi_i is B |L^T x_i|^3 / 6. This takes one pass over
        the rows and evaluates none of them.

        With ``order=3`` the fourth derivative is at most 24 psi_i |L^-1 u|^4, and
        |D_i(q)| <= psi_i |L^-1 (q - centre)|^4.

        With capability ``rows-in-balls`` all this is said of positions in the ``ball`` alone, which
        must be given; without that capability none is.
        """

    def row_draws(self, factor: FloatArray, order: int = 2, ball: Ball | None = None) -> RowDraws:
        """Return draws by the bounds of :meth:`row_bounds`, with capability ``rows-drawn``."""

    def select(self, rows: IntArray) -> Potential:
        """Return the sum of some terms alone, without the rest.

        The sum holds a copy of these rows (a row given twice counts twice), and offers
        ``gradient``, ``gradient-alone`` and ``hessian``.

        Parameters
        ----------
        rows : ndarray of int, shape (m,)
            Numbers of the rows.
        """


def of_order(order: int, ball: Ball | None = None) -> dict[str, Any]:
    """Return keyword arguments for an order and a ball; none for 2 and None.

    So methods may do without them.
    """
    chosen: dict[str, Any] = {} if order == USUAL_ORDER else {"order": order}
    return chosen if ball is None else {**chosen, "ball": ball}


class Terms(Protocol):
    """The methods of a potential with capability ``rows`` that do not evaluate all rows.

    See :class:`~surrokit.contracts.rows.SummedPotential`.
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
    """The terms of a summed potential, of which a surrogate may copy some.

    None of this counts as an exact call: time spent on a copy is time spent on the surrogate, in
    proportion to its rows. A copy of all rows would be as slow as the target.

    Parameters
    ----------
    target
        A potential with capability ``rows``.
    local
        Whether its bounds hold in balls alone, as capability ``rows-in-balls`` says.
    """

    _target: Terms = attrs.field(alias="target")
    _local: bool = attrs.field(default=False, alias="local")

    @property
    def n_rows(self) -> int:
        """Rows that the target is a sum over."""
        return self._target.n_rows

    def select(self, rows: IntArray) -> Potential:
        """Return the sum of some terms alone, as a copy of their rows.

        Parameters
        ----------
        rows : ndarray of int, shape (m,)
            Numbers of the rows.
        """
        return self._target.select(rows)

    def row_bounds(self, factor: FloatArray, about: FloatArray) -> FloatArray:
        """Return how far each term can be from its expansion, shape (n_rows,), in nats.

        psi_i with |U_i - its expansion to second order at c| <= psi_i |L^-1 (q - c)|^3 for any c;
        where terms have no bound at every position, for positions with |L^-1 (q - about)| <= 1.

        Parameters
        ----------
        factor : ndarray of shape (dim, dim)
            L.
        about : ndarray of shape (dim,)
            Where bounds are to hold that do not hold everywhere.
        """
        ball = Ball(centre=about, radius=1.0) if self._local else None
        bounds = self._target.row_bounds(factor, **of_order(USUAL_ORDER, ball))
        return np.asarray(bounds, dtype=np.float64)


def terms_of(target: Potential) -> SummedTerms | None:
    """Return the terms of a target with capability ``rows``; None for any other."""
    if ROWS not in target.capabilities:
        return None
    return SummedTerms(with_rows(target), local=ROWS_IN_BALLS in target.capabilities)


with_rows = Typed[SummedPotential](ROWS)
"""A potential that is a sum over rows of data."""


def move_bounds(before: FloatArray, after: FloatArray, order: int = 2) -> FloatArray:
    """Return B(z, z') with |D(z') - D(z)| <= psi B for every move, shape (n,).

    D is a function minus its expansion at 0 to order k - 1, and psi bounds its k-th derivative: at
    every position and along every direction u, the absolute value is at most k! psi |u|^k (see
    :meth:`surrokit.contracts.rows.SummedPotential.row_bounds`).

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
    |grad D(z) . u| <= k psi |z|^(k-1) |u|. Hence |D(z') - D(z)| is at most psi times the integral
    of k |z|^(k-1) |dz| along any path from z to z'. Take a plane through 0 that holds both ends,
    and write its points as complex numbers. There k |z|^(k-1) |dz| = |d(z^k)|, so the integral is
    the length of the path's image under the k-th power. That power maps a sector of less than
    180 / k degrees one-to-one to a sector of less than 180, which holds the straight line between
    the images of the ends; the length of this line is B. For wider angles, go through 0. (Two
    familiar bounds are looser: r^k + r'^k from |D(z)| <= psi r^k, and k max(r, r')^(k-1) |z' - z|
    from the straight path.)

    Every path of the proof stays in the ball of radius max(r, r') about 0: the straight line
    between the images does, below its k-th power, and so do the rays through 0. So psi need bound
    the k-th derivative in that ball alone.
    """
    r = np.sqrt(np.einsum("ij,ij->i", before, before))
    s = np.sqrt(np.einsum("ij,ij->i", after, after))
    apart = r ** (order + 1) + s ** (order + 1)
    inner = np.einsum("ij,ij->i", before, after)
    near = 2.0 * inner > r * s if order == 2 else (inner > 0.0) & (2.0 * inner**2 > (r * s) ** 2)
    if not near.any():
        return np.asarray(apart)
    # |s^k e^(kia) - r^k|^2 = (s^k - r^k)^2 + 2 r^k s^k (1 - cos ka), and 1 - cos ka is 1 - cos a
    # times (1 + 2 cos a)^2 for k = 3, and 8 (1 + cos a) cos(a)^2 for k = 4; both summands are
    # computed from the difference of the ends, so that short moves keep their digits
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
