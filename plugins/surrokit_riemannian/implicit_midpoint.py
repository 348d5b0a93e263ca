"""The implicit midpoint rule."""

from __future__ import annotations

import math

import attrs
import numpy as np

from surrokit.capabilities import GRADIENT_ALONE
from surrokit.interfaces import Hamiltonian, Phase, PositionMetric, Status
from surrokit.kernel.hamiltonian import position_metric
from surrokit.potentials import Potential, with_gradient, with_gradient_alone
from surrokit.types import BoolArray, Cache, FloatArray, IntArray
from surrokit_riemannian.implicit import (
    FixedPoint,
    Goal,
    ImplicitIntegrator,
    Part,
    Solution,
    evaluate,
    follow,
    force,
    goal_near,
    phase_taken,
)
from surrokit_riemannian.softabs import dot

MOST_GROWTH = 2.0
"""Passes whose residual grows beyond twice the first are given up."""

_CLOSER = 1e-3
"""How much closer the cheap equation is solved than the costly one was before."""

_SAME = 1e-6
"""Relative difference up to which a product stands for the metric."""


@attrs.frozen(kw_only=True)
class ImplicitMidpoint(ImplicitIntegrator):
    """z' = z + step J grad H((z + z') / 2) with z = (q, p), solved for the middle.

    Leimkuhler and Reich (2004), section 3.3; Brofos and Lederman (2021), arXiv:2102.07139, compare
    it with the generalized leapfrog. Each pass costs a metric. In return it conserves a quadratic
    energy exactly, at any step: on a normal target in its own metric one step turns position and
    momentum by 2 arctan(step / 2), so that a single step of 2 gives an independent draw. The
    step back is tried as
    :class:`~surrokit_riemannian.generalized_leapfrog.GeneralizedLeapfrog` tries it.
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
        middle = _Middle(solver, potential, metric, start, time)
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
            back = _Middle(solver, potential, metric, phase_taken(end, finite), -time[finite])
            returned = back.comes_to(velocities[finite], self.reversal_tolerance)
            after[finite] = np.where(returned, int(Status.OK), int(Status.NOT_REVERSIBLE))
        status[good] = after
        return phase_taken(end, after == Status.OK), status


@attrs.define(eq=False, slots=False)
class _Middle:
    """The middle (q, p) of a step of some chains, by its velocity u = G(q)^-1 p.

    With q = q0 + time u there is one equation left to solve, G(q) u = p0 - time dH/dq(q, p), with
    dH/dq = grad U + tr(G^-1 dG) / 2 - u^T dG u / 2. Its costly parts are the matrix and the
    trace. Each pass evaluates them once, and notes by how much they change a cheap equation, which
    has products in place of the matrix and a trace that stays as it is; then it solves the cheap
    equation with that difference put in. Such a deferred correction takes few passes, because the
    difference hardly depends on u. Where G is about the Hessian, the derivative of the cheap
    equation is about (1 + time^2) G; steps divided by that converge for long steps too.

    Residuals are velocities, measured by G and relative to G(q0)^-1 p0.

    Parameters
    ----------
    solver
        How to solve.
    potential, metric
        The Hamiltonian.
    phase
        q0 and p0, with what is known there.
    time : ndarray of shape (n, 1)
        Half the step of each chain.

    Attributes
    ----------
    momenta : ndarray of shape (n, dim)
        p, once u is found.
    """

    solver: FixedPoint
    potential: Potential
    metric: PositionMetric
    phase: Phase
    time: FloatArray

    def __attrs_post_init__(self) -> None:
        self._inner = attrs.evolve(self.solver, most_growth=math.inf)
        self.momenta = self.phase.momenta.copy()
        self._first = self.metric.velocity(self.phase.cache, self.phase.momenta)
        self._scale = np.sqrt(dot(self.phase.momenta, self._first))

    def find(self) -> Solution:
        """Solve for u, shape (n, dim)."""
        return self._solve(None)

    def comes_to(self, velocities: FloatArray, reach: float) -> BoolArray:
        """Return for each chain whether u comes to velocities (n, dim).

        Parameters
        ----------
        velocities : ndarray of shape (n, dim)
            Where it must come.
        reach
            How near, relative to the velocity at the start.
        """
        part = Part(self.phase.cache)
        near = goal_near(
            velocities,
            reach * self._scale,
            lambda off, rows: self.metric.momentum(part.of(rows), off),
        )
        return np.asarray(self._solve(near).status == Status.OK)

    def _solve(self, goal: Goal | None) -> Solution:
        pull = self.metric.velocity(self.phase.cache, force(self.phase.cache))
        start = (self._first - self.time * pull) / (1.0 + np.square(self.time))
        return self.solver.solve(self._make_pass, start, self._scale, goal=goal, last_step=False)

    def _make_pass(self, velocities: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return by how much a pass changes velocities u, and G times that."""
        metric, squared_time = self.metric, np.square(self.time[rows])
        cheap = _Cheap(self, rows, velocities)
        self.momenta[rows] = cheap.momenta
        left, dual = cheap.residual(velocities, np.arange(len(rows)))
        size = np.sqrt(np.maximum(dot(left, dual), 0.0)) / (1.0 + squared_time[:, 0])
        aim = np.maximum(_CLOSER * size / self.solver.tolerance, 0.1 * self._scale[rows])
        solution = self._inner.solve(cheap.residual, velocities, aim)
        near = np.isfinite(solution.points).all(axis=1, keepdims=True)
        change = np.where(near, solution.points - velocities, left)
        return change, metric.momentum(cheap.cache, change)


