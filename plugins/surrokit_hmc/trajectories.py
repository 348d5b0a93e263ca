"""Paths that double until they turn back, and the points drawn from them."""

from __future__ import annotations

from typing import cast

import numpy as np

from surrokit.interfaces import (
    NO_DENSITY,
    OK,
    Hamiltonian,
    Integrator,
    Metric,
    Phase,
    Proposal,
    Status,
)
from surrokit.kernel.hamiltonian import (
    DIVERGENCE,
    copy_phase,
    put_rows,
    take_rows,
)
from surrokit.limits import check_deadline
from surrokit.types import BoolArray, FloatArray, IntArray

FORWARD, BACKWARD = 1, 0
"""Ends of a path, as indices."""


def turns_back(
    metric: Metric,
    first: FloatArray,
    last: FloatArray,
    momentum_sum: FloatArray,
    *,
    n_points: IntArray | int = 2,
    slowed: float = 0.0,
) -> BoolArray:
    """Return whether any of each chain's paths turns back, or is about to, shape (n,).

    The generalised criterion of Betancourt (2017, arXiv:1701.02434, appendix A.4.2): the way from
    end to end, which is proportional to M^-1 times the sum of the momenta, points back at one of
    the ends. The momenta at the ends count by half, so that the sum is the integral by the
    trapezoidal rule; which end is which makes no difference.

    With ``slowed`` a path ends sooner: where the momentum at an end, along the way, is down to
    that share of its mean over the path. On a normal target that whitens, a path over the angle t
    has (t / 2) / tan(t / 2) left of it.

    Momenta are those at the ``first (k, n, dim)`` points of k paths of each chain, at the
    ``last (n, dim)`` point, which they share, and summed over all points (k, n, dim), both ends
    included; of these each path has ``n_points (k,)``, at least 2.
    """
    sums = momentum_sum - 0.5 * (first + last)
    way = metric.velocity(sums.reshape(-1, sums.shape[2])).reshape(sums.shape)
    ahead = np.einsum("knd,knd->kn", first, way), np.einsum("nd,knd->kn", last, way)
    least: FloatArray | float = 0.0
    if slowed:
        mean_square = np.einsum("knd,knd->kn", sums, way)
        least = slowed * mean_square / (np.reshape(n_points, (-1, 1)) - 1)
    return np.asarray(~(np.minimum(*ahead) > least).all(axis=0))


class Half:
    """2^depth more points of each path, in one direction; halves that are not sound drop out.

    A half is not sound if a subtree of it turns back, or if energy is not kept: all energies of
    a path and its new half must lie within 1000 nats. Neither depends on where the path started.

    They go on from ``end``, with ``start_energy (n,)`` at the starts of the paths, the ``lowest``
    and ``highest`` H on them, which are taken over, and ``log_uniforms (2^depth, n)`` to draw by.

    The halves that are sound so far are ``rows (m,)``. Of these are ``point`` (the newest one),
    ``sample`` (one drawn by weight), ``log_weight``, ``momentum_sum``, ``lowest`` and ``highest``.
    Of all, once they are finished, are ``acceptance (n,)``, the sum over points of
    min(1, exp(H(start) - H)), ``n_steps``, ``divergent``, and which came ``beyond`` the density.
    """

    def __init__(
        self,
        end: Phase,
        *,
        start_energy: FloatArray,
        lowest: FloatArray,
        highest: FloatArray,
        log_uniforms: FloatArray,
    ) -> None:
        n, dim = end.positions.shape
        depth = len(log_uniforms).bit_length() - 1
        self.point, self.sample = end, end
        self.rows: IntArray = np.arange(n)
        self.lowest, self.highest = lowest, highest
        self.log_weight: FloatArray = np.full(n, -np.inf)
        self.momentum_sum: FloatArray = np.zeros((n, dim))
        self.acceptance: FloatArray = np.zeros(n)
        self.n_steps: IntArray = np.zeros(n, dtype=np.int64)
        self.divergent: BoolArray = np.zeros(n, dtype=bool)
        self.beyond: BoolArray = np.zeros(n, dtype=bool)
        self._start_energy, self._log_uniforms = start_energy, log_uniforms
        self._accepted: FloatArray = np.zeros(n)  # of those still going on
        self._done = 0
        # momenta at the first points of subtrees that are not complete, and sums up to them
        self._first: FloatArray = np.empty((max(depth, 1), n, dim))
        self._sum: FloatArray = np.empty((max(depth, 1), n, dim))

    def follow(
        self, integrator: Integrator, hamiltonian: Hamiltonian, step_size: FloatArray
    ) -> None:
        """Take one step (m,), backwards where it is negative, and draw a point anew or not."""
        single = np.ones(len(step_size), dtype=np.int64)
        self.point, status = integrator.advance(hamiltonian, self.point, step_size, single)
        self._done += 1
        energy = hamiltonian.energy(self.point)
        np.minimum(self.lowest, energy, out=self.lowest)
        np.maximum(self.highest, energy, out=self.highest)
        kept = self.highest - self.lowest <= DIVERGENCE  # not so where it is NaN
        if status.any() or not kept.all():
            kept &= status == OK
            self.divergent[self.rows[~kept & (status != Status.NOT_REVERSIBLE)]] = True
            self.beyond[self.rows[status == Status.NO_DENSITY]] = True
            energy = energy[kept]
            self._keep(kept)
        self._weigh(self._start_energy - energy)

    def _weigh(self, log_weight: FloatArray) -> None:
        accepted = np.exp(np.minimum(log_weight, 0.0))
        self._accepted += self.point.last_step.get("whole", accepted)
        if self._done == 1:
            self.log_weight, self.sample = log_weight, copy_phase(self.point)
            return
        self.log_weight = np.logaddexp(self.log_weight, log_weight)
        taken = self._log_uniforms[self._done - 1] < log_weight - self.log_weight
        if taken.any():
            rows = np.flatnonzero(taken)
            put_rows(self.sample, rows, take_rows(self.point, rows))

    def turn_back(self, metric: Metric, slowed: float = 0.0) -> None:
        """Drop halves in which a subtree that ends at the newest point turns back."""
        momenta, index = self.point.momenta, self._done - 1
        self.momentum_sum += self.point.last_step.get("momentum", momenta)
        level = (index >> 1).bit_count()
        if index % 2 == 0:  # begins a subtree at each level that is not under way
            self._first[level], self._sum[level] = momenta, self.momentum_sum
            return
        ending = (~index & (index + 1)).bit_length() - 1  # subtrees of 2, 4, ... points end here
        levels = slice(level - ending + 1, level + 1)
        first = self._first[levels]
        sums = self.momentum_sum - self._sum[levels] + first
        n_points = 2 ** np.arange(ending, 0, -1)
        turning = turns_back(metric, first, momenta, sums, n_points=n_points, slowed=slowed)
        if turning.any():
            self._keep(~turning)

    def finish(self) -> None:
        """Fill in what concerns all halves."""
        self.acceptance[self.rows] = self._accepted
        self.n_steps[self.rows] = self._done

    def _keep(self, sound: BoolArray) -> None:
        self.finish()
        rows = np.flatnonzero(sound)
        self.point, self.sample = take_rows(self.point, rows), take_rows(self.sample, rows)
        for name in ("rows", "log_weight", "lowest", "highest", "_start_energy", "_accepted"):
            setattr(self, name, getattr(self, name)[rows])
        self.momentum_sum = self.momentum_sum.take(rows, 0)
        for name in ("_log_uniforms", "_first", "_sum"):
            setattr(self, name, getattr(self, name).take(rows, 1))


