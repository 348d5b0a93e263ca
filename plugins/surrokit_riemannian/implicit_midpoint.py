"""The implicit midpoint rule."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.capabilities import (
    GRADIENT,
    GRADIENT_ALONE,
    with_gradient,
    with_gradient_alone,
)
from surrokit.hamiltonian import Hamiltonian, position_metric
from surrokit.protocols import PositionMetric, Potential
from surrokit.records import Phase, Status
from surrokit.settings import positive, positive_integer
from surrokit.types import BoolArray, Cache, Capabilities, FloatArray, IntArray
from surrokit_riemannian.factors import dot
from surrokit_riemannian.fixed_point import FixedPoint, Goal, Solution
from surrokit_riemannian.kick import evaluated, force
from surrokit_riemannian.paths import followed
from surrokit_riemannian.rows import Part, phase_taken

NAME = "implicit-midpoint"


@attrs.frozen(kw_only=True)
class ImplicitMidpoint:
    """z' = z + step J grad H((z + z') / 2) with z = (q, p), solved for the middle.

    Leimkuhler and Reich (2004), section 3.3; Brofos and Lederman (2021), arXiv:2102.07139, compare
    it with the generalized leapfrog: it conserves energy better, and each pass costs a metric. The
    step back is tried as :class:`~surrokit_riemannian.generalized_leapfrog.GeneralizedLeapfrog`
    tries it.

    Parameters
    ----------
    tolerance
        Of the equation: norm of the residual relative to that of the momentum.
    max_iterations
        Passes at most.
    check_reversal
        Whether to try each step back.
    reversal_tolerance
        How far from its start, relative to the momentum, the step back may end.

    Raises
    ------
    ConfigurationError
        If a setting is out of range.
    """

    tolerance: float = attrs.field(default=1e-10, validator=positive)
    max_iterations: int = attrs.field(default=20, validator=positive_integer)
    check_reversal: bool = True
    reversal_tolerance: float = attrs.field(default=1e-8, validator=positive)

    @property
    def by_position(self) -> bool:
        """Always: it follows metrics that change with position."""
        return True

    @property
    def needs(self) -> Capabilities:
        """Gradients; the metric has needs of its own."""
        return frozenset({GRADIENT})

    def cache(self, hamiltonian: Hamiltonian, positions: FloatArray) -> Cache:
        """Return value, gradient, the metric and the gradient of its log determinant.

        Raises
        ------
        ConfigurationError
            If the metric does not change with position.
        """
        metric = position_metric(hamiltonian.metric, NAME)
        return evaluated(hamiltonian.potential, metric, positions)

    def advance(
        self, hamiltonian: Hamiltonian, phase: Phase, step_size: FloatArray, n_steps: IntArray
    ) -> tuple[Phase, IntArray]:
        """Follow each chain's path for its number of steps; see the protocol.

        Raises
        ------
        ConfigurationError
            If the metric does not change with position.
        """
        metric = position_metric(hamiltonian.metric, NAME)
        potential = hamiltonian.potential

        def step(start: Phase, size: FloatArray) -> tuple[Phase, IntArray]:
            return self._step(potential, metric, start, 0.5 * size)

        return followed(step, phase, step_size, n_steps)

    def _step(
        self, potential: Potential, metric: PositionMetric, start: Phase, time: FloatArray
    ) -> tuple[Phase, IntArray]:
        there = _Middle(self, potential, metric, start, time).found()
        status = there.status
        good = status == Status.OK
        start, time, middle = phase_taken(start, good), time[good], there.points[good]
        if not len(time):
            return start, status
        dim = start.positions.shape[1]
        positions = 2.0 * middle[:, :dim] - start.positions
        end = Phase(
            positions=positions,
            momenta=2.0 * middle[:, dim:] - start.momenta,
            cache=evaluated(potential, metric, positions),
        )
        energy = end.cache["value"] + metric.energy(end.cache, end.momenta)
        finite = np.isfinite(energy)
        after = np.where(finite, int(Status.OK), int(Status.NOT_FINITE))
        if self.check_reversal and finite.any():
            back = _Middle(self, potential, metric, phase_taken(end, finite), -time[finite])
            returned = back.found(middle[finite]).status == Status.OK
            after[finite] = np.where(returned, int(Status.OK), int(Status.NOT_REVERSIBLE))
        status[good] = after
        return phase_taken(end, after == Status.OK), status


class _Middle:
    """The middle of a step of some chains, (q + q') / 2 and (p + p') / 2 side by side.

    It solves q = q0 + time G(q)^-1 p and p = p0 - time dH/dq(q, p), from an explicit step.
    Residuals are measured by G(q0) in positions and G(q0)^-1 in momenta, relative to p0.

    Parameters
    ----------
    settings
        Of the integrator.
    potential, metric
        The Hamiltonian.
    phase
        q0 and p0, with what is known there.
    time : ndarray of shape (n, 1)
        Half the step of each chain.
    """

    def __init__(
        self,
        settings: ImplicitMidpoint,
        potential: Potential,
        metric: PositionMetric,
        phase: Phase,
        time: FloatArray,
    ) -> None:
        self.settings = settings
        self.potential = potential
        self.metric = metric
        self.phase = phase
        self.time = time
        self._part = Part(phase.cache)
        self._scale = np.sqrt(dot(phase.momenta, metric.velocity(phase.cache, phase.momenta)))

    def found(self, wanted: FloatArray | None = None) -> Solution:
        """Solve; with a middle (n, 2 dim) that is wanted, until the solution comes to it."""
        solver = FixedPoint(
            tolerance=self.settings.tolerance, max_iterations=self.settings.max_iterations
        )
        goal = None if wanted is None else self._goal(wanted)
        return solver.solved(self._residual, self._explicit(), self._scale, goal=goal)

    def _explicit(self) -> FloatArray:
        phase, metric = self.phase, self.metric
        velocities = metric.velocity(phase.cache, phase.momenta)
        form = metric.form_gradient(self.potential, phase.positions, phase.cache, velocities)
        return np.concatenate(
            [
                phase.positions + self.time * velocities,
                phase.momenta - self.time * (force(phase.cache) - 0.5 * form),
            ],
            axis=1,
        )

    def _residual(self, middle: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        potential, metric, time = self.potential, self.metric, self.time[rows]
        positions, momenta = np.split(middle, 2, axis=1)
        cache = metric.factored(potential, positions)
        velocities = metric.velocity(cache, momenta)
        traces = metric.log_determinant_gradient(potential, positions, cache)
        form = metric.form_gradient(potential, positions, cache, velocities)
        slope = _gradient(potential, positions) + 0.5 * (traces - form)
        residual = np.concatenate(
            [
                self.phase.positions[rows] + time * velocities - positions,
                self.phase.momenta[rows] - time * slope - momenta,
            ],
            axis=1,
        )
        return residual, self._dual(residual, rows)

    def _dual(self, residual: FloatArray, rows: IntArray) -> FloatArray:
        positions, momenta = np.split(residual, 2, axis=1)
        here = self._part.of(rows)
        return np.concatenate(
            [self.metric.momentum(here, positions), self.metric.velocity(here, momenta)], axis=1
        )

    def _goal(self, wanted: FloatArray) -> Goal:
        def arrived(middle: FloatArray, rows: IntArray) -> BoolArray:
            off = middle - wanted[rows]
            reach = self.settings.reversal_tolerance * self._scale[rows]
            return np.asarray(dot(off, self._dual(off, rows)) <= np.square(reach))

        return arrived


def _gradient(potential: Potential, positions: FloatArray) -> FloatArray:
    if GRADIENT_ALONE in potential.capabilities:
        return with_gradient_alone(potential).gradient(positions)
    return with_gradient(potential).value_and_gradient(positions)[1]
