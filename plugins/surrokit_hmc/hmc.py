"""Hamiltonian Monte Carlo: trajectories of leapfrog steps."""

from __future__ import annotations

import math

import attrs
import numpy as np

from surrokit.arguments import (
    fraction,
    optional_positive,
    optional_positive_integer,
    positive,
    share,
)
from surrokit.capabilities import GRADIENT, GRADIENT_ALONE
from surrokit.interfaces import (
    Hamiltonian,
    Integrator,
    Metric,
    Phase,
    Proposal,
    Sampler,
    Status,
    Tuning,
)
from surrokit.kernel.hamiltonian import (
    CountedPaths,
    constant_integrator,
    constant_metric,
    copy_phase,
    left_free,
    put_rows,
    take_rows,
)
from surrokit.kernel.kernel import latest
from surrokit.limits import check_deadline
from surrokit.potentials import Potential
from surrokit.types import BoolArray, Capabilities, FloatArray, IntArray
from surrokit.warping import Warped, WarpedKernel
from surrokit_hmc.half import Half, turns_back

PATH_LENGTH = math.pi
"""Longest path in standard deviations of the widest direction, unless told otherwise.

With the length uniform up to pi the expected cosine is 0: on a Gaussian, successive draws of the
widest direction are then uncorrelated.
"""

MAX_STEPS = 512
"""Tuning never asks for longer paths than this, in steps."""


@attrs.frozen(kw_only=True, eq=False)
class HMC(Sampler):
    """Paths of Hamiltonian dynamics with fresh momenta, section 2.1 of the paper.

    Parameters
    ----------
    integrator
        How to follow a path.
    metric
        The kinetic energy.
    step_size
        None leaves it to be tuned.
    n_steps
        Longest path in steps; None leaves it to be tuned.
    randomize
        Draw the number of steps uniformly from {1, ..., n_steps} in each iteration, as section 5
        of the paper does; all chains share it, so that they stay one batch.
    shortest
        Part of ``n_steps`` below which no number is drawn. With 1/3 paths from tuning turn most
        positions round: on a normal target their expected correlation is -0.41 instead of 0, that
        of squares 0.40 instead of 0.5. They take a third more steps, which on a surrogate matter
        little.
    path_length
        Longest path that tuning asks for, in standard deviations of the widest direction. Longer
        ones may suit parameters with long flat tails, with ``shortest`` of about 1/2.
    target_acceptance
        Mean acceptance on its own potential that tuning of the step size aims at.
    warp
        Follow paths in coordinates in which each parameter by itself is about normal, learnt in
        warm-up. The metric is in these coordinates then. It takes an integrator that keeps value
        and gradient of positions, and no more. On narrow straight ridges it does harm: they
        become curved. None does so for parameters whose draws in warm-up have heavy tails on both
        sides, where step size, number of steps and metric are left to be tuned, too.

    Raises
    ------
    ConfigurationError
        If a setting is out of range, or metric or integrator are of the kind that ``rmhmc`` takes.
    """

    integrator: Integrator
    metric: Metric
    step_size: float | None = attrs.field(default=None, validator=optional_positive)
    n_steps: int | None = attrs.field(default=None, validator=optional_positive_integer)
    randomize: bool = True
    shortest: float = attrs.field(default=0.0, validator=share)
    path_length: float = attrs.field(default=PATH_LENGTH, validator=positive)
    target_acceptance: float = attrs.field(default=0.8, validator=fraction)
    warp: bool | None = None

    def __attrs_post_init__(self) -> None:
        constant_metric(self.metric, "hmc")
        constant_integrator(self.integrator, "hmc")

    @property
    def needs(self) -> Capabilities:
        """What the integrator needs."""
        return self.integrator.needs

    @property
    def tunes(self) -> frozenset[str]:
        """Whatever of step size, number of steps and metric was not given, and a warp."""
        return left_free(
            step_size=self.step_size is None,
            n_steps=self.n_steps is None,
            metric=self.metric.tunable,
            warp=self.warp is True,
            heavy_warp=self._warps_heavy_tails,
        )

    @property
    def _warps_heavy_tails(self) -> bool:
        fixed = self.step_size is not None or self.n_steps is not None or not self.metric.tunable
        plain = self.integrator.needs <= {GRADIENT, GRADIENT_ALONE}
        return self.warp is None and plain and not fixed

    def bind(self, potential: Potential, tuning: Tuning) -> CountedPaths | WarpedKernel:
        """Return the kernel on a potential that uses ``tuning`` for what was left free."""
        if self.warp is False or tuning.warp is None:
            return self._plain(potential, tuning)
        warped = Warped(potential, tuning.warp)
        straight = attrs.evolve(tuning, covariance=tuning.warp.covariance)
        return WarpedKernel(inner=self._plain(warped, straight), warped=warped)

    def _plain(self, potential: Potential, tuning: Tuning) -> CountedPaths:
        metric, longest_path = self._fit(tuning.covariance) or (self.metric, None)
        step = tuning.step_size if self.step_size is None else self.step_size
        return CountedPaths(
            potential=potential,
            integrator=self.integrator,
            metric=metric,
            step=step,
            max_steps=self._max_steps(step, tuning.n_steps, longest_path),
            shortest=self.shortest,
            randomize=self.randomize,
        )

    @latest
    def _fit(self, covariance: FloatArray) -> tuple[Metric, float]:
        """Return the metric, and the longest path as a length."""
        metric = self.metric.adapt(covariance) if self.metric.tunable else self.metric
        return metric, self.path_length * metric.longest_scale(covariance)

    def _max_steps(self, step: float, asked: int | None, longest_path: float | None) -> int:
        given = self.n_steps if self.n_steps is not None else asked
        if given is not None:
            return given
        if longest_path is None:
            return 1
        return min(max(math.ceil(longest_path / step), 1), MAX_STEPS)


