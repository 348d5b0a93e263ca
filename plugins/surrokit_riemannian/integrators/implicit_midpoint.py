"""The implicit midpoint rule."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.contracts.dynamics import Hamiltonian, Phase, PositionMetric, Status
from surrokit.contracts.potential import Potential
from surrokit.kernel.hamiltonian import position_metric
from surrokit.types import FloatArray, IntArray
from surrokit_riemannian.integrators.fixed_point import FixedPoint
from surrokit_riemannian.integrators.implicit import ImplicitIntegrator
from surrokit_riemannian.integrators.kick import evaluate
from surrokit_riemannian.integrators.middle import Middle
from surrokit_riemannian.integrators.paths import follow
from surrokit_riemannian.integrators.rows import phase_taken

MOST_GROWTH = 2.0
"""Passes whose residual grows beyond twice the first are given up."""


@attrs.frozen(kw_only=True)
class ImplicitMidpoint(ImplicitIntegrator):
    """z' = z + step J grad H((z + z') / 2) with z = (q, p), solved for the middle.

    Leimkuhler and Reich (2004), section 3.3; Brofos and Lederman (2021), arXiv:2102.07139, compare
    it with the generalized leapfrog. Each pass costs a metric. In return it conserves a quadratic
    energy exactly, at any step: on a normal target in its own metric one step turns position and
    momentum by 2 arctan(step / 2), so that a single step of 2 gives an independent draw. The
    step back is tried as
    :class:`~surrokit_riemannian.integrators.generalized_leapfrog.GeneralizedLeapfrog` tries it.
    """

    name = "implicit-midpoint"

    def advance(
        self, hamiltonian: Hamiltonian, phase: Phase, step_size: FloatArray, n_steps: IntArray
    ) -> tuple[Phase, IntArray]:
        """Follow each chain's path for its number of steps; see the protocol.

        Raises
        ------
        ConfigurationError
            If the metric does not change with position.
        """
        metric = position_metric(hamiltonian.metric, self.name)
        potential = hamiltonian.potential

        def step(start: Phase, size: FloatArray) -> tuple[Phase, IntArray]:
            return self._step(potential, metric, start, 0.5 * size)

        return follow(step, phase, step_size, n_steps)

    def _step(
        self, potential: Potential, metric: PositionMetric, start: Phase, time: FloatArray
    ) -> tuple[Phase, IntArray]:
        solver = FixedPoint(
            tolerance=self.tolerance, max_iterations=self.max_iterations, most_growth=MOST_GROWTH
        )
        middle = Middle(solver, potential, metric, start, time)
        solution = middle.find()
        status = solution.status
        good = status == Status.OK
        start, time, velocities = phase_taken(start, good), time[good], solution.points[good]
        if not len(time):
            return start, status
        positions = start.positions + 2.0 * time * velocities
        end = Phase(
            positions=positions,
            momenta=2.0 * middle.momenta[good] - start.momenta,
            cache=evaluate(potential, metric, positions),
        )
        finite = np.isfinite(end.cache["value"] + metric.energy(end.cache, end.momenta))
        after = np.where(finite, int(Status.OK), int(Status.NOT_FINITE))
        if self.check_reversal and finite.any():
            back = Middle(solver, potential, metric, phase_taken(end, finite), -time[finite])
            returned = back.comes_to(velocities[finite], self.reversal_tolerance)
            after[finite] = np.where(returned, int(Status.OK), int(Status.NOT_REVERSIBLE))
        status[good] = after
        return phase_taken(end, after == Status.OK), status
