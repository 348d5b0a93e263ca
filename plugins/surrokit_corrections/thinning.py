"""A product of one acceptance probability for each row of data, decided by a few rows."""

from __future__ import annotations

import math

import attrs
import numpy as np
from scipy.linalg import solve_triangular

from surrokit.contracts.rows import (
    USUAL_ORDER,
    RowExpansion,
    SummedPotential,
    move_bounds,
    of_order,
)
from surrokit.errors import TargetError
from surrokit.types import BoolArray, FloatArray, IntArray
from surrokit_corrections.envelope import Envelope, envelopes, holds_most

_PAIRS_AT_ONCE = 100_000
"""Rows that are gathered in one batch, which bounds the temporaries."""

_ROOM = 1e-6  # by which a change may exceed its bound, relatively, for rounding
_LEAST = 1e-9  # nats; the same in absolute terms, for moves so short that changes lose their digits
_FLATTEST = 1e-8  # of the largest curvature: the least that a direction is given


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
    n_rows
        How many rows there are.
    whitening : ndarray of shape (dim, dim)
        C, with z = (q - centre) C the coordinates in which bounds are taken.
    envelopes
        psi of all rows, by growing radius in these coordinates. Moves that leave the last are
        decided by all rows.
    order
        Of the expansions.
    """

    expansion: RowExpansion
    n_rows: int
    whitening: FloatArray
    envelopes: tuple[Envelope, ...]
    order: int = USUAL_ORDER

    @classmethod
    def at(
        cls,
        centre: FloatArray,
        hessian: FloatArray,
        potential: SummedPotential,
        order: int = USUAL_ORDER,
    ) -> Thinning:
        """Return what is needed around a centre.

        Parameters
        ----------
        centre : ndarray of shape (dim,)
            Where terms are expanded.
        hessian : ndarray of shape (dim, dim)
            Second derivatives of the potential there. Bounds hold with any matrix; the better it
            is, the fewer rows are touched.
        potential
            The sum over rows; it is passed over twice, or five times where its terms have no bound
            at every position.
        order
            To which terms are expanded.
        """
        whitening = _cholesky(hessian)
        # covariance H^-1 = L L^T with L = C^-T, so that L^-1 h = C^T h. L comes from the computed
        # C, by which moves are measured, too: then bounds hold whatever rounding did to H
        factor = solve_triangular(whitening, np.eye(len(whitening)), lower=True).T
        shells = envelopes(potential, factor, centre, order)
        return cls(
            expansion=potential.expand(centre, **of_order(order)),
            n_rows=potential.n_rows,
            whitening=whitening,
            envelopes=shells,
            order=order,
        )

    @property
    def expected_rows(self) -> float:
        """Rows that a move between independent draws of N(centre, H^-1) touches on average.

        E[r^k + r'^k] sum psi, k = order + 1, with r and r' of a chi distribution with dim degrees
        of freedom, whose k-th moment is 2^(k/2) Gamma((dim + k) / 2) / Gamma(dim / 2). Where psi
        depends on how far moves go, it is that of a ball that nearly all draws lie in.
        """
        half, half_power = 0.5 * len(self.whitening), 0.5 * (self.order + 1)
        moment = 2.0**half_power * math.exp(math.lgamma(half + half_power) - math.lgamma(half))
        usual = next(
            each for each in self.envelopes if each.radius >= holds_most(len(self.whitening))
        )
        return float(2.0 * moment * usual.total)

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
        rng
            Draws the events.

        Raises
        ------
        TargetError
            If a row changes by more than its bound allows.
        """
        with np.errstate(all="ignore"):
            z = (ends - self.expansion.centre) @ self.whitening
            spread = move_bounds(z[0], z[1], self.order)
            shells = self._shells(z)
            totals = self._totals(shells)
            rates = np.where(wanted & (totals > 0.0), spread * totals, 0.0)
            # a rate, and a shell, of both ends: the way back is decided alike
            few = rates <= self.n_rows
            if few.all():
                return self._thin(ends, spread, shells, rng.poisson(rates), rng)
            events = rng.poisson(np.where(few, rates, 0.0))
            survival = self._thin(ends, spread, shells, events, rng)
            survival[~few] = 0.0
            whole = np.flatnonzero(~few & np.isfinite(spread))
            if whole.size:
                increases = self.expansion.increases(ends[0, whole], ends[1, whole])
                survival[whole] = np.exp(-increases)
            return survival

    def _shells(self, z: FloatArray) -> IntArray:
        """Return the number of the envelope for each move, shape (n,); one more where none does."""
        if self.envelopes[0].radius == np.inf:
            return np.zeros(z.shape[1], dtype=np.int64)
        reach = np.sqrt(np.square(z).sum(axis=2).max(axis=0))
        return np.asarray(np.searchsorted([each.radius for each in self.envelopes], reach))

    def _totals(self, shells: IntArray) -> FloatArray:
        """Return the sum of psi for each move, shape (n,); infinite where there is none."""
        if self.envelopes[0].radius == np.inf:
            return np.full(len(shells), self.envelopes[0].total)
        totals = np.full(len(shells), np.inf)
        for number in np.unique(shells[shells < len(self.envelopes)]):
            totals[shells == number] = self.envelopes[number].total
        return totals

    def _thin(
        self,
        ends: FloatArray,
        spread: FloatArray,
        shells: IntArray,
        events: IntArray,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Return for each move the probability that none of its events is kept."""
        owners = np.repeat(np.arange(len(events)), events)
        if not owners.size:
            return np.ones(len(events))
        rows, limits = self._draw(shells[owners], rng)
        limits *= spread[owners]
        if len(owners) <= _PAIRS_AT_ONCE:
            return np.asarray(np.exp(self._log_kept(ends, rows, owners, limits)))
        log_survival = np.zeros(len(events))
        for start in range(0, len(owners), _PAIRS_AT_ONCE):
            part = slice(start, start + _PAIRS_AT_ONCE)
            log_survival += self._log_kept(ends, rows[part], owners[part], limits[part])
        return np.asarray(np.exp(log_survival))

    def _draw(self, shells: IntArray, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
        """Return a row for each event, and its bound psi, by the envelopes of the events."""
        if len(self.envelopes) == 1:
            return self.envelopes[0].draws.draw(len(shells), rng)
        rows, bounds = np.empty(len(shells), dtype=np.int64), np.empty(len(shells))
        for number in np.unique(shells):
            envelope, ours = self.envelopes[number], shells == number
            rows[ours], bounds[ours] = envelope.draws.draw(int(ours.sum()), rng)
        return rows, bounds

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
        definite = (directions * np.maximum(size, _FLATTEST * size.max())) @ directions.T
        return np.asarray(np.linalg.cholesky(definite), dtype=np.float64)


def _check_bounds(changes: FloatArray, limits: FloatArray, rows: IntArray) -> None:
    beyond = changes > limits * (1.0 + _ROOM) + _LEAST
    if beyond.any():
        first = int(np.flatnonzero(beyond)[0])
        raise TargetError(
            f"row {rows[first]} must not change by more than {limits[first]:.6g} nats beyond its "
            f"expansion, but does by {changes[first]:.6g}: the bound of the next derivative that "
            "row_bounds uses is too small, and draws would be biased; give the largest absolute "
            "one"
        )
