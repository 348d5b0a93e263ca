"""Solutions of implicit equations, chain by chain to a tolerance."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import attrs
import numpy as np

from surrokit.contracts.dynamics import Status
from surrokit.settings import positive, positive_integer
from surrokit.types import BoolArray, FloatArray, IntArray
from surrokit_riemannian.integrators.anderson import Anderson
from surrokit_riemannian.metrics.factors import dot

Residual: TypeAlias = Callable[[FloatArray, IntArray], tuple[FloatArray, FloatArray]]
"""From points (k, dim) of some chains, and their row numbers (k,), to what a plain step would add
to each point, and to the same times the matrix of the norm that it is measured in."""

Goal: TypeAlias = Callable[[FloatArray, IntArray], BoolArray]
"""From points (k, dim), and row numbers (k,), to whether they are where they must come."""


@attrs.frozen(eq=False)
class Solution:
    """Where iterations ended.

    Parameters
    ----------
    points : ndarray of shape (n, dim)
        The last point of each chain.
    status : ndarray of shape (n,)
        ``OK`` where it solves the equation, and with a goal is there.
    settled : ndarray of bool, shape (n,)
        Whether the equation is solved, at the goal or elsewhere.
    """

    points: FloatArray
    status: IntArray
    settled: BoolArray


@attrs.frozen(kw_only=True)
class FixedPoint:
    """A fixed-point iteration with Anderson acceleration.

    A chain that has not won a quarter of the digits in half of the passes is given up.

    Parameters
    ----------
    tolerance
        Norm of the residual, relative to the scale of the problem, at which a chain is done.
    max_iterations
        Passes at most.
    depth
        Of the acceleration.
    most_growth
        A chain whose residual grows beyond so many times its first is given up: passes that
        wander before they settle would settle elsewhere after another rounding.

    Raises
    ------
    ConfigurationError
        If a setting is out of range.
    """

    tolerance: float = attrs.field(default=1e-10, validator=positive)
    max_iterations: int = attrs.field(default=20, validator=positive_integer)
    depth: int = 5
    most_growth: float = math.inf

    def solve(
        self,
        residual: Residual,
        start: FloatArray,
        scale: FloatArray,
        *,
        goal: Goal | None = None,
        last_step: bool = True,
    ) -> Solution:
        """Iterate from ``start (n, dim)``; chains that are done drop out.

        Parameters
        ----------
        residual
            The equation.
        start : ndarray of shape (n, dim)
            First points.
        scale : ndarray of shape (n,)
            What the tolerance is relative to.
        goal
            Where chains must settle; one that settles elsewhere has failed. It does not stop a
            chain earlier: what is tried must be what would be done.
        last_step
            Whether a solution is the last point with one more plain step, or the very point that
            was evaluated last.
        """
        solution = Solution(
            points=start.copy(),
            status=np.full(len(start), int(Status.NOT_CONVERGED)),
            settled=np.zeros(len(start), dtype=bool),
        )
        going, points = np.arange(len(start)), start
        acceleration, small = Anderson(self.depth), np.square(self.tolerance * scale)
        most = np.full(len(start), np.finfo(np.float64).max)
        for done in range(self.max_iterations):
            residuals, duals = residual(points, going)
            sizes = dot(residuals, duals)
            if not done and self.most_growth < math.inf:
                most = np.square(self.most_growth) * sizes
            settled = sizes <= small
            ended = settled | ~(sizes <= most)  # or not finite
            if done == self.max_iterations // 2:
                ended |= sizes > small / self.tolerance**1.5
            if ended.any() or done == self.max_iterations - 1:
                stepped = points + residuals
                solution.points[going] = stepped if last_step else points
                solution.settled[going] = settled
                arrived = settled if goal is None else settled & goal(stepped, going)
                solution.status[going[arrived]] = Status.OK
                solution.status[going[~np.isfinite(sizes)]] = Status.NOT_FINITE
                rows = np.flatnonzero(~ended)
                if not rows.size:
                    break
                acceleration.keep(rows)
                going, points, sizes = going[rows], points[rows], sizes[rows]
                residuals, duals = residuals[rows], duals[rows]
                small, most = small[rows], most[rows]
            points = acceleration.next(points, residuals, duals, sizes)
        return solution
