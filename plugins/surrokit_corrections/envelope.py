"""Bounds of all rows' terms, everywhere or in a ball, and draws in proportion to them."""

from __future__ import annotations

import math

import attrs
import numpy as np

from surrokit.capabilities import ROWS_IN_BALLS
from surrokit.contracts.rows import Ball, SummedPotential, of_order
from surrokit.types import FloatArray, IntArray
from surrokit_corrections.alias import AliasTable

_BEYOND = (0.5, 1.5, 3.0, 6.0)
"""Radii of balls, less the square root of the dimension: about where posterior draws lie, and
nearly all of them; where they never lie; and where chains come from."""

USUAL = 1
"""Number of the ball that nearly all posterior draws lie in."""


@attrs.frozen(kw_only=True, eq=False)
class Envelope:
    """psi of all rows, for positions up to some radius.

    Parameters
    ----------
    radius
        In whitened coordinates, about the centre of the expansions.
    bounds : ndarray of shape (n_rows,)
        psi_i.
    total
        Their sum.
    table
        Draws rows in proportion to psi; None where all of them are 0.
    """

    radius: float
    bounds: FloatArray
    total: float
    table: AliasTable | None

    @classmethod
    def of(cls, bounds: FloatArray, radius: float = math.inf) -> Envelope:
        """Return the envelope of bounds, shape (n_rows,).

        Raises
        ------
        NumericalError
            If their sum is not finite.
        """
        total = float(bounds.sum())
        table = AliasTable.of(bounds) if total != 0.0 else None
        return cls(radius=radius, bounds=bounds, total=total, table=table)

    def draw(self, n: int, rng: np.random.Generator) -> IntArray:
        """Return n rows, each drawn with probability psi_i / total."""
        assert self.table is not None
        return self.table.draw(n, rng)


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
        return (Envelope.of(potential.row_bounds(factor, **of_order(order))),)
    radii = [math.sqrt(len(centre)) + beyond for beyond in _BEYOND]
    found: list[Envelope] = []
    for radius in radii:
        ball = Ball(centre=centre, radius=radius)
        bounds = potential.row_bounds(factor, **of_order(order, ball))
        if found and not np.isfinite(bounds.sum()):
            break
        found.append(Envelope.of(bounds, radius))
    return tuple(found)
