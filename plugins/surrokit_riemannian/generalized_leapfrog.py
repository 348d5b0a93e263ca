"""The generalized leapfrog integrator, equations (7) to (9) of the paper."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np

from surrokit.interfaces import Hamiltonian, Phase, PositionMetric, Status
from surrokit.kernel.hamiltonian import position_metric
from surrokit.potentials import FormsAt, Potential
from surrokit.types import BoolArray, Cache, FloatArray, IntArray
from surrokit_riemannian.implicit import (
    FixedPoint,
    Goal,
    ImplicitIntegrator,
    Part,
    Residual,
    Solution,
    complete,
    follow,
    force,
    goal_near,
    phase_taken,
    place,
)
from surrokit_riemannian.softabs import dot

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

    def advance(
        self, hamiltonian: Hamiltonian, phase: Phase, step_size: FloatArray, n_steps: IntArray
    ) -> tuple[Phase, IntArray]:
        """Follow each chain's path for its number of steps; see the protocol.

        Raises
        ------
        ConfigurationError
            If the metric does not change with position.
        """

        def step(start: Phase, size: FloatArray) -> tuple[Phase, IntArray]:
            return _Step(self, hamiltonian, start, 0.5 * size).make()

        return follow(step, phase, step_size, n_steps)


class _Step:
    """One step of some chains, half of it in ``time (n, 1)``; those that fail are left behind."""

    def __init__(
        self,
        settings: GeneralizedLeapfrog,
        hamiltonian: Hamiltonian,
        phase: Phase,
        time: FloatArray,
    ) -> None:
        self.reach = settings.reversal_tolerance
        self.stages = [self._first_kick, self._drift, self._last_kick]
        if settings.check_reversal:
            self.stages += [self._kick_back, self._drift_back]
        self.solver = FixedPoint(
            tolerance=settings.tolerance, max_iterations=settings.max_iterations
        )
        self.potential = hamiltonian.potential
        self.metric = position_metric(hamiltonian.metric, settings.name)
        self.time = time
        self.start = phase
        self.middle = phase  # the start, with the momenta half way
        self.end = phase
        self.going = np.arange(len(time))
        self.status = np.full(len(time), int(Status.OK))

    def make(self) -> tuple[Phase, IntArray]:
        """Return the phase after the step of chains that did not fail, and the status of all."""
        for stage in self.stages:
            status = stage()
            self.status[self.going] = status
            self._leave_behind(status == Status.OK)
            if not self.going.size:
                break
        return self.end, self.status

    def _leave_behind(self, good: BoolArray) -> None:
        if good.all():
            return
        self.going, self.time = self.going[good], self.time[good]
        self.start, self.middle, self.end = (
            phase_taken(phase, good) for phase in (self.start, self.middle, self.end)
        )

    def _first_kick(self) -> IntArray:
        solution = _implicitly_kicked(
            self.solver, self.potential, self.metric, self.start, self.time
        )
        self.middle = attrs.evolve(self.start, momenta=solution.points)
        return solution.status

    def _drift(self) -> IntArray:
        drift = _Drift(self.solver, self.potential, self.metric, self.middle, self.time)
        self.end, status = drift.make()
        return status

    def _last_kick(self) -> IntArray:
        cache = complete(self.potential, self.metric, self.end.positions, self.end.cache)
        self.end = attrs.evolve(self.end, cache=cache)
        momenta = _kick(self.potential, self.metric, self.end, self.time)
        self.end = attrs.evolve(self.end, momenta=momenta)
        finite = np.isfinite(cache["value"]) & np.isfinite(momenta).all(axis=1)
        return np.where(finite, int(Status.OK), int(Status.NOT_FINITE))

    def _kick_back(self) -> IntArray:
        """Try the first kick of the step back, which must come to the momenta half way."""
        back = _implicitly_kicked(
            self.solver,
            self.potential,
            self.metric,
            self.end,
            -self.time,
            goal=(self.middle.momenta, self.reach),
        )
        return _return_status(back.status)

    def _drift_back(self) -> IntArray:
        """Try the drift of the step back, which must come to the velocity at the start."""
        end = attrs.evolve(self.end, momenta=self.middle.momenta)
        drift = _Drift(self.solver, self.potential, self.metric, end, -self.time)
        velocities = self.metric.velocity(self.start.cache, self.middle.momenta)
        return _return_status(drift.comes_to(velocities, self.reach))


def _return_status(status: IntArray) -> IntArray:
    """Return the status of steps, from that of the attempts to step back."""
    return np.where(status == Status.OK, int(Status.OK), int(Status.NOT_REVERSIBLE))


# --- the kick: momenta change at a fixed position, by equations (7) and (9) ---


def _kick(
    potential: Potential, metric: PositionMetric, phase: Phase, time: FloatArray
) -> FloatArray:
    """Return p - time dH/dq(q, p), shape (n, dim): equation (9), where p is known.

    dH/dq = grad U + tr(G^-1 dG) / 2 - u^T dG u / 2 with u = G^-1 p.

    Parameters
    ----------
    phase
        q and p, with the cache that :func:`complete` returns.
    time : ndarray of shape (n, 1)
        How long.
    """
    velocities = metric.velocity(phase.cache, phase.momenta)
    form = metric.form_gradient(potential, phase.positions, phase.cache, velocities)
    return phase.momenta - time * (force(phase.cache) - 0.5 * form)


def _implicitly_kicked(
    solver: FixedPoint,
    potential: Potential,
    metric: PositionMetric,
    phase: Phase,
    time: FloatArray,
    goal: tuple[FloatArray, float] | None = None,
) -> Solution:
    """Solve p' = p - time dH/dq(q, p') for p', equation (7), starting from p' = p.

    Each pass costs one form of the metric's derivative. Residuals are measured as momenta are, by
    G^-1, relative to p itself.

    Parameters
    ----------
    potential, metric, phase, time
        As for :func:`_kick`.
    goal
        Momenta (n, dim) to which p' must come, and how near, relative to p. They are known, but the
        equation is solved from p all the same: only then does it fail where the step itself would.
    """
    known = phase.momenta - time * force(phase.cache)
    scale = np.sqrt(dot(phase.momenta, metric.velocity(phase.cache, phase.momenta)))
    part, half = Part(phase.cache), 0.5 * time
    forms = _forms_at(potential, metric, phase, part)

    def residual(points: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        here = part.of(rows)
        form = forms(metric.velocity(here, points), rows)
        momenta = known[rows] + half[rows] * form - points
        return momenta, metric.velocity(here, momenta)

    if goal is None:
        return solver.solve(residual, phase.momenta, scale)
    wanted, reach = goal
    near = goal_near(wanted, reach * scale, lambda off, rows: metric.velocity(part.of(rows), off))
    return solver.solve(residual, phase.momenta, scale, goal=near)


def _forms_at(potential: Potential, metric: PositionMetric, phase: Phase, part: Part) -> FormsAt:
    """Return the metric's form of some rows; metrics need not have one that is prepared."""
    prepare: Callable[[Potential, FloatArray, Cache], FormsAt] | None = getattr(
        metric, "forms_at", None
    )
    if prepare is not None:
        return prepare(potential, phase.positions, phase.cache)
    return lambda velocities, rows: metric.form_gradient(
        potential, phase.positions[rows], part.of(rows), velocities
    )


# --- the drift: positions change at fixed momenta, by equation (8) ---


@attrs.define(eq=False, slots=False)
class _Drift:
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
            rest = _Drift(
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
        return goal_near(
            velocities,
            reach * self.scale,
            lambda off, rows: self.metric.momentum(self._part.of(rows), off),
        )

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