class _Cheap:
    """The cheap equation of a pass of some chains, ``rows (k,)``, for the middle.

    It is equal to the costly one at the ``velocities (k, dim)`` it is made at.
    """

    def __init__(self, middle: _Middle, rows: IntArray, velocities: FloatArray) -> None:
        self.potential, self.metric = middle.potential, middle.metric
        self.start = middle.phase.positions[rows]
        self.momenta_before = middle.phase.momenta[rows]
        self.time = middle.time[rows]
        positions = self.start + self.time * velocities
        self.cache: Cache = self.metric.factor(self.potential, positions)
        self.traces = self.metric.log_determinant_gradient(self.potential, positions, self.cache)
        self.momenta = self.metric.momentum(self.cache, velocities)
        self._part = Part(self.cache)
        product = self.metric.approximate_product(self.potential, positions, velocities)
        self.difference = np.zeros_like(velocities)
        self.stands = np.zeros((len(rows), 1), dtype=bool)
        if product is not None:
            off = self.momenta - product
            allowed = _SAME * np.abs(self.momenta).max(axis=1, keepdims=True)
            self.stands = np.abs(off).max(axis=1, keepdims=True) <= allowed
            self.difference = np.where(self.stands, off, 0.0)

    def residual(self, velocities: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return what a step adds to velocities of some chains of the pass, and G times that."""
        time, here = self.time[rows], self._part.of(rows)
        positions = self.start[rows] + time * velocities
        form = self.metric.form_gradient(self.potential, positions, here, velocities)
        slope = _gradient(self.potential, positions) + 0.5 * (self.traces[rows] - form)
        left = self.momenta_before[rows] - time * slope - self._product(positions, velocities, rows)
        left /= 1.0 + np.square(time)
        return self.metric.velocity(here, left), left

    def _product(self, positions: FloatArray, velocities: FloatArray, rows: IntArray) -> FloatArray:
        """Return G u, shape (k, dim), with G of the pass where products do not stand for it."""
        stands = self.stands[rows]
        if not stands.any():
            return self.metric.momentum(self._part.of(rows), velocities)
        product = self.metric.approximate_product(self.potential, positions, velocities)
        product = np.asarray(product) + self.difference[rows]
        if stands.all():
            return product
        return np.where(stands, product, self.metric.momentum(self._part.of(rows), velocities))


def _gradient(potential: Potential, positions: FloatArray) -> FloatArray:
    if GRADIENT_ALONE in potential.capabilities:
        return with_gradient_alone(potential).gradient(positions)
    return with_gradient(potential).value_and_gradient(positions)[1]
