"""Thinned rows: events of an envelope, and those of them that are kept."""

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


@attrs.frozen(kw_only=True, eq=False)
class AliasTable:
    """Walker's alias method: a column for each row, shared with one other row.

    Among a million rows it draws ten times as fast as a search in their cumulative sum.

    References
    ----------
    Walker (1977), doi:10.1145/355744.355749; the table is made by the sweep of Huebschle-Schneider
    and Sanders (2022), doi:10.1145/3505286.
    """

    own: FloatArray  # share of each column that is its own row's, shape (n,)
    other: IntArray  # whose the rest of it is

    @classmethod
    def of(cls, weights: FloatArray) -> AliasTable:
        """Return the table of weights that are not negative, shape (n,).

        Raises
        ------
        NumericalError
            If their sum is not positive and finite.
        """
        total = float(weights.sum())
        if not 0.0 < total < np.inf:
            raise NumericalError(
                f"weights of rows must have a positive, finite sum, got {total}; is a bound of a "
                "row infinite or NaN?"
            )
        own = weights * (len(weights) / total)
        other = np.arange(len(weights))
        light, heavy = np.flatnonzero(own <= 1.0), np.flatnonzero(own > 1.0)
        if not (light.size and heavy.size):
            return cls(own=np.ones_like(own), other=other)
        # Heavy rows fill light columns one after the other. A heavy row whose excess is used up
        # goes below 1, and the next heavy row fills its column in turn.
        lacking = np.cumsum(1.0 - own[light])
        excess = np.cumsum(own[heavy] - 1.0)
        before = np.concatenate([[0.0], lacking[:-1]])
        fills = np.minimum(np.searchsorted(excess, before, side="right"), len(heavy) - 1)
        other[light] = heavy[fills]
        emptied = np.searchsorted(lacking, excess, side="left")
        last = emptied >= len(light)  # by rounding; these keep their columns whole
        own[heavy] = np.where(
            last, 1.0, 1.0 + excess - lacking[np.minimum(emptied, len(light) - 1)]
        )
        other[heavy[:-1]] = heavy[1:]
        own[heavy[-1]] = 1.0
        return cls(own=np.clip(own, 0.0, 1.0), other=other)

    def draw(self, n: int, rng: np.random.Generator) -> IntArray:
        """Return n rows, drawn independently with their probabilities; n uniform numbers."""
        place = rng.random(n) * len(self.own)
        column = place.astype(np.int64)
        place -= column
        return np.where(place < self.own[column], column, self.other[column])


_BEYOND = (0.5, 1.5, 3.0, 6.0)
"""Radii of balls, less the square root of the dimension: about where posterior draws lie, and
nearly all of them; where they never lie; and where chains come from."""


@attrs.frozen(kw_only=True, eq=False)
class BoundedRows:
    """Draws of rows in proportion to bounds psi_i (n_rows,) that are all here."""

    bounds: FloatArray
    total: float

    @cached_property
    def table(self) -> AliasTable:
        """Made at the first draw, as many balls never see one."""
        return AliasTable.of(self.bounds)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
        """Return n rows, each drawn with probability psi_i / total, and their psi."""
        rows = self.table.draw(n, rng)
        return rows, self.bounds[rows]


@attrs.frozen(kw_only=True, eq=False)
class Envelope:
    """psi of all rows, for all positions or those up to some radius.

    Parameters
    ----------
    factor : ndarray of shape (dim, dim)
        L, with z = L^-1 (q - centre).
    ball
        Where psi holds; None for everywhere.
    """

    potential: SummedPotential
    factor: FloatArray
    order: int
    ball: Ball | None = None

    @property
    def radius(self) -> float:
        """In whitened coordinates, about the centre of the expansions."""
        return math.inf if self.ball is None else self.ball.radius

    @cached_property
    def draws(self) -> RowDraws:
        """Draws of rows in proportion to psi.

        They cost a pass over all rows, which balls that no move ends in never pay.

        Raises
        ------
        NumericalError
            If bounds have no finite sum.
        """
        asked, draws = of_order(self.order, self.ball), None
        if ROWS_DRAWN in self.potential.capabilities:
            draws = self.potential.row_draws(self.factor, **asked)
        else:
            bounds = self.potential.row_bounds(self.factor, **asked)
            draws = BoundedRows(bounds=bounds, total=float(bounds.sum()))
        if not draws.total < math.inf:
            raise NumericalError(
                f"bounds of rows must have a finite sum, got {draws.total}; is a bound of a row "
                "infinite or NaN?"
            )
        return draws

    @property
    def touches_few(self) -> bool:
        """Whether a pass over all rows costs more than all that smaller bounds would save.

        It is made in the time of ten thousand moves' search, for each row.
        """
        touched = 2.0 * len(self.factor) ** (0.5 * (self.order + 1)) * self.total  # by a usual move
        return bool(touched * 10_000 < self.potential.n_rows)

    @cached_property
    def total(self) -> float:
        """Sum of psi; infinite where bounds overflow."""
        try:
            return self.draws.total
        except NumericalError:
            return math.inf


