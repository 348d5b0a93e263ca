"""The generalized leapfrog integrator, equations (7) to (9) of the paper."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import attrs
import numpy as np

from surrokit.interfaces import Phase, Status
from surrokit.kernel.hamiltonian import take_rows
from surrokit.potentials import FormsAt, Potential
from surrokit.types import Cache, FloatArray, IntArray
from surrokit_riemannian.implicit import (
    Goal,
    ImplicitIntegrator,
    Residual,
    Solution,
    Start,
    complete,
    force,
    goal_near,
)

Equation = TypeVar("Equation", bound=Start)

MAX_PRODUCTS = 12
"""Passes with products at most. Where they are those of the metric fewer do."""


@attrs.frozen(kw_only=True)
class GeneralizedLeapfrog(ImplicitIntegrator):
    """Half a kick with p implicit, a drift with q implicit, half a kick; all chains as one batch.

    Leimkuhler and Reich (2004), section 4.3; Girolami and Calderhead (2011). A chain whose
    implicit equations are not solved, or whose step back would not return, drops out with a
    status. The step back is tried as it would be made, from where the step ends: then a path and
    its reverse pass or fail together, which is what detailed balance needs.
    """

    name = "generalized-leapfrog"

    def step(self, start: Start) -> tuple[Phase, IntArray]:
        """Return the phase after one step of chains that did not fail, and the status of all."""
        return _Step(self, start).make()


class _Step:
    """One step of some chains; those that fail are left behind."""

    def __init__(self, settings: GeneralizedLeapfrog, start: Start) -> None:
        self.reach = settings.reversal_tolerance
        self.stages = [self._first_kick, self._drift, self._last_kick]
        if settings.check_reversal:
            self.stages += [self._kick_back, self._drift_back]
        self.start, self.time = start, start.time
        self.before = start.phase
        self.middle = start.phase  # with the momenta half way
        self.end = start.phase
        self.going = np.arange(len(start.time))
        self.status = np.full(len(start.time), int(Status.OK))

    def make(self) -> tuple[Phase, IntArray]:
        for stage in self.stages:
            status = stage()
            self.status[self.going] = status
            good = np.flatnonzero(status == Status.OK)
            if good.size < len(status):
                self.going, self.time = self.going[good], self.time[good]
                self.before, self.middle, self.end = (
                    take_rows(phase, good) for phase in (self.before, self.middle, self.end)
                )
            if not good.size:
                break
        return self.end, self.status

    def _first_kick(self) -> IntArray:
        solution = _implicitly_kicked(self.start)
        self.middle = attrs.evolve(self.before, momenta=solution.points)
        return solution.status

    def _drift(self) -> IntArray:
        self.end, status = self._from(_Drift, self.middle, self.time).make()
        return status

    def _last_kick(self) -> IntArray:
        """Return p - time dH/dq(q, p) as momenta: equation (9), where p is known."""
        potential, metric, end = self.start.potential, self.start.metric, self.end
        cache = complete(potential, metric, end.positions, end.cache)
        velocities = metric.velocity(cache, end.momenta)
        form = metric.form_gradient(potential, end.positions, cache, velocities)
        momenta = end.momenta - self.time * (force(cache) - 0.5 * form)
        self.end = attrs.evolve(end, cache=cache, momenta=momenta)
        finite = np.isfinite(cache["value"]) & np.isfinite(momenta).all(axis=1)
        return np.where(finite, int(Status.OK), int(Status.NOT_FINITE))

    def _kick_back(self) -> IntArray:
        """Try the first kick of the step back, which must come to the momenta half way."""
        back = self._from(Start, self.end, -self.time)
        return _returned(_implicitly_kicked(back, (self.middle.momenta, self.reach)).status)

    def _drift_back(self) -> IntArray:
        """Try the drift of the step back, which must come to the velocity at the start."""
        end = attrs.evolve(self.end, momenta=self.middle.momenta)
        velocities = self.start.metric.velocity(self.before.cache, self.middle.momenta)
        return _returned(self._from(_Drift, end, -self.time).comes_to(velocities, self.reach))

    def _from(self, kind: type[Equation], phase: Phase, time: FloatArray) -> Equation:
        start = self.start
        return kind(
            solver=start.solver,
            potential=start.potential,
            metric=start.metric,
            phase=phase,
            time=time,
        )


def _returned(status: IntArray) -> IntArray:
    return np.where(status == Status.OK, int(Status.OK), int(Status.NOT_REVERSIBLE))


def _implicitly_kicked(start: Start, goal: tuple[FloatArray, float] | None = None) -> Solution:
    """Solve p' = p - time dH/dq(q, p') for p', equation (7), starting from p' = p.

    Here dH/dq = grad U + tr(G^-1 dG) / 2 - u^T dG u / 2 with u = G^-1 p. Each pass costs one form
    of the metric's derivative. Residuals are measured as momenta are, by G^-1, relative to p.
    With a ``goal``, momenta (n, dim) and how near p' must come, the equation is solved from p all
    the same: only then does it fail where the step itself would.
    """
    phase, metric, part = start.phase, start.metric, start.part
    known = phase.momenta - start.time * force(phase.cache)
    half = 0.5 * start.time
    forms = _forms_at(start)

    def residual(points: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        here = part.of(rows)
        form = forms(metric.velocity(here, points), rows)
        momenta = known[rows] + half[rows] * form - points
        return momenta, metric.velocity(here, momenta)

    near = None
    if goal is not None:
        near = goal_near(
            goal[0], goal[1] * start.scale, lambda off, rows: metric.velocity(part.of(rows), off)
        )
    return start.solver.solve(residual, phase.momenta, start.scale, goal=near)


def _forms_at(start: Start) -> FormsAt:
    """Return the metric's form of some rows; metrics need not have one that is prepared."""
    potential, metric, phase, part = start.potential, start.metric, start.phase, start.part
    prepare: Callable[[Potential, FloatArray, Cache], FormsAt] | None = getattr(
        metric, "forms_at", None
    )
    if prepare is not None:
        return prepare(potential, phase.positions, phase.cache)
    return lambda velocities, rows: metric.form_gradient(
        potential, phase.positions[rows], part.of(rows), velocities
    )


