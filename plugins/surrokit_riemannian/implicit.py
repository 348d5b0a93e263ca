"""Implicit steps, and the fixed points that solve them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar, TypeAlias, cast

import attrs
import numpy as np

from surrokit.arguments import positive, positive_integer
from surrokit.capabilities import GRADIENT
from surrokit.interfaces import Hamiltonian, Phase, PositionMetric, Status
from surrokit.kernel.hamiltonian import copy_phase, demand_kind, put_rows, take_rows
from surrokit.limits import check_deadline
from surrokit.potentials import Potential, with_gradient
from surrokit.types import BoolArray, Cache, Capabilities, FloatArray, IntArray
from surrokit_riemannian.softabs import dot

Residual: TypeAlias = Callable[[FloatArray, IntArray], tuple[FloatArray, FloatArray]]
"""From points (k, dim) of some chains, and their row numbers (k,), to what a plain step would add
to each point, and to the same times the matrix of the norm that it is measured in."""


@attrs.frozen(kw_only=True)
class FixedPoint:
    """A fixed-point iteration with Anderson acceleration.

    A chain that has not won a quarter of the digits in half of the passes is given up.
    """

    tolerance: float = 1e-10  # norm of the residual, relative to the scale of the problem
    max_iterations: int = 20

    def solve(
        self, residual: Residual, start: FloatArray, scale: FloatArray, *, last_step: bool = True
    ) -> tuple[FloatArray, IntArray]:
        """Iterate from ``start (n, dim)``; return last points, and status ``OK`` where they solve.

        Chains that are done drop out. The tolerance is relative to ``scale (n,)``. A solution is
        the last point with one more plain step, unless it is to be the very one evaluated last.
        """
        found, status = start.copy(), np.full(len(start), int(Status.NOT_CONVERGED))
        going, points = np.arange(len(start)), start
        acceleration, small = Anderson(), np.square(self.tolerance * scale)
        for done in range(self.max_iterations):
            residuals, duals = residual(points, going)
            sizes = dot(residuals, duals)
            converged = sizes <= small
            ended = converged | ~np.isfinite(sizes)
            if done == self.max_iterations // 2:
                ended |= sizes > small / self.tolerance**1.5
            if ended.any() or done == self.max_iterations - 1:
                found[going] = points + residuals if last_step else points
                status[going[converged]] = Status.OK
                status[going[~np.isfinite(sizes)]] = Status.NOT_FINITE
                rows = np.flatnonzero(~ended)
                if not rows.size:
                    break
                acceleration.keep(rows)
                going, points, sizes = going[rows], points[rows], sizes[rows]
                residuals, duals, small = residuals[rows], duals[rows], small[rows]
            points = acceleration.next(points, residuals, duals, sizes)
        return found, status


class Anderson:
    """Anderson's method, type II: from some last points and residuals to the next point.

    Walker and Ni (2011), doi:10.1137/10078356X. The combination of the last residuals that is
    shortest, in a norm that the caller brings, says where to go. A chain whose residual has grown
    to ten times its least goes back to where that was, forgets, and takes half a plain step.

    ``depth`` is how many differences of residuals are combined, at most.
    """

    def __init__(self, depth: int = 5) -> None:
        self.depth = depth
        self._last: list[FloatArray] = []  # point, residual, and that times the norm's matrix
        self._best: list[FloatArray] = []  # the same of the least residual
        self._least, self._damping = np.empty(0), np.empty(0)
        # changes of point plus residual, of residuals, and of these times the matrix: (n, m, dim)
        self._past: list[FloatArray] = []

    def next(
        self, points: FloatArray, residuals: FloatArray, duals: FloatArray, sizes: FloatArray
    ) -> FloatArray:
        """Return the next points (n, dim), with ``residuals`` what a plain step would add.

        ``duals`` are these times the matrix of the norm, and ``sizes (n,)`` the squared norms.
        """
        following, now = points + residuals, [points, residuals, duals]
        if not self._last:
            self._last, self._best = now, [array.copy() for array in now]
            self._least, self._damping = sizes.copy(), np.ones(len(sizes))
            return following
        moves, changes, turns = (new - old for new, old in zip(now, self._last, strict=True))
        fresh = [each[:, None] for each in (moves + changes, changes, turns)]
        if self._past:
            recent = -min(self.depth, points.shape[1])
            fresh = [
                np.concatenate(pair, axis=1)[:, recent:]
                for pair in zip(self._past, fresh, strict=True)
            ]
        self._past, self._last = fresh, now
        following -= self._combined(duals)
        better = sizes < self._least
        self._least[better] = sizes[better]
        for best, array in zip(self._best, now, strict=True):
            best[better] = array[better]
        rows = np.flatnonzero(sizes > 100.0 * self._least)  # squares
        if rows.size:
            self._last = [array.copy() for array in now]
            for array in self._past:
                array[rows] = 0.0
            for last, best in zip(self._last, self._best, strict=True):
                last[rows] = best[rows]
            self._damping[rows] *= 0.5
            half = self._damping[rows, None] * self._best[1][rows]
            following[rows] = self._best[0][rows] + half
        return following

    def _combined(self, duals: FloatArray) -> FloatArray:
        """Return the steps (n, dim) whose changes take the most off a residual."""
        steps, changes, turns = self._past
        gram = changes @ turns.transpose(0, 2, 1)
        right = changes @ duals[:, :, None]
        own = np.arange(gram.shape[1])
        diagonal = gram[:, own, own]
        # a column of zeros gets nothing
        gram[:, own, own] = np.where(diagonal > 0.0, (1.0 + 1e-12) * diagonal, 1.0)
        weights = np.linalg.solve(gram, right)
        return np.asarray((weights.transpose(0, 2, 1) @ steps)[:, 0])

    def keep(self, rows: IntArray) -> None:
        """Go on with some of the chains only."""
        if self._last:
            for arrays in (self._last, self._best, self._past):
                arrays[:] = [array[rows] for array in arrays]
            self._least, self._damping = self._least[rows], self._damping[rows]


@attrs.frozen(kw_only=True)
class ImplicitIntegrator:
    """An integrator of implicit steps in a metric that changes with position.

    Parameters
    ----------
    tolerance
        Of the implicit equations: norm of the residual relative to that of the momentum.
    max_iterations
        Passes in each of them at most.
    check_reversal
        Whether to try each step back.
    reversal_tolerance
        How far from its start, relative to the momentum, the step back may end.

    Raises
    ------
    ConfigurationError
        If a setting is out of range.
    """

    name: ClassVar[str]
    """As it is registered, for messages."""

    tolerance: float = attrs.field(default=1e-10, validator=positive)
    max_iterations: int = attrs.field(default=20, validator=positive_integer)
    check_reversal: bool = True
    reversal_tolerance: float = attrs.field(default=1e-8, validator=positive)

    by_position: ClassVar[bool] = True
    """Always: it follows metrics that change with position."""

    needs: ClassVar[Capabilities] = frozenset({GRADIENT})
    """Gradients; the metric has needs of its own."""

    def cache(self, hamiltonian: Hamiltonian, positions: FloatArray) -> Cache:
        """Return value, gradient, the metric and the gradient of its log determinant.

        Raises
        ------
        ConfigurationError
            If the metric does not change with position.
        """
        metric, potential = self._metric(hamiltonian), hamiltonian.potential
        with np.errstate(all="ignore"):
            return complete(potential, metric, positions, metric.factor(potential, positions))

    def advance(
        self, hamiltonian: Hamiltonian, phase: Phase, step_size: FloatArray, n_steps: IntArray
    ) -> tuple[Phase, IntArray]:
        """Follow each chain's path for its number of steps; chains that fail or arrive drop out.

        Raises
        ------
        ConfigurationError
            If the metric does not change with position.
        """
        metric, n = self._metric(hamiltonian), len(step_size)
        solver = FixedPoint(tolerance=self.tolerance, max_iterations=self.max_iterations)
        status = np.full(n, int(Status.OK))
        for done in range(int(n_steps.max())):
            check_deadline()
            rows = np.flatnonzero((n_steps > done) & (status == Status.OK))
            if not rows.size:
                break
            here = phase if rows.size == n else take_rows(phase, rows)
            start = Start(solver, hamiltonian.potential, metric, here, 0.5 * step_size[rows, None])
            after, status[rows] = self.step(start)
            good = rows[status[rows] == Status.OK]
            if good.size == n:
                phase = after
            elif good.size:
                phase = copy_phase(phase)
                put_rows(phase, good, after)
        return phase, status

    def _metric(self, hamiltonian: Hamiltonian) -> PositionMetric:
        demand_kind(self.name, hamiltonian.metric, by_position=True)
        return cast("PositionMetric", hamiltonian.metric)

    @abstractmethod
    def step(self, start: Start) -> tuple[Phase, IntArray]:
        """Return the phase after one step of chains that did not fail, and the status of all."""


def complete(
    potential: Potential, metric: PositionMetric, positions: FloatArray, factored: Cache
) -> Cache:
    """Return what the metric keeps of positions (n, dim), and with it what else a kick needs."""
    value, gradient = with_gradient(potential).value_and_gradient(positions)
    traces = metric.log_determinant_gradient(potential, positions, factored)
    return {"value": value, "gradient": gradient, **factored, "log_determinant_gradient": traces}


def force(cache: Cache) -> FloatArray:
    """Return grad U + tr(G^-1 dG) / 2, the part of dH/dq that does not know the momenta."""
    return cache["gradient"] + 0.5 * cache["log_determinant_gradient"]


def some(cache: Cache, rows: IntArray) -> Cache:
    """Return the arrays at increasing row numbers."""
    if len(rows) == len(next(iter(cache.values()))):
        return cache
    return {name: array.take(rows, 0) for name, array in cache.items()}


@attrs.define(eq=False, slots=False)
class Start:
    """Where some chains start half a step, and what an equation of it is measured by.

    ``velocities (n, dim)`` are u = G(q)^-1 p, and ``scale (n,)`` is the norm of p, which tolerances
    are relative to.
    """

    solver: FixedPoint
    potential: Potential
    metric: PositionMetric
    phase: Phase  # q and p, with what the metric keeps there
    time: FloatArray  # half the step of each chain, (n, 1)

    def __attrs_post_init__(self) -> None:
        self.velocities = self.metric.velocity(self.phase.cache, self.phase.momenta)
        self.scale = np.sqrt(dot(self.phase.momenta, self.velocities))

    def are_near(self, found: FloatArray, velocities: FloatArray, reach: float) -> BoolArray:
        """Return whether velocities (n, dim) are as near others as ``reach`` times the scale."""
        off = found - velocities
        squares = dot(off, self.metric.momentum(self.phase.cache, off))
        return np.asarray(squares <= np.square(reach * self.scale))
