"""Estimates of a sum over rows by a few of them, drawn in proportion to bounds."""

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
    of_order,
)
from surrokit.types import FloatArray, IntArray

_BEYOND = 4.0
"""The radius of the ball in which bounds hold, less the square root of the dimension: draws of a
normal posterior lie in it but for one in some ten million."""

_NOISE = 0.2
"""Variance that estimates may have about; with more, chains would stay where one came out high."""


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
        """Return n rows in order, each drawn with probability psi_i / total, and their psi."""
        # uniform numbers in order: so rows are found, and read, in one sweep over memory
        uniform = np.cumsum(rng.standard_exponential(n + 1))
        uniform /= uniform[-1]
        rows = np.searchsorted(self._sums, self.total * uniform[:-1], side="right")
        rows = np.minimum(rows, np.searchsorted(self._sums, self.total))  # by rounding
        return rows, self.bounds[rows]


@attrs.frozen(kw_only=True, eq=False)
class PoissonEstimator:
    """Estimates of U whose exp(-U) is unbiased, from a few rows.

    With V the sum of all rows' expansions, U = V + sum_i D_i and |D_i| <= b_i = psi_i |z|^k. Of
    independent Poisson events with rates c b_i, c >= 1, the product of all 1 - D_i / (c b_i) has
    exp(-sum_i D_i) as mean, and is never negative.

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
        everywhere. Outside all rows are evaluated.

    References
    ----------
    Beskos, Papaspiliopoulos, Roberts and Fearnhead (2006), Exact and computationally efficient
    likelihood-based estimation for discretely observed diffusion processes, JRSS B 68, 333-382.
    """

    potential: SummedPotential
    expansion: RowExpansion
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
    ) -> PoissonEstimator:
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
        # C, by which positions are measured, too: then bounds hold whatever rounding did to H
        factor = solve_triangular(whitening, np.eye(len(whitening)), lower=True).T
        ball = None
        if ROWS_IN_BALLS in potential.capabilities:
            ball = Ball(centre=centre, radius=math.sqrt(len(centre)) + _BEYOND)
        asked, expansion = of_order(order, ball), potential.expand(centre, **of_order(order))
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
            potential=potential,
            expansion=expansion,
            whitening=whitening,
            draws=draws,
            radius=math.inf if ball is None else ball.radius,
            order=order,
        )

    def rates(self, radii: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return c |z|^k and the rows evaluated on average, both shape (n,), at distances |z|.

        They are all rows outside the ball, and where a few would be drawn more often than all.
        """
        k, dim, n_rows = self.order + 1, len(self.whitening), self.potential.n_rows
        bounds = radii**k
        # a term is about psi (|z| cos a)^k, with a the angle between row and move: the variance of
        # estimates is near the rate times the mean of cos^2k over the sphere
        angles = np.arange(k)
        mean = float(np.prod((2 * angles + 1) / (dim + 2 * angles)))
        bounds *= np.maximum(1.0, self.draws.total * bounds * mean / _NOISE)
        rows = bounds * self.draws.total
        return bounds, np.where((radii <= self.radius) & (rows <= n_rows), rows, n_rows)

    @property
    def expected_rows(self) -> float:
        """Rows evaluated on average at a usual draw of N(centre, H^-1), |z|^2 = dim."""
        return float(self.rates(np.sqrt([len(self.whitening)]))[1][0])

    def values(
        self, positions: FloatArray, rng: np.random.Generator, *, given: bool = False
    ) -> FloatArray:
        """Return estimates of U, shape (n,), at positions of shape (n, dim).

        With ``given`` they have the law that they have at a chain that is there: the one of
        estimates at a proposal, times exp(-estimate). NaN or ``inf`` where a row, or U, is not
        known.

        Raises
        ------
        TargetError
            If a row is farther from its expansion than its bound allows.
        """
        found = np.full(len(positions), np.nan)
        with np.errstate(all="ignore"):
            radii = np.linalg.norm((positions - self.expansion.centre) @ self.whitening, axis=1)
            bounds, rows = self.rates(radii)
            few = rows < self.potential.n_rows
            # that law has events of rates c b_i - D_i, at most twice c b_i
            events = rng.poisson(np.where(few, rows * (2.0 if given else 1.0), 0.0))
            found[few] = self.expansion.value(positions[few])
            found -= self._log_products(positions, bounds, events, rng, given=given)
        whole = np.flatnonzero(~few & np.isfinite(radii))
        if whole.size:
            found[whole] = self.potential.value(positions[whole])
        return found

    def _log_products(
        self,
        positions: FloatArray,
        bounds: FloatArray,
        events: IntArray,
        rng: np.random.Generator,
        *,
        given: bool,
    ) -> FloatArray:
        """Return the log of the product over so many events at each position, shape (n,)."""
        n, at_once = len(events), 20_000  # which bounds the temporaries
        rows, psi = self.draws.draw(int(events.sum()), rng)
        owners = rng.permuted(np.repeat(np.arange(n), events))  # as rows may come in order
        found = np.zeros(n)
        for start in range(0, len(rows), at_once):
            part = slice(start, start + at_once)
            owner, limits = owners[part], psi[part] * bounds[owners[part]]
            left = self.expansion.remainders(positions, rows[part], owner)
            _check_bounds(left, limits, rows[part])
            left = np.clip(left / limits, -1.0, 1.0)
            if given:
                left[2.0 * rng.random(len(left)) >= 1.0 - left] = 0.0
            found += np.bincount(owner, np.log1p(-left), minlength=n)
        return found


def _cholesky(hessian: FloatArray) -> FloatArray:
    """Return a triangular C with C C^T the Hessian, or a matrix near it that is definite."""
    try:
        return np.asarray(np.linalg.cholesky(hessian), dtype=np.float64)
    except np.linalg.LinAlgError:
        curvatures, directions = np.linalg.eigh(hessian)
        size = np.abs(curvatures)
        definite = (directions * np.maximum(size, 1e-8 * size.max())) @ directions.T
        return np.asarray(np.linalg.cholesky(definite), dtype=np.float64)


def _check_bounds(left: FloatArray, limits: FloatArray, rows: IntArray) -> None:
    # room for rounding; in absolute terms near the centre, where remainders lose their digits
    beyond = np.abs(left) > limits * (1.0 + 1e-6) + 1e-9
    if beyond.any():
        first = int(np.flatnonzero(beyond)[0])
        raise TargetError(
            f"row {rows[first]} is {abs(left[first]):.6g} nats from its expansion, more than its "
            f"bound of {limits[first]:.6g}, so that draws would be biased. Give row_bounds larger "
            "bounds of the next derivative"
        )