class _Drift(Start):
    """q' = q + time (G(q)^-1 p + G(q')^-1 p), equation (8), to be solved for q'.

    What is solved for is the velocity at the end, u' with G(q') u' = p and
    q' = q + time (u + u'), from u' = u. First by products alone, where the metric has them:
    u' + G(q)^-1 (p - G(q') u') replaces u', without a matrix and without a factorisation. Then G
    is factorised once at the q' found; only where G(q')^-1 p is not u' to the tolerance, as where
    the product is not that of the metric, passes with factorised matrices follow.

    Residuals are measured as velocities are, by G(q), relative to u.
    """

    def make(self) -> tuple[Phase, IntArray]:
        """Solve; return q' and p with what the metric keeps there, and a status for each."""
        found: dict[str, FloatArray] = {}
        solution = self.solver.solve(
            self._by_factors(found), self._close(self._approach()), self.scale, last_step=False
        )
        positions = self._at(solution.points, np.arange(len(self.time)))
        end = Phase(positions=positions, momenta=self.phase.momenta, cache=found)
        return end, solution.status

    def comes_to(self, velocities: FloatArray, reach: float) -> IntArray:
        """Return a status for each chain, ``OK`` where u' comes to some velocity (n, dim).

        The passes are those of :meth:`make`, as far as they are needed: where products come to
        the velocity, its factorised matrix is known already to confirm it.
        """
        goal = self.near(velocities, reach)
        approached = self._approach(goal)
        if approached is None:
            return self._come_by_factors(self.velocities, goal)
        status = approached.status.copy()
        left = np.flatnonzero(status != Status.OK)
        if left.size:
            rest = attrs.evolve(self, phase=take_rows(self.phase, left), time=self.time[left])
            status[left] = rest._come_by_factors(
                self._close(approached)[left], rest.near(velocities[left], reach)
            )
        return status

    def _come_by_factors(self, start: FloatArray, goal: Goal) -> IntArray:
        residual = self._by_factors({})
        return self.solver.solve(residual, start, self.scale, goal=goal).status

    def _at(self, velocities: FloatArray, rows: IntArray) -> FloatArray:
        """Return q' for velocities u' of some chains."""
        return self.phase.positions[rows] + self.time[rows] * (self.velocities[rows] + velocities)

    def _close(self, approached: Solution | None) -> FloatArray:
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
            return self.metric.velocity(self.part.of(rows), momenta), momenta

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
            for name, array in there.items():
                if len(rows) == len(self.time):
                    found[name] = np.array(array)
                else:
                    found[name][rows] = array
            change = self.metric.velocity(there, self.phase.momenta[rows]) - velocities
            return change, self.metric.momentum(self.part.of(rows), change)

        return residual
