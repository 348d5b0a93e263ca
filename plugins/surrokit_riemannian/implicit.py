"""Fixed points and implicit steps."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar, TypeAlias

import attrs
import numpy as np

from surrokit.arguments import positive, positive_integer
from surrokit.capabilities import GRADIENT
from surrokit.interfaces import Hamiltonian, Phase, PositionMetric, Status
from surrokit.kernel.hamiltonian import copy_phase, position_metric, put_rows, take_rows
from surrokit.limits import check_deadline
from surrokit.potentials import Potential, with_gradient
from surrokit.types import BoolArray, Cache, Capabilities, FloatArray, IntArray
from surrokit_riemannian.softabs import dot

_RIDGE = 1e-12  # of the diagonal of the normal equations
_GROWTH = 100.0  # of the squared residual over its least; more is a step that went astray

Residual: TypeAlias = Callable[[FloatArray, IntArray], tuple[FloatArray, FloatArray]]
"""From points (k, dim) of some chains, and their row numbers (k,), to what a plain step would add
to each point, and to the same times the matrix of the norm that it is measured in."""

Goal: TypeAlias = Callable[[FloatArray, IntArray], BoolArray]
"""From points (k, dim), and row numbers (k,), to whether they are where they must come."""

Dual: TypeAlias = Callable[[FloatArray, IntArray], FloatArray]
"""From vectors (k, dim) of some chains to the same times the matrix of a norm."""


@attrs.frozen(eq=False)
class Solution:
    """Where iterations ended.

    Parameters
    ----------
    points : ndarray of shape (n, dim)
        The last point of each chain.
    status : ndarray of shape (n,)
        ``OK`` where it solves the equation, and with a goal is there.
    settled : ndarray of bool, shape (n,)
        Whether the equation is solved, at the goal or elsewhere.
    """

    points: FloatArray
    status: IntArray
    settled: BoolArray


@attrs.frozen(kw_only=True)
class FixedPoint:
    """A fixed-point iteration with Anderson acceleration.

    A chain that has not won a quarter of the digits in half of the passes is given up.

    Parameters
    ----------
    tolerance
        Norm of the residual, relative to the scale of the problem, at which a chain is done.
    max_iterations
        Passes at most.
    depth
        Of the acceleration.
    most_growth
        A chain whose residual grows beyond so many times its first is given up: passes that
        wander before they settle would settle elsewhere after another rounding.

    """

    tolerance: float = 1e-10
    max_iterations: int = 20
    depth: int = 5
    most_growth: float = math.inf

    def solve(
        self,
        residual: Residual,
        start: FloatArray,
        scale: FloatArray,
        *,
        goal: Goal | None = None,
        last_step: bool = True,
    ) -> Solution:
        """Iterate from ``start (n, dim)``; chains that are done drop out.

        Parameters
        ----------
        residual
            The equation.
        start : ndarray of shape (n, dim)
            First points.
        scale : ndarray of shape (n,)
            What the tolerance is relative to.
        goal
            Where chains must settle; one that settles elsewhere has failed. It does not stop a
            chain earlier: what is tried must be what would be done.
        last_step
            Whether a solution is the last point with one more plain step, or the very point that
            was evaluated last.
        """
        solution = Solution(
            points=start.copy(),
            status=np.full(len(start), int(Status.NOT_CONVERGED)),
            settled=np.zeros(len(start), dtype=bool),
        )
        going, points = np.arange(len(start)), start
        acceleration, small = Anderson(self.depth), np.square(self.tolerance * scale)
        most = np.full(len(start), np.finfo(np.float64).max)
        for done in range(self.max_iterations):
            residuals, duals = residual(points, going)
            sizes = dot(residuals, duals)
            if not done and self.most_growth < math.inf:
                most = np.square(self.most_growth) * sizes
            settled = sizes <= small
            ended = settled | ~(sizes <= most)  # or not finite
            if done == self.max_iterations // 2:
                ended |= sizes > small / self.tolerance**1.5
            if ended.any() or done == self.max_iterations - 1:
                stepped = points + residuals
                solution.points[going] = stepped if last_step else points
                solution.settled[going] = settled
                arrived = settled if goal is None else settled & goal(stepped, going)
                solution.status[going[arrived]] = Status.OK
                solution.status[going[~np.isfinite(sizes)]] = Status.NOT_FINITE
                rows = np.flatnonzero(~ended)
                if not rows.size:
                    break
                acceleration.keep(rows)
                going, points, sizes = going[rows], points[rows], sizes[rows]
                residuals, duals = residuals[rows], duals[rows]
                small, most = small[rows], most[rows]
            points = acceleration.next(points, residuals, duals, sizes)
        return solution


def goal_near(wanted: FloatArray, reach: FloatArray, dual: Dual) -> Goal:
    """Return the goal to come as near as ``reach (n,)`` to ``wanted (n, dim)``, in a norm."""

    def has_arrived(points: FloatArray, rows: IntArray) -> BoolArray:
        off = points - wanted[rows]
        return np.asarray(dot(off, dual(off, rows)) <= np.square(reach[rows]))

    return has_arrived


class Anderson:
    """Anderson's method, type II: from some last points and residuals to the next point.

    Walker and Ni (2011), doi:10.1137/10078356X. The combination of the last residuals that is
    shortest, in a norm that the caller brings, says where to go. A chain whose residual has grown
    to ten times its least goes back to where that was, forgets, and takes half a plain step.

    Parameters
    ----------
    depth
        How many differences of residuals to combine, at most.
    """

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self._past: _Past | None = None
        self._last: list[FloatArray] = []
        self._best: list[FloatArray] = []
        self._least = np.empty(0)
        self._damping = np.empty(0)

    def next(
        self, points: FloatArray, residuals: FloatArray, duals: FloatArray, sizes: FloatArray
    ) -> FloatArray:
        """Return the next point of each chain, shape (n, dim).

        Parameters
        ----------
        points : ndarray of shape (n, dim)
            Where the chains are.
        residuals : ndarray of shape (n, dim)
            What a plain step would add.
        duals : ndarray of shape (n, dim)
            The residuals times the matrix of the norm.
        sizes : ndarray of shape (n,)
            Their products: squared norms.
        """
        following = points + residuals
        now = [points, residuals, duals]
        if not self._last:
            self._last, self._best = now, [array.copy() for array in now]
            self._least, self._damping = sizes.copy(), np.ones(len(sizes))
            return following
        if self._past is None:
            n, dim = points.shape
            self._past = _Past(n, dim, min(self.depth, dim))
        before, residuals_before, duals_before = self._last
        self._past.add(points - before, residuals - residuals_before, duals - duals_before)
        self._last = now
        following -= self._past.combine(duals)
        astray = sizes > _GROWTH * self._least
        self._note_best(now, sizes)
        if astray.any():
            rows = np.flatnonzero(astray)
            following[rows] = self._return_half_way(rows)
        return following

    def keep(self, rows: IntArray) -> None:
        """Go on with some of the chains only."""
        if not self._last:
            return
        if self._past is not None:
            self._past.keep(rows)
        for arrays in (self._last, self._best):
            arrays[:] = [array[rows] for array in arrays]
        self._least, self._damping = self._least[rows], self._damping[rows]

    def _note_best(self, now: list[FloatArray], sizes: FloatArray) -> None:
        better = sizes < self._least
        if better.all():
            self._least, self._best = sizes.copy(), [array.copy() for array in now]
        elif better.any():
            self._least = np.where(better, sizes, self._least)
            for best, array in zip(self._best, now, strict=True):
                best[better] = array[better]

    def _return_half_way(self, rows: IntArray) -> FloatArray:
        """Return chains to half a plain step from their best points, and forget their past."""
        assert self._past is not None
        self._past.forget(rows)
        self._last = [array.copy() for array in self._last]
        for last, best in zip(self._last, self._best, strict=True):
            last[rows] = best[rows]
        self._damping[rows] *= 0.5
        points, residuals, _ = self._best
        return points[rows] + self._damping[rows, None] * residuals[rows]


class _Past:
    """The last ``depth`` changes of each chain, in places that are filled in turn."""

    def __init__(self, n: int, dim: int, depth: int) -> None:
        self._steps = np.zeros((n, depth, dim))  # of point plus residual
        self._changes = np.zeros((n, depth, dim))  # of residuals
        self._gram = np.zeros((n, depth, depth))  # products of changes
        self._count = 0

    def add(self, moves: FloatArray, changes: FloatArray, duals: FloatArray) -> None:
        place = self._count % self._gram.shape[1]
        self._count += 1
        self._steps[:, place] = moves + changes
        self._changes[:, place] = changes
        products = np.matmul(self._changes, duals[:, :, None])[:, :, 0]
        self._gram[:, place] = products
        self._gram[:, :, place] = products

    def combine(self, duals: FloatArray) -> FloatArray:
        """Return the steps (n, dim) whose changes take the most off a residual."""
        m = min(self._count, self._gram.shape[1])
        right = np.matmul(self._changes[:, :m], duals[:, :, None])[:, :, 0]
        weights = _solve(self._gram[:, :m, :m], right)
        return np.asarray(np.matmul(weights[:, None], self._steps[:, :m])[:, 0])

    def keep(self, rows: IntArray) -> None:
        self._steps, self._changes = self._steps[rows], self._changes[rows]
        self._gram = self._gram[rows]

    def forget(self, rows: IntArray) -> None:
        for array in (self._steps, self._changes, self._gram):
            array[rows] = 0.0


def _solve(gram: FloatArray, right: FloatArray) -> FloatArray:
    """Solve normal equations, shapes (n, m, m) and (n, m); a column of zeros gets nothing."""
    both = np.arange(gram.shape[1])
    diagonal = gram[:, both, both]
    matrix = gram.copy()
    matrix[:, both, both] = np.where(diagonal > 0.0, (1.0 + _RIDGE) * diagonal, 1.0)
    return np.asarray(np.linalg.solve(matrix, right[:, :, None])[:, :, 0])


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

    most_growth: ClassVar[float] = math.inf
    """See :class:`FixedPoint`."""

    needs: ClassVar[Capabilities] = frozenset({GRADIENT})
    """Gradients; the metric has needs of its own."""

    def cache(self, hamiltonian: Hamiltonian, positions: FloatArray) -> Cache:
        """Return value, gradient, the metric and the gradient of its log determinant.

        Raises
        ------
        ConfigurationError
            If the metric does not change with position.
        """
        metric = position_metric(hamiltonian.metric, self.name)
        potential = hamiltonian.potential
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
        metric, n = position_metric(hamiltonian.metric, self.name), len(step_size)
        solver = FixedPoint(
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
            most_growth=self.most_growth,
        )
        status = np.full(n, int(Status.OK))
        for done in range(int(n_steps.max())):
            check_deadline()
            rows = np.flatnonzero((n_steps > done) & (status == Status.OK))
            if not rows.size:
                break
            start = Start(
                solver=solver,
                potential=hamiltonian.potential,
                metric=metric,
                phase=phase if rows.size == n else take_rows(phase, rows),
                time=0.5 * step_size[rows, None],
            )
            after, status[rows] = self.step(start)
            good = rows[status[rows] == Status.OK]
            if good.size == n:
                phase = after
            elif good.size:
                phase = copy_phase(phase)
                put_rows(phase, good, after)
        return phase, status

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


@attrs.define(kw_only=True, eq=False, slots=False)
class Start:
    """Where some chains start half a step, and what an equation of it is measured by.

    Parameters
    ----------
    solver
        How to solve.
    potential, metric
        The Hamiltonian.
    phase
        q and p, with what the metric keeps there.
    time : ndarray of shape (n, 1)
        Half the step of each chain.

    Attributes
    ----------
    velocities : ndarray of shape (n, dim)
        u = G(q)^-1 p.
    scale : ndarray of shape (n,)
        The norm of p, which tolerances are relative to.
    part
        The cache of rows.
    """

    solver: FixedPoint
    potential: Potential
    metric: PositionMetric
    phase: Phase
    time: FloatArray

    def __attrs_post_init__(self) -> None:
        self.velocities = self.metric.velocity(self.phase.cache, self.phase.momenta)
        self.scale = np.sqrt(dot(self.phase.momenta, self.velocities))
        self.part = Part(self.phase.cache)

    def near(self, velocities: FloatArray, reach: float) -> Goal:
        """Return the goal to come to velocities (n, dim), as near as ``reach`` times the scale."""
        return goal_near(
            velocities,
            reach * self.scale,
            lambda off, rows: self.metric.momentum(self.part.of(rows), off),
        )


class Part:
    """The rows of a cache that are still under way, taken anew only when they have changed."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._rows: IntArray | None = None
        self._part: Cache = cache

    def of(self, rows: IntArray) -> Cache:
        """Return the arrays at increasing row numbers."""
        if rows is not self._rows:
            n = len(next(iter(self._cache.values())))
            self._part = self._cache
            if len(rows) < n:
                self._part = {name: array[rows] for name, array in self._cache.items()}
            self._rows = rows
        return self._part
