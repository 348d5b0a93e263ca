"""The implicit midpoint rule."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.capabilities import GRADIENT_ALONE
from surrokit.interfaces import Phase, Status
from surrokit.kernel.hamiltonian import take_rows
from surrokit.potentials import Potential, with_gradient, with_gradient_alone
from surrokit.types import FloatArray, IntArray
from surrokit_riemannian.implicit import ImplicitIntegrator, Start, complete, force


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

    def step(self, start: Start) -> tuple[Phase, IntArray]:
        """Return the phase after one step of chains that did not fail, and the status of all."""
        potential, metric = start.potential, start.metric
        velocities, middle, status = _middle(start)
        good = np.flatnonzero(status == Status.OK)
        if not good.size:
            return start.phase, status
        before, velocities = take_rows(start.phase, good), velocities[good]
        positions = before.positions + 2.0 * start.time[good] * velocities
        end = Phase(
            positions=positions,
            momenta=2.0 * middle[good] - before.momenta,
            cache=complete(potential, metric, positions, metric.factor(potential, positions)),
        )
        finite = np.isfinite(end.cache["value"] + metric.energy(end.cache, end.momenta))
        after = np.where(finite, int(Status.OK), int(Status.NOT_FINITE))
        rows = np.flatnonzero(finite)
        if self.check_reversal and rows.size:
            back = attrs.evolve(start, phase=take_rows(end, rows), time=-start.time[good][rows])
            found, _, there = _middle(back)
            near = back.are_near(found, velocities[rows], self.reversal_tolerance)
            returned = (there == Status.OK) & near
            after[rows] = np.where(returned, int(Status.OK), int(Status.NOT_REVERSIBLE))
        status[good] = after
        return take_rows(end, np.flatnonzero(after == Status.OK)), status


def _middle(start: Start) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return velocity u = G(q)^-1 p and momentum p in the middle, and a status for each chain.

    With q = q0 + time u there is one equation left to solve, G(q) u = p0 - time dH/dq(q, p), with
    dH/dq = grad U + tr(G^-1 dG) / 2 - u^T dG u / 2. Where G is about the Hessian, its derivative by
    u is about (1 + time^2) G; steps divided by that converge for long steps too.

    Residuals are velocities, measured by G and relative to G(q0)^-1 p0.
    """
    potential, metric, before = start.potential, start.metric, start.phase
    middle = before.momenta.copy()

    def residual(velocities: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        time = start.time[rows]
        positions = before.positions[rows] + time * velocities
        cache = metric.factor(potential, positions)
        traces = metric.log_determinant_gradient(potential, positions, cache)
        form = metric.form_gradient(potential, positions, cache, velocities)
        momenta = middle[rows] = metric.momentum(cache, velocities)
        slope = _gradient(potential, positions) + 0.5 * (traces - form)
        left = (before.momenta[rows] - time * slope - momenta) / (1.0 + np.square(time))
        return metric.velocity(cache, left), left

    pull = metric.velocity(before.cache, force(before.cache))
    first = (start.velocities - start.time * pull) / (1.0 + np.square(start.time))
    # closer than other equations, because errors of positions and momenta both come from this one
    velocities, status = start.solver.solve(residual, first, 0.1 * start.scale, last_step=False)
    return velocities, middle, status


def _gradient(potential: Potential, positions: FloatArray) -> FloatArray:
    if GRADIENT_ALONE in potential.capabilities:
        return with_gradient_alone(potential).gradient(positions)
    return with_gradient(potential).value_and_gradient(positions)[1]
