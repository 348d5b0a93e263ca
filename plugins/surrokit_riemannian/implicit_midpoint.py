"""The implicit midpoint rule."""

from __future__ import annotations

import math

import attrs
import numpy as np

from surrokit.capabilities import GRADIENT_ALONE
from surrokit.interfaces import Phase, Status
from surrokit.kernel.hamiltonian import take_rows
from surrokit.potentials import Potential, with_gradient, with_gradient_alone
from surrokit.types import Cache, FloatArray, IntArray
from surrokit_riemannian.implicit import (
    Goal,
    ImplicitIntegrator,
    Part,
    Solution,
    Start,
    complete,
    force,
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
    most_growth = MOST_GROWTH

    def step(self, start: Start) -> tuple[Phase, IntArray]:
        """Return the phase after one step of chains that did not fail, and the status of all."""
        potential, metric = start.potential, start.metric
        middle = _Middle(start)
        solution = middle.solve()
        status = solution.status
        good = np.flatnonzero(status == Status.OK)
        if not good.size:
            return start.phase, status
        before, time, velocities = (
            take_rows(start.phase, good),
            start.time[good],
            solution.points[good],
        )
        positions = before.positions + 2.0 * time * velocities
        end = Phase(
            positions=positions,
            momenta=2.0 * middle.momenta[good] - before.momenta,
            cache=complete(potential, metric, positions, metric.factor(potential, positions)),
        )
        finite = np.isfinite(end.cache["value"] + metric.energy(end.cache, end.momenta))
        after = np.where(finite, int(Status.OK), int(Status.NOT_FINITE))
        rows = np.flatnonzero(finite)
        if self.check_reversal and rows.size:
            back = attrs.evolve(start, phase=take_rows(end, rows), time=-time[rows])
            goal = back.near(velocities[rows], self.reversal_tolerance)
            returned = _Middle(back).solve(goal).status == Status.OK
            after[rows] = np.where(returned, int(Status.OK), int(Status.NOT_REVERSIBLE))
        status[good] = after
        return take_rows(end, np.flatnonzero(after == Status.OK)), status


class _Middle:
    """The middle (q, p) of a step of some chains, by its velocity u = G(q)^-1 p.

    With q = q0 + time u there is one equation left to solve, G(q) u = p0 - time dH/dq(q, p), with
    dH/dq = grad U + tr(G^-1 dG) / 2 - u^T dG u / 2. Its costly parts are the matrix and the
    trace. Each pass evaluates them once, and notes by how much they change a cheap equation, which
    has products in place of the matrix and a trace that stays as it is; then it solves the cheap
    equation with that difference put in. Such a deferred correction takes few passes, because the
    difference hardly depends on u. Where G is about the Hessian, the derivative of the cheap
    equation is about (1 + time^2) G; steps divided by that converge for long steps too.

    Residuals are velocities, measured by G and relative to G(q0)^-1 p0. ``momenta (n, dim)`` are p
    once u is found.
    """

    def __init__(self, start: Start) -> None:
        self.start, self.time = start, start.time
        self._inner = attrs.evolve(start.solver, most_growth=math.inf)
        self.momenta = start.phase.momenta.copy()

    def solve(self, goal: Goal | None = None) -> Solution:
        """Solve for u, shape (n, dim)."""
        start = self.start
        pull = start.metric.velocity(start.phase.cache, force(start.phase.cache))
        first = (start.velocities - self.time * pull) / (1.0 + np.square(self.time))
        return start.solver.solve(self._make_pass, first, start.scale, goal=goal, last_step=False)

    def _make_pass(self, velocities: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return by how much a pass changes velocities u, and G times that."""
        metric, squared_time = self.start.metric, np.square(self.time[rows])
        cheap = _Cheap(self.start, rows, velocities)
        self.momenta[rows] = cheap.momenta
        left, dual = cheap.residual(velocities, np.arange(len(rows)))
        size = np.sqrt(np.maximum(dot(left, dual), 0.0)) / (1.0 + squared_time[:, 0])
        aim = np.maximum(_CLOSER * size / self.start.solver.tolerance, 0.1 * self.start.scale[rows])
        solution = self._inner.solve(cheap.residual, velocities, aim)
        near = np.isfinite(solution.points).all(axis=1, keepdims=True)
        change = np.where(near, solution.points - velocities, left)
        return change, metric.momentum(cheap.cache, change)


class _Cheap:
    """The cheap equation of a pass of some chains, ``rows (k,)``, for the middle.

    It is equal to the costly one at the ``velocities (k, dim)`` it is made at.
    """

    def __init__(self, start: Start, rows: IntArray, velocities: FloatArray) -> None:
        self.potential, self.metric = start.potential, start.metric
        self.start = start.phase.positions[rows]
        self.momenta_before = start.phase.momenta[rows]
        self.time = start.time[rows]
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
