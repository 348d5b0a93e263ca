"""The drift: positions change at a fixed momentum, by equation (8) of the paper."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.contracts.dynamics import Phase, PositionMetric, Status
from surrokit.contracts.potential import Potential
from surrokit.types import BoolArray, Cache, FloatArray, IntArray
from surrokit_riemannian.integrators.fixed_point import FixedPoint, Goal, Residual, Solution
from surrokit_riemannian.integrators.rows import Part, phase_taken, place
from surrokit_riemannian.metrics.factors import dot

MAX_PRODUCTS = 12
"""Passes with products at most. Where they are those of the metric fewer do."""


@attrs.define(eq=False, slots=False)
class Drift:
    """q' = q + time (G(q)^-1 p + G(q')^-1 p), to be solved for q'.

    What is solved for is the velocity at the end, u' with G(q') u' = p and
    q' = q + time (u + u'), from u' = u. First by products alone, where the metric has them:
    u' + G(q)^-1 (p - G(q') u') replaces u', without a matrix and without a factorisation. Then G
    is factorised once at the q' found; only where G(q')^-1 p is not u' to the tolerance, as where
    the product is not that of the metric, passes with factorised matrices follow.

    Residuals are measured as velocities are, by G(q), relative to u.

    Parameters
    ----------
    solver
        How to solve.
    potential, metric
        The Hamiltonian.
    phase
        q and p, with what the metric keeps there.
    time : ndarray of shape (n, 1)
        How long, half a step.
    """

    solver: FixedPoint
    potential: Potential
    metric: PositionMetric
    phase: Phase
    time: FloatArray

    def __attrs_post_init__(self) -> None:
        self.velocities = self.metric.velocity(self.phase.cache, self.phase.momenta)
        self.scale = np.sqrt(dot(self.phase.momenta, self.velocities))
        self._part = Part(self.phase.cache)

    def make(self) -> tuple[Phase, IntArray]:
        """Solve; return q' and p with what the metric keeps there, and a status for each."""
        found: dict[str, FloatArray] = {}
        solution = self.solver.solve(
            self._by_factors(found), self._near(self._approach()), self.scale, last_step=False
        )
        positions = self._at(solution.points, np.arange(len(self.time)))
        end = Phase(positions=positions, momenta=self.phase.momenta, cache=found)
        return end, solution.status

    def comes_to(self, velocities: FloatArray, reach: float) -> IntArray:
        """Return a status for each chain, ``OK`` where u' comes to some velocity (n, dim).

        The passes are those of :meth:`make`, as far as they are needed: where products come to
        the velocity, its factorised matrix is known already to confirm it.

        Parameters
        ----------
        velocities : ndarray of shape (n, dim)
            G(q')^-1 p at the q' where it must come.
        reach
            How near, relative to u.
        """
        goal = self._goal(velocities, reach)
        approached = self._approach(goal)
        if approached is None:
            return self._come_by_factors(self.velocities, goal)
        status = approached.status.copy()
        left = np.flatnonzero(status != Status.OK)
        if left.size:
            rest = Drift(
                self.solver,
                self.potential,
                self.metric,
                phase_taken(self.phase, left),
                self.time[left],
            )
            status[left] = rest._come_by_factors(
                self._near(approached)[left], rest._goal(velocities[left], reach)
            )
        return status

    def _come_by_factors(self, start: FloatArray, goal: Goal) -> IntArray:
        residual = self._by_factors({})
        return self.solver.solve(residual, start, self.scale, goal=goal).status

    def _goal(self, velocities: FloatArray, reach: float) -> Goal:
        def has_arrived(points: FloatArray, rows: IntArray) -> BoolArray:
            off = points - velocities[rows]
            size = dot(off, self.metric.momentum(self._part.of(rows), off))
            return np.asarray(size <= np.square(reach * self.scale[rows]))

        return has_arrived

    def _at(self, velocities: FloatArray, rows: IntArray) -> FloatArray:
        """Return q' for velocities u' of some chains."""
        return self.phase.positions[rows] + self.time[rows] * (self.velocities[rows] + velocities)

    def _near(self, approached: Solution | None) -> FloatArray:
        """Return where passes with factorised matrices start: near a solution, or at u."""
        if approached is None:
            return self.velocities
        return np.where(approached.settled[:, None], approached.points, self.velocities)

    def _approach(self, goal: Goal | None = None) -> Solution | None:
        """Iterate with products; None if the metric has none."""
        first = self._product(self.velocities, np.arange(len(self.time)))
        if first is None:
            return None
        ready = [first]

        def residual(velocities: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
            product = ready.pop() if ready else self._product(velocities, rows)
            momenta = self.phase.momenta[rows] - np.asarray(product)
            return self.metric.velocity(self._part.of(rows), momenta), momenta

        passes = min(self.solver.max_iterations, MAX_PRODUCTS)
        solver = attrs.evolve(self.solver, max_iterations=passes)
        return solver.solve(residual, self.velocities, self.scale, goal=goal)

    def _product(self, velocities: FloatArray, rows: IntArray) -> FloatArray | None:
        positions = self._at(velocities, rows)
        return self.metric.approximate_product(self.potential, positions, velocities)

    def _by_factors(self, found: dict[str, FloatArray]) -> Residual:
        """Return the residual G(q')^-1 p - u', that writes what it factorises into ``found``."""

        def residual(velocities: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
            there: Cache = self.metric.factor(self.potential, self._at(velocities, rows))
            if len(rows) == len(self.time):
                found.update({name: np.array(array) for name, array in there.items()})
            else:
                place(found, rows, there)
            change = self.metric.velocity(there, self.phase.momenta[rows]) - velocities
            return change, self.metric.momentum(self._part.of(rows), change)

        return residual