class Trajectories:
    """The paths of all chains, and the point drawn from each so far.

    ``start`` is where they start, with fresh momenta; of ``slowed`` see :func:`turns_back`.
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
        self._metric = cast("Metric", hamiltonian.metric)
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
        self._beyond: BoolArray = np.zeros(n, dtype=bool)
        self._acceptance: FloatArray = np.zeros(n)
        self._n_steps: IntArray = np.zeros(n, dtype=np.int64)

    def double(self, depth: int) -> bool:
        """Double every path that goes on, of 2^depth points; return whether any goes on."""
        rows = self._active
        if not len(rows):
            return False
        side = self._rng.integers(0, 2, len(rows))
        half = self._grown(rows, side, depth)
        self._acceptance[rows] += half.acceptance
        self._n_steps[rows] += half.n_steps
        self._divergent[rows] |= half.divergent
        self._beyond[rows] |= half.beyond
        self._active = rows[half.rows]
        self._join(half, side[half.rows], 2 ** (depth + 1))
        return len(self._active) > 0

    def _grown(self, rows: IntArray, side: IntArray, depth: int) -> Half:
        ends, front = (take_rows(end, rows) for end in self._ends)
        there = np.flatnonzero(side == FORWARD)
        put_rows(ends, there, take_rows(front, there))
        half = Half(
            ends,
            start_energy=self._energy[rows],
            lowest=self._lowest[rows],
            highest=self._highest[rows],
            log_uniforms=np.log(self._rng.random((2**depth, len(rows)))),
        )
        step_size = np.where(side == FORWARD, self._step_size, -self._step_size)
        for _ in range(2**depth):
            check_deadline()
            half.follow(self._integrator, self._hamiltonian, step_size[half.rows])
            half.turn_back(self._metric, self._slowed)
            if not len(half.rows):
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

    def draw(self) -> Proposal:
        """Return the point drawn from each path as a proposal."""
        # mean over the points of min(1, exp(H(start) - H)); shorter steps cross a bound, too
        within = self._n_steps - self._beyond
        acceptance = self._acceptance / np.maximum(within, 1)
        log_correction = self._sample.cache["value"] - self._value
        return Proposal(
            positions=self._sample.positions,
            log_correction=np.where(self._moved, log_correction, 0.0),
            moved=self._moved,
            status=np.where(self._beyond & (within == 0), NO_DENSITY, OK),
            cache=self._sample.cache,
            source=self._hamiltonian.potential,
            log_path_ratio=np.log(np.maximum(acceptance, np.finfo(np.float64).tiny)),
            n_steps=np.maximum(self._n_steps, 1),
            divergent=self._divergent,
            energy=self._energy,
        )
