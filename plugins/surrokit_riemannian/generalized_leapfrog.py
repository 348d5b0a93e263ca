"""The generalized leapfrog integrator, equations (7) to (9) of the paper."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.interfaces import Phase, Status
from surrokit.kernel.hamiltonian import take_rows
from surrokit.potentials import FormsAt
from surrokit.types import BoolArray, Cache, FloatArray, IntArray
from surrokit_riemannian.implicit import (
    ImplicitIntegrator,
    Start,
    complete,
    force,
    some,
)


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
        self.before = self.middle = self.end = start.phase  # middle: with the momenta half way
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
        momenta, status = _kicked(self.start)
        self.middle = attrs.evolve(self.before, momenta=momenta)
        return status

    def _drift(self) -> IntArray:
        self.end, status = self._drift_from(self.middle, self.time).make()
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
        back = attrs.evolve(self.start, phase=self.end, time=-self.time)
        momenta, status = _kicked(back)
        velocities = back.metric.velocity(self.end.cache, momenta)
        wanted = back.metric.velocity(self.end.cache, self.middle.momenta)
        return _returned((status == Status.OK) & back.are_near(velocities, wanted, self.reach))

    def _drift_back(self) -> IntArray:
        """Try the drift of the step back, which must come to the velocity at the start."""
        end = attrs.evolve(self.end, momenta=self.middle.momenta)
        velocities = self.start.metric.velocity(self.before.cache, self.middle.momenta)
        return _returned(self._drift_from(end, -self.time).comes_to(velocities, self.reach))

    def _drift_from(self, phase: Phase, time: FloatArray) -> _Drift:
        start = self.start
        return _Drift(start.solver, start.potential, start.metric, phase, time)


def _returned(returned: BoolArray) -> IntArray:
    return np.where(returned, int(Status.OK), int(Status.NOT_REVERSIBLE))


def _kicked(start: Start) -> tuple[FloatArray, IntArray]:
    """Solve p' = p - time dH/dq(q, p') for p', equation (7), starting from p' = p.

    Here dH/dq = grad U + tr(G^-1 dG) / 2 - u^T dG u / 2 with u = G^-1 p. Each pass costs one form
    of the metric's derivative. Residuals are measured as momenta are, by G^-1, relative to p.
    """
    potential, metric, phase = start.potential, start.metric, start.phase
    known = phase.momenta - start.time * force(phase.cache)
    half = 0.5 * start.time
    prepared: FormsAt | None = None
    if hasattr(metric, "forms_at"):  # what velocities do not change is worked out once
        prepared = metric.forms_at(potential, phase.positions, phase.cache)

    def residual(points: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        here = some(phase.cache, rows)
        velocities = metric.velocity(here, points)
        if prepared is not None:
            form = prepared(velocities, rows)
        else:
            form = metric.form_gradient(potential, phase.positions[rows], here, velocities)
        momenta = known[rows] + half[rows] * form - points
        return momenta, metric.velocity(here, momenta)

    return start.solver.solve(residual, phase.momenta, start.scale)


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
        close, _ = self._approach()
        points, status = self._solve_by_factors(found, close)
        positions = self._at(points, np.arange(len(self.time)))
        return Phase(positions=positions, momenta=self.phase.momenta, cache=found), status

    def comes_to(self, velocities: FloatArray, reach: float) -> BoolArray:
        """Return whether u' comes to a velocity, for each chain.

        The passes are those of :meth:`make`, as far as they are needed: where products come to
        the velocity, its factorised matrix is known already to confirm it.
        """
        close, converged = self._approach()
        came = converged & self.are_near(close, velocities, reach)
        left = np.flatnonzero(~came)
        if left.size:
            rest = attrs.evolve(self, phase=take_rows(self.phase, left), time=self.time[left])
            points, status = rest._solve_by_factors({}, close[left])
            near = rest.are_near(points, velocities[left], reach)
            came[left] = (status == Status.OK) & near
        return came

    def _at(self, velocities: FloatArray, rows: IntArray) -> FloatArray:
        """Return q' for velocities u' of some chains."""
        return self.phase.positions[rows] + self.time[rows] * (self.velocities[rows] + velocities)

    def _approach(self) -> tuple[FloatArray, BoolArray]:
        """Return where products lead, or u where they lead nowhere; and whether they do."""
        metric, everyone = self.metric, np.arange(len(self.time))

        def product(velocities: FloatArray, rows: IntArray) -> FloatArray | None:
            at = self._at(velocities, rows)
            return metric.approximate_product(self.potential, at, velocities)

        first = product(self.velocities, everyone)
        if first is None:
            return self.velocities, np.zeros(len(everyone), dtype=bool)
        ready = [first]

        def residual(velocities: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
            momenta = np.asarray(ready.pop() if ready else product(velocities, rows))
            momenta = self.phase.momenta[rows] - momenta
            return metric.velocity(some(self.phase.cache, rows), momenta), momenta

        passes = min(self.solver.max_iterations, 12)  # products of the metric itself take fewer
        solver = attrs.evolve(self.solver, max_iterations=passes)
        points, status = solver.solve(residual, self.velocities, self.scale)
        converged = status == Status.OK
        return np.where(converged[:, None], points, self.velocities), converged

    def _solve_by_factors(
        self, found: dict[str, FloatArray], start: FloatArray
    ) -> tuple[FloatArray, IntArray]:
        """Solve with the residual G(q')^-1 p - u'; write what is factorised into ``found``."""
        metric = self.metric

        def residual(velocities: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
            there: Cache = metric.factor(self.potential, self._at(velocities, rows))
            for name, array in there.items():
                if len(rows) == len(self.time):
                    found[name] = np.array(array)
                else:
                    found[name][rows] = array
            change = metric.velocity(there, self.phase.momenta[rows]) - velocities
            return change, metric.momentum(some(self.phase.cache, rows), change)

        return self.solver.solve(residual, start, self.scale, last_step=False)
