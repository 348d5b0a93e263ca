"""Paths that double forwards or backwards until they turn, for all chains in step.

A path that stops has stopped for good, so all that go on have the same depth and are at the same
point of their newest half: one loop over its points serves all of them. Sums of momenta over the
subtrees that end at a point come from checkpoints, one for each level (Phan, Pradhan and
Jankowiak 2019, arXiv:1912.11554, appendix A).
"""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.contracts.dynamics import Hamiltonian, Integrator, Phase
from surrokit.kernel.hamiltonian import constant_metric
from surrokit.limits.deadline import check_deadline
from surrokit.types import BoolArray, Cache, FloatArray, IntArray
from surrokit_hmc.half import Half, take_rows
from surrokit_hmc.turning import turns_back

FORWARD, BACKWARD = 1, 0
"""Ends of a path, as indices."""


@attrs.frozen(kw_only=True, eq=False)
class Drawn:
    """One point of each chain's path, and how the path went.

    Parameters
    ----------
    positions : ndarray of shape (n, dim)
        The points.
    cache
        What the integrator keeps for them.
    moved : ndarray of bool, shape (n,)
        Whether the point is not the start.
    acceptance : ndarray of shape (n,)
        Mean over the points of min(1, exp(H(start) - H)).
    divergent : ndarray of bool, shape (n,)
        Paths that stopped because their energy was not kept.
    n_steps : ndarray of shape (n,)
        Points visited besides the start.
    energy : ndarray of shape (n,)
        H of the start.
    """

    positions: FloatArray
    cache: Cache
    moved: BoolArray
    acceptance: FloatArray
    divergent: BoolArray
    n_steps: IntArray
    energy: FloatArray


class Trajectories:
    """The paths of all chains, and the point drawn from each so far.

    Parameters
    ----------
    hamiltonian, integrator
        What to follow, and how.
    start
        Where the paths start, with fresh momenta.
    step_size
        Of the integrator.
    rng
        Draws directions and points.
    slowed
        See :func:`surrokit_hmc.turning.turns_back`.
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
        self._energy = hamiltonian.energy(start)
        self._ends = [_copy(start), _copy(start)]  # BACKWARD and FORWARD
        self._sample = _copy(start)
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

    def draw(self) -> Drawn:
        """Return the point drawn from each path."""
        n_steps = np.maximum(self._n_steps, 1)
        return Drawn(
            positions=self._sample.positions,
            cache=self._sample.cache,
            moved=self._moved,
            acceptance=self._acceptance / n_steps,
            divergent=self._divergent,
            n_steps=n_steps,
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
        _put(self._sample, rows[taken], take_rows(half.sample, taken))
        for end in (BACKWARD, FORWARD):
            there = np.flatnonzero(side == end)
            _put(self._ends[end], rows[there], take_rows(half.point, there))
        self._log_weight[rows] = np.logaddexp(self._log_weight[rows], half.log_weight)
        self._lowest[rows], self._highest[rows] = half.lowest, half.highest
        self._momentum_sum[rows] += half.momentum_sum
        first, last = (self._ends[end].momenta[rows] for end in (BACKWARD, FORWARD))
        sums = self._momentum_sum[rows]
        turning = turns_back(
            self._metric, first[None], last, sums[None], n_points=n_points, slowed=self._slowed
        )
        self._active = rows[~turning]


def _copy(phase: Phase) -> Phase:
    cache = {name: array.copy() for name, array in phase.cache.items()}
    return Phase(positions=phase.positions.copy(), momenta=phase.momenta.copy(), cache=cache)


def _put(old: Phase, rows: IntArray, new: Phase) -> None:
    old.positions[rows], old.momenta[rows] = new.positions, new.momenta
    for name, array in new.cache.items():
        old.cache[name][rows] = array


def _one_or_other(side: IntArray, rows: IntArray, ends: list[Phase]) -> Phase:
    """Return the rows of one end or the other of each path."""
    back, front = (take_rows(end, rows) for end in ends)
    there = np.flatnonzero(side == FORWARD)
    _put(back, there, take_rows(front, there))
    return back
