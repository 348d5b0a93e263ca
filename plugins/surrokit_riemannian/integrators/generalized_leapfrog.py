"""The generalized leapfrog integrator, equations (7) to (9) of the paper."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.contracts.dynamics import Hamiltonian, Phase, Status
from surrokit.kernel.hamiltonian import position_metric
from surrokit.types import BoolArray, FloatArray, IntArray
from surrokit_riemannian.integrators.drift import Drift
from surrokit_riemannian.integrators.fixed_point import FixedPoint
from surrokit_riemannian.integrators.implicit import ImplicitIntegrator
from surrokit_riemannian.integrators.kick import complete, implicitly_kicked, kick
from surrokit_riemannian.integrators.paths import follow
from surrokit_riemannian.integrators.rows import phase_taken


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
        solution = implicitly_kicked(
            self.solver, self.potential, self.metric, self.start, self.time
        )
        self.middle = attrs.evolve(self.start, momenta=solution.points)
        return solution.status

    def _drift(self) -> IntArray:
        drift = Drift(self.solver, self.potential, self.metric, self.middle, self.time)
        self.end, status = drift.make()
        return status

    def _last_kick(self) -> IntArray:
        cache = complete(self.potential, self.metric, self.end.positions, self.end.cache)
        self.end = attrs.evolve(self.end, cache=cache)
        momenta = kick(self.potential, self.metric, self.end, self.time)
        self.end = attrs.evolve(self.end, momenta=momenta)
        finite = np.isfinite(cache["value"]) & np.isfinite(momenta).all(axis=1)
        return np.where(finite, int(Status.OK), int(Status.NOT_FINITE))

    def _kick_back(self) -> IntArray:
        """Try the first kick of the step back, which must come to the momenta half way."""
        back = implicitly_kicked(
            self.solver,
            self.potential,
            self.metric,
            self.end,
            -self.time,
            goal=(self.middle.momenta, self.reach),
        )
        return return_status(back.status)

    def _drift_back(self) -> IntArray:
        """Try the drift of the step back, which must come to the velocity at the start."""
        end = attrs.evolve(self.end, momenta=self.middle.momenta)
        drift = Drift(self.solver, self.potential, self.metric, end, -self.time)
        velocities = self.metric.velocity(self.start.cache, self.middle.momenta)
        return return_status(drift.comes_to(velocities, self.reach))


def return_status(status: IntArray) -> IntArray:
    """Return the status of steps, from that of the attempts to step back."""
    return np.where(status == Status.OK, int(Status.OK), int(Status.NOT_REVERSIBLE))
