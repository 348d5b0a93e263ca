"""Thinned rows: events by bounds of their rates, and those of them that are kept."""

from __future__ import annotations

import math
from functools import cached_property

import attrs
import numpy as np
from scipy.linalg import solve_triangular

from surrokit.capabilities import ROWS_DRAWN, ROWS_IN_BALLS
from surrokit.errors import NumericalError, TargetError
from surrokit.potentials import (
    USUAL_ORDER,
    Ball,
    RowDraws,
    RowExpansion,
    SummedPotential,
    move_bounds,
    of_order,
)
from surrokit.types import BoolArray, FloatArray, IntArray

_BEYOND = 3.0
"""The radius of the ball in which bounds hold, less the square root of the dimension: draws of a
normal posterior lie in it but for one in some ten thousand."""


@attrs.frozen(kw_only=True, eq=False)
class BoundedRows:
    """Draws of rows in proportion to bounds psi_i (n_rows,) that are all here."""

    bounds: FloatArray

    @property
    def total(self) -> float:
        """Sum of all psi."""
        return float(self._sums[-1])

    @cached_property
    def _sums(self) -> FloatArray:
        return np.cumsum(self.bounds)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
        """Return n rows, each drawn with probability psi_i / total, and their psi."""
        rows = np.searchsorted(self._sums, self.total * rng.random(n), side="right")
        rows = np.minimum(rows, np.searchsorted(self._sums, self.total))  # by rounding
        return rows, self.bounds[rows]