def envelopes(
    potential: SummedPotential, factor: FloatArray, centre: FloatArray, order: int
) -> tuple[Envelope, ...]:
    """Return the envelopes of a sum over rows expanded at a centre, by growing radius.

    One for all positions, or some for balls about the centre where terms have no bound everywhere.

    Raises
    ------
    NumericalError
        If bounds have no finite sum, not even in the smallest ball.
    """
    everywhere = Envelope(potential=potential, factor=factor, order=order)
    if ROWS_IN_BALLS not in potential.capabilities:
        _ = everywhere.draws  # what raises does so here, and not amid draws
        return (everywhere,)
    radii = [math.sqrt(len(centre)) + beyond for beyond in _BEYOND]
    found = [attrs.evolve(everywhere, ball=Ball(centre=centre, radius=each)) for each in radii]
    if found[2].touches_few:
        return tuple(found[2:])
    _ = found[0].draws
    return tuple(found)


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
    envelopes
        psi of all rows, by growing radius in these coordinates. Moves that leave the last are
        decided by all rows.
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
        """Return what is needed to expand terms at a centre (dim,), in two to five passes.

        Bounds hold with any matrix for the Hessian there; the better it is, the fewer rows are
        touched.
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
        dim, half_power = len(self.whitening), 0.5 * (self.order + 1)
        log_ratio = math.lgamma(0.5 * dim + half_power) - math.lgamma(0.5 * dim)
        moment, most = 2.0**half_power * math.exp(log_ratio), math.sqrt(dim) + _BEYOND[1]
        usual = next(each for each in self.envelopes if each.radius >= most)
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

        Raises
        ------
        TargetError
            If a row changes by more than its bound allows.
        """
        with np.errstate(all="ignore"):
            z = (ends - self.expansion.centre) @ self.whitening
            spread = move_bounds(z[0], z[1], self.order)
            # a rate, and an envelope, of both ends: the way back is decided alike
            reach = np.sqrt(np.square(z).sum(axis=2).max(axis=0))
            shells = np.searchsorted([each.radius for each in self.envelopes], reach)
            totals = np.full(len(shells), np.inf)
            for number in np.unique(shells[shells < len(self.envelopes)]):
                totals[shells == number] = self.envelopes[number].total
            rates = np.where(wanted & (totals > 0.0), spread * totals, 0.0)
            few = rates <= self.n_rows
            events = rng.poisson(np.where(few, rates, 0.0))
            survival = self._thin(ends, spread, shells, events, rng)
            survival[~few] = 0.0
            whole = np.flatnonzero(~few & np.isfinite(spread))
            if whole.size:
                increases = self.expansion.increases(ends[0, whole], ends[1, whole])
                survival[whole] = np.exp(-increases)
            return survival

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
        rows, limits = np.empty(len(owners), dtype=np.int64), np.empty(len(owners))
        for number in np.unique(shells[owners]):
            envelope, ours = self.envelopes[number], shells[owners] == number
            rows[ours], limits[ours] = envelope.draws.draw(int(ours.sum()), rng)
        limits *= spread[owners]
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
            f"row {rows[first]} must not change by more than {limits[first]:.6g} nats beyond its "
            f"expansion, but does by {changes[first]:.6g}: the bound of the next derivative that "
            "row_bounds uses is too small, and draws would be biased"
        )
