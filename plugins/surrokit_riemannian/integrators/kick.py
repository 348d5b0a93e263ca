"""The kick: momenta change at a fixed position, by equations (7) and (9) of the paper."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from surrokit.contracts.dynamics import Phase, PositionMetric
from surrokit.contracts.matrices import FormsAt
from surrokit.contracts.potential import Potential, with_gradient
from surrokit.types import BoolArray, Cache, FloatArray, IntArray
from surrokit_riemannian.integrators.fixed_point import FixedPoint, Solution
from surrokit_riemannian.integrators.rows import Part
from surrokit_riemannian.metrics.factors import dot


def evaluate(potential: Potential, metric: PositionMetric, positions: FloatArray) -> Cache:
    """Return all that a kick needs to know of positions (n, dim); see :func:`complete`."""
    return complete(potential, metric, positions, metric.factor(potential, positions))


def complete(
    potential: Potential, metric: PositionMetric, positions: FloatArray, factored: Cache
) -> Cache:
    """Return what the metric keeps of positions (n, dim), and with it what else a kick needs.

    That is ``value`` (n,), ``gradient`` (n, dim), and ``log_determinant_gradient`` (n, dim),
    tr(G^-1 d_k G).
    """
    value, gradient = with_gradient(potential).value_and_gradient(positions)
    traces = metric.log_determinant_gradient(potential, positions, factored)
    return {"value": value, "gradient": gradient, **factored, "log_determinant_gradient": traces}


def kick(
    potential: Potential, metric: PositionMetric, phase: Phase, time: FloatArray
) -> FloatArray:
    """Return p - time dH/dq(q, p), shape (n, dim): equation (9), where p is known.

    dH/dq = grad U + tr(G^-1 dG) / 2 - u^T dG u / 2 with u = G^-1 p.

    Parameters
    ----------
    potential, metric
        The Hamiltonian.
    phase
        q and p, with the cache that :func:`complete` returns.
    time : ndarray of shape (n, 1)
        How long.
    """
    velocities = metric.velocity(phase.cache, phase.momenta)
    form = metric.form_gradient(potential, phase.positions, phase.cache, velocities)
    return phase.momenta - time * (force(phase.cache) - 0.5 * form)


def implicitly_kicked(
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
    solver
        How.
    potential, metric, phase, time
        As for :func:`kick`.
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

    def has_arrived(points: FloatArray, rows: IntArray) -> BoolArray:
        off = points - wanted[rows]
        return np.asarray(
            dot(off, metric.velocity(part.of(rows), off)) <= np.square(reach * scale[rows])
        )

    return solver.solve(residual, phase.momenta, scale, goal=has_arrived)


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


def force(cache: Cache) -> FloatArray:
    """Return grad U + tr(G^-1 dG) / 2, the part of dH/dq that does not know the momenta."""
    return cache["gradient"] + 0.5 * cache["log_determinant_gradient"]