@attrs.frozen(kw_only=True, eq=False)
class Thinning:
    """The second factor of the subsampled correction, prod_i min(1, exp(-(D_i(q') - D_i(q)))).

    It is the probability that of independent Poisson events with rates max(0, D_i(q') - D_i(q)),
    one kind for each row, none happens. Instead of all these rates one draws the events of larger
    rates psi_i B(q, q'), few in number, and keeps each with the ratio of the two.

    Parameters
    ----------
    expansion
        Of all rows' terms, D_i = U_i less its expansion.
    whitening : ndarray of shape (dim, dim)
        C, with z = (q - centre) C the coordinates in which bounds are taken.
    draws
        Of rows in proportion to psi.
    radius
        Of the ball about the centre in which psi holds, in these coordinates; infinite for
        everywhere. Moves that leave it are decided by all rows.
    """

    expansion: RowExpansion
    n_rows: int
    whitening: FloatArray
    draws: RowDraws
    radius: float
    order: int = USUAL_ORDER

    @classmethod
    def at(
        cls,
        centre: FloatArray,
        hessian: FloatArray,
        potential: SummedPotential,
        order: int = USUAL_ORDER,
    ) -> Thinning:
        """Return what is needed to expand terms at a centre (dim,), in two passes.

        Bounds hold with any matrix for the Hessian there; the better it is, the fewer rows are
        touched.

        Raises
        ------
        NumericalError
            If bounds have no finite sum.
        """
        whitening = _cholesky(hessian)
        # covariance H^-1 = L L^T with L = C^-T, so that L^-1 h = C^T h. L comes from the computed
        # C, by which moves are measured, too: then bounds hold whatever rounding did to H
        factor = solve_triangular(whitening, np.eye(len(whitening)), lower=True).T
        ball = None
        if ROWS_IN_BALLS in potential.capabilities:
            ball = Ball(centre=centre, radius=math.sqrt(len(centre)) + _BEYOND)
        asked = of_order(order, ball)
        draws: RowDraws
        if ROWS_DRAWN in potential.capabilities:
            draws = potential.row_draws(factor, **asked)
        else:
            draws = BoundedRows(bounds=potential.row_bounds(factor, **asked))
        if not draws.total < math.inf:
            raise NumericalError(
                f"bounds of rows must have a finite sum, got {draws.total}; is a bound of a row "
                "infinite or NaN?"
            )
        return cls(
            expansion=potential.expand(centre, **of_order(order)),
            n_rows=potential.n_rows,
            whitening=whitening,
            draws=draws,
            radius=math.inf if ball is None else ball.radius,
            order=order,
        )

    @property
    def expected_rows(self) -> float:
        """Rows that a move between independent draws of N(centre, H^-1) touches on average.

        E[r^k + r'^k] sum psi, k = order + 1, with r and r' of a chi distribution with dim degrees
        of freedom, whose k-th moment is 2^(k/2) Gamma((dim + k) / 2) / Gamma(dim / 2).
        """
        dim, half_power = len(self.whitening), 0.5 * (self.order + 1)
        log_ratio = math.lgamma(0.5 * dim + half_power) - math.lgamma(0.5 * dim)
        return float(2.0 * 2.0**half_power * math.exp(log_ratio) * self.draws.total)

    def survival(self, ends: FloatArray, wanted: BoolArray, rng: np.random.Generator) -> FloatArray:
        """Return unbiased estimates in [0, 1] of the product for each move, shape (n,).

        Given the rows drawn, it is the probability that no event is kept; where more rows than
        there are would be drawn, it is the product itself. 0 or NaN where the product is not
        known: a position far out, or a row that cannot be evaluated.

        Parameters
        ----------
        ends : ndarray of shape (2, n, dim)
            q and q'.
        wanted : ndarray of bool, shape (n,)
            Moves that are still to be decided; the others touch no row and get 1.

        Raises
        ------
        TargetError
            If a row changes by more than its bound allows.
        """
        with np.errstate(all="ignore"):
            z = (ends - self.expansion.centre) @ self.whitening
            spread = move_bounds(z[0], z[1], self.order)
            # both ends have to be in the ball: the way back is decided alike
            inside = np.square(z).sum(axis=2).max(axis=0) <= self.radius**2
            rates = np.where(wanted & inside, spread * self.draws.total, 0.0)
            few = (inside & (rates <= self.n_rows)) | ~wanted
            events = rng.poisson(np.where(few, rates, 0.0))
            survival = self._thin(ends, spread, events, rng)
            survival[~few] = 0.0
            whole = np.flatnonzero(~few & np.isfinite(spread))
            if whole.size:
                increases = self.expansion.increases(ends[0, whole], ends[1, whole])
                survival[whole] = np.exp(-increases)
            return survival

    def _thin(
        self, ends: FloatArray, spread: FloatArray, events: IntArray, rng: np.random.Generator
    ) -> FloatArray:
        """Return for each move the probability that none of its events is kept."""
        owners = np.repeat(np.arange(len(events)), events)
        if not owners.size:
            return np.ones(len(events))
        rows, limits = self.draws.draw(len(owners), rng)
        limits = limits * spread[owners]
        log_survival, at_once = np.zeros(len(events)), 100_000  # which bounds the temporaries
        for start in range(0, len(owners), at_once):
            part = slice(start, start + at_once)
            log_survival += self._log_kept(ends, rows[part], owners[part], limits[part])
        return np.asarray(np.exp(log_survival))

    def _log_kept(
        self, ends: FloatArray, rows: IntArray, owners: IntArray, limits: FloatArray
    ) -> FloatArray:
        """Return the log probability, shape (n,), that none of some drawn events is kept."""
        changes = self.expansion.changes(ends[0], ends[1], rows, owners)
        kept = changes / limits
        np.maximum(kept, 0.0, out=kept)
        if kept.max() > 1.0:
            _check_bounds(changes, limits, rows)
            np.minimum(kept, 1.0, out=kept)
        np.negative(kept, out=kept)
        log_left = np.bincount(owners, np.log1p(kept, out=kept), minlength=ends.shape[1])
        return np.asarray(log_left, dtype=np.float64)


def _cholesky(hessian: FloatArray) -> FloatArray:
    """Return a triangular C with C C^T the Hessian, or a matrix near it that is definite."""
    try:
        return np.asarray(np.linalg.cholesky(hessian), dtype=np.float64)
    except np.linalg.LinAlgError:
        curvatures, directions = np.linalg.eigh(hessian)
        size = np.abs(curvatures)
        definite = (directions * np.maximum(size, 1e-8 * size.max())) @ directions.T
        return np.asarray(np.linalg.cholesky(definite), dtype=np.float64)


def _check_bounds(changes: FloatArray, limits: FloatArray, rows: IntArray) -> None:
    # room for rounding; in absolute terms for moves so short that changes lose their digits
    beyond = changes > limits * (1.0 + 1e-6) + 1e-9
    if beyond.any():
        first = int(np.flatnonzero(beyond)[0])
        raise TargetError(
            f"row {rows[first]} changes by {changes[first]:.6g} nats beyond its expansion, more "
            f"than its bound of {limits[first]:.6g}, so that draws would be biased. Give "
            "row_bounds a larger bound of the next derivative"
        )
