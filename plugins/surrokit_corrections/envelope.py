"""Bounds of all rows' terms, everywhere or in a ball, and draws in proportion to them."""

from __future__ import annotations

import math
from functools import cached_property

import attrs
import numpy as np

from surrokit.capabilities import ROWS_DRAWN, ROWS_IN_BALLS
from surrokit.contracts.rows import Ball, RowDraws, SummedPotential, of_order
from surrokit.errors import NumericalError
from surrokit.types import FloatArray, IntArray
from surrokit_corrections.alias import AliasTable
from surrokit_corrections.cumulative import CumulativeTable

_BEYOND = (0.5, 1.5, 3.0, 6.0)
"""Radii of balls, less the square root of the dimension: about where posterior draws lie, and
nearly all of them; where they never lie; and where chains come from."""

_WIDE = 2
"""Number of the first ball that is used where rows are few in any."""

_MOVES = 10_000
"""An alias table is made in the time of so many rows' search, for each row."""


@attrs.frozen(kw_only=True, eq=False)
class BoundedRows:
    """Draws of rows in proportion to bounds that are all here.

    Parameters
    ----------
    bounds : ndarray of shape (n_rows,)
        psi_i.
    total
        Their sum.
    few
        Whether few rows will be drawn, for all that is known.
    """

    bounds: FloatArray
    total: float
    few: bool

    @cached_property
    def table(self) -> AliasTable | CumulativeTable:
        """Draws rows in proportion to psi; made at the first draw, as many balls never see one."""
        return CumulativeTable.of(self.bounds) if self.few else AliasTable.of(self.bounds)

    @classmethod
    def of(cls, bounds: FloatArray, times: float) -> BoundedRows:
        """Return the draws for bounds, shape (n_rows,).

        Parameters
        ----------
        bounds
            psi_i.
        times
            How many rows a usual move touches for each nat of their sum.

        Raises
        ------
        NumericalError
            If their sum is not finite.
        """
        total = float(bounds.sum())
        if not total < math.inf:
            raise NumericalError(
                f"bounds of rows must have a finite sum, got {total}; is a bound of a row infinite "
                "or NaN?"
            )
        return cls(bounds=bounds, total=total, few=_are_few(times * total, len(bounds)))

    def draw(self, n: int, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
        """Return n rows, each drawn with probability psi_i / total, and their psi."""
        rows = self.table.draw(n, rng)
        return rows, self.bounds[rows]


@attrs.frozen(kw_only=True, eq=False)
class Envelope:
    """psi of all rows, for all positions or those up to some radius.

    Parameters
    ----------
    potential
        The sum over rows.
    factor : ndarray of shape (dim, dim)
        L, with z = L^-1 (q - centre).
    order
        To which terms are expanded.
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
        asked = of_order(self.order, self.ball)
        if ROWS_DRAWN not in self.potential.capabilities:
            bounds = self.potential.row_bounds(self.factor, **asked)
            return BoundedRows.of(bounds, _usual(self.factor, self.order))
        draws = self.potential.row_draws(self.factor, **asked)
        if not np.isfinite(draws.total):
            raise NumericalError(f"bounds of rows must have a finite sum, got {draws.total}")
        return draws

    @property
    def touches_few(self) -> bool:
        """Whether a pass over all rows costs more than all that smaller bounds would save."""
        touched = _usual(self.factor, self.order) * self.total
        return _are_few(touched, self.potential.n_rows)

    @cached_property
    def total(self) -> float:
        """Sum of psi; infinite where bounds overflow."""
        try:
            return self.draws.total
        except NumericalError:
            return math.inf


def holds_most(dim: int) -> float:
    """Return the radius of a ball that nearly all posterior draws lie in."""
    return math.sqrt(dim) + _BEYOND[1]


def envelopes(
    potential: SummedPotential, factor: FloatArray, centre: FloatArray, order: int
) -> tuple[Envelope, ...]:
    """Return the envelopes of a sum over rows, by growing radius.

    One for all positions, or some for balls about the centre where terms have no bound everywhere.

    Parameters
    ----------
    potential
        The sum.
    factor : ndarray of shape (dim, dim)
        L, with z = L^-1 (q - centre).
    centre : ndarray of shape (dim,)
        Where terms are expanded.
    order
        To which they are expanded.

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
    if found[_WIDE].touches_few:
        return tuple(found[_WIDE:])
    _ = found[0].draws
    return tuple(found)


def _usual(factor: FloatArray, order: int) -> float:
    """Return about how many times the sum of psi a usual move's rows are."""
    return float(2.0 * len(factor) ** (0.5 * (order + 1)))


def _are_few(touched: float, n_rows: int) -> bool:
    """Return whether rows that usual moves touch are not worth a pass over all rows."""
    return touched * _MOVES < n_rows
