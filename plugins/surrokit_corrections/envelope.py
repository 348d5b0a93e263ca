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

_BEYOND = (0.5, 1.5, 3.0, 6.0)
"""Radii of balls, less the square root of the dimension: about where posterior draws lie, and
nearly all of them; where they never lie; and where chains come from."""

USUAL = 1
"""Number of the ball that nearly all posterior draws lie in."""


@attrs.frozen(kw_only=True, eq=False)
class AliasDraws:
    """Draws of rows in proportion to bounds that are all here.

    Parameters
    ----------
    bounds : ndarray of shape (n_rows,)
        psi_i.
    total
        Their sum.
    """

    bounds: FloatArray
    total: float

    @cached_property
    def table(self) -> AliasTable:
        """Draws rows in proportion to psi; made at the first draw, as many balls never see one."""
        return AliasTable.of(self.bounds)

    @classmethod
    def of(cls, bounds: FloatArray) -> AliasDraws:
        """Return the draws for bounds, shape (n_rows,).

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
        return cls(bounds=bounds, total=total)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
        """Return n rows, each drawn with probability psi_i / total, and their psi."""
        rows = self.table.draw(n, rng)
        return rows, self.bounds[rows]


@attrs.frozen(kw_only=True, eq=False)
class Envelope:
    """psi of all rows, for positions up to some radius.

    Parameters
    ----------
    radius
        In whitened coordinates, about the centre of the expansions.
    draws
        Of rows in proportion to psi.
    """

    radius: float
    draws: RowDraws

    @property
    def total(self) -> float:
        """Sum of psi."""
        return self.draws.total


def envelopes(
    potential: SummedPotential, factor: FloatArray, centre: FloatArray, order: int
) -> tuple[Envelope, ...]:
    """Return the envelopes of a sum over rows, by growing radius.

    One for all positions, or some for balls about the centre where terms have no bound everywhere.
    A ball in which bounds overflow is left out.

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
    if ROWS_IN_BALLS not in potential.capabilities:
        return (Envelope(radius=math.inf, draws=_draws(potential, factor, order, None)),)
    found: list[Envelope] = []
    for beyond in _BEYOND:
        radius = math.sqrt(len(centre)) + beyond
        try:
            draws = _draws(potential, factor, order, Ball(centre=centre, radius=radius))
        except NumericalError:
            if not found:
                raise
            break
        found.append(Envelope(radius=radius, draws=draws))
    return tuple(found)


def _draws(
    potential: SummedPotential, factor: FloatArray, order: int, ball: Ball | None
) -> RowDraws:
    asked = of_order(order, ball)
    if ROWS_DRAWN not in potential.capabilities:
        return AliasDraws.of(potential.row_bounds(factor, **asked))
    draws = potential.row_draws(factor, **asked)
    if not np.isfinite(draws.total):
        raise NumericalError(f"bounds of rows must have a finite sum, got {draws.total}")
    return draws