FORWARD, BACKWARD = 1, 0
"""Ends of a path, as indices."""


class Trajectories:
    """The paths of all chains, and the point drawn from each so far.

    Parameters
    ----------
    start
        Where the paths start, with fresh momenta.
    slowed
        See :func:`surrokit_hmc.half.turns_back`.
    """

    def __init__(
        self,
        hamiltonian: Hamiltonian,
        integrator: Integrator,
        start: Phase,
        step_size: float,
        rng: np.random.Generator,
        *,
        slowed: float = 0.0,
    ) -> None:
        n = len(start.positions)
        self._hamiltonian, self._integrator = hamiltonian, integrator
        self._metric = constant_metric(hamiltonian.metric, "nuts")
        self._step_size, self._rng, self._slowed = step_size, rng, slowed
        self._energy, self._value = hamiltonian.energy(start), start.cache["value"]
        self._ends = [copy_phase(start), copy_phase(start)]  # BACKWARD and FORWARD
        self._sample = copy_phase(start)
        self._momentum_sum = start.momenta.copy()
        self._log_weight = np.zeros(n)
        self._lowest, self._highest = self._energy.copy(), self._energy.copy()
        self._active = np.flatnonzero(np.isfinite(self._energy))
        self._moved: BoolArray = np.zeros(n, dtype=bool)
        self._divergent: BoolArray = ~np.isfinite(self._energy)
        self._acceptance: FloatArray = np.zeros(n)
        self._n_steps: IntArray = np.zeros(n, dtype=np.int64)

    def double(self, depth: int) -> bool:
        """Give every path that goes on as many points again, of which it has 2^depth.

        Returns
        -------
        bool
            Whether any path goes on.
        """
        if not len(self._active):
            return False
        rows = self._active
        side = self._rng.integers(0, 2, len(rows))
        half = self._grown(rows, side, depth)
        self._acceptance[rows] += half.acceptance
        self._n_steps[rows] += half.n_steps
        self._divergent[rows] |= half.divergent
        self._active = rows[half.rows]
        self._join(half, side[half.rows], 2 ** (depth + 1))
        return len(self._active) > 0

    def draw(self) -> Proposal:
        """Return the point drawn from each path as a proposal."""
        n_steps = np.maximum(self._n_steps, 1)
        acceptance = self._acceptance / n_steps  # mean over the points of min(1, exp(H(start) - H))
        log_correction = self._sample.cache["value"] - self._value
        return Proposal(
            positions=self._sample.positions,
            log_correction=np.where(self._moved, log_correction, 0.0),
            moved=self._moved,
            status=np.full(len(n_steps), Status.OK, dtype=np.int64),
            cache=self._sample.cache,
            source=self._hamiltonian.potential,
            log_path_ratio=np.log(np.maximum(acceptance, np.finfo(np.float64).tiny)),
            n_steps=n_steps,
            divergent=self._divergent,
            energy=self._energy,
        )

    def _grown(self, rows: IntArray, side: IntArray, depth: int) -> Half:
        half = Half(
            _one_or_other(side, rows, self._ends),
            start_energy=self._energy[rows],
            lowest=self._lowest[rows],
            highest=self._highest[rows],
            log_uniforms=np.log(self._rng.random((2**depth, len(rows)))),
            depth=depth,
        )
        step_size = np.where(side == FORWARD, self._step_size, -self._step_size)
        steps = step_size
        for _ in range(2**depth):
            check_deadline()
            half.follow(self._integrator, self._hamiltonian, steps)
            half.turn_back(self._metric, self._slowed)
            if len(half.rows) < len(steps):
                steps = step_size[half.rows]
                if not len(steps):
                    break
        half.finish()
        return half

    def _join(self, half: Half, side: IntArray, n_points: int) -> None:
        """Join halves that are sound to their paths, draw anew, and look for a turn."""
        rows = self._active
        if not len(rows):
            return
        log_odds = half.log_weight - self._log_weight[rows]
        # the newer half is preferred: its share of the whole would be fair, too, but moves less
        taken = np.flatnonzero(np.log(self._rng.random(len(rows))) < log_odds)
        self._moved[rows[taken]] = True
        put_rows(self._sample, rows[taken], take_rows(half.sample, taken))
        for end in (BACKWARD, FORWARD):
            there = np.flatnonzero(side == end)
            put_rows(self._ends[end], rows[there], take_rows(half.point, there))
        self._log_weight[rows] = np.logaddexp(self._log_weight[rows], half.log_weight)
        self._lowest[rows], self._highest[rows] = half.lowest, half.highest
        self._momentum_sum[rows] += half.momentum_sum
        first, last = (self._ends[end].momenta[rows] for end in (BACKWARD, FORWARD))
        sums = self._momentum_sum[rows]
        turning = turns_back(
            self._metric, first[None], last, sums[None], n_points=n_points, slowed=self._slowed
        )
        self._active = rows[~turning]


def _one_or_other(side: IntArray, rows: IntArray, ends: list[Phase]) -> Phase:
    """Return the rows of one end or the other of each path."""
    back, front = (take_rows(end, rows) for end in ends)
    there = np.flatnonzero(side == FORWARD)
    put_rows(back, there, take_rows(front, there))
    return back
