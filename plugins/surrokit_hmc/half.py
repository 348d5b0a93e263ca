"""Half of a trajectory, and whether it turns back."""

from __future__ import annotations

import numpy as np

from surrokit.interfaces import Hamiltonian, Integrator, Metric, Phase
from surrokit.kernel.hamiltonian import DIVERGENCE, copy_phase, put_rows, take_rows
from surrokit.types import BoolArray, FloatArray, IntArray


def turns_back(
    metric: Metric,
    first: FloatArray,
    last: FloatArray,
    momentum_sum: FloatArray,
    *,
    n_points: IntArray | int = 2,
    slowed: float = 0.0,
) -> BoolArray:
    """Return whether paths turn back, or have slowed down so much that they are about to.

    The generalised criterion of Betancourt (2017, arXiv:1701.02434, appendix A.4.2): the way from
    end to end, which is proportional to M^-1 times the sum of the momenta, points back at one of
    the ends. The momenta at the ends count by half, so that the sum is the integral by the
    trapezoidal rule; which end is which makes no difference.

    With ``slowed`` a path ends sooner: where the momentum at an end, along the way, is down to
    that share of its mean over the path. On a normal target that whitens, a path over the angle t
    has (t / 2) / tan(t / 2) left of it.

    Parameters
    ----------
    metric
        With M^-1.
    first, momentum_sum : ndarray of shape (k, n, dim)
        Momenta at the first points of k paths of each chain, and summed over all their points,
        both ends included.
    last : ndarray of shape (n, dim)
        Momenta at the last point, which they share.
    n_points : ndarray of int, shape (k,), or int
        Points of each path, at least 2.
    slowed
        Share of the mean; at 0 paths end where going on would shorten them.

    Returns
    -------
    ndarray of bool, shape (n,)
        Whether any of a chain's paths turns back.
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

    Parameters
    ----------
    end
        The ends from which paths go on.
    start_energy : ndarray of shape (n,)
        H at the starts of the paths.
    lowest, highest : ndarray of shape (n,)
        Of H on the paths; taken over.
    log_uniforms : ndarray of shape (2^depth, n)
        With which points are drawn.
    depth
        Says how many points there are to be.

    Attributes
    ----------
    rows : ndarray of int, shape (m,)
        The halves that are sound so far. Of these are ``point`` (the newest one), ``sample`` (one
        drawn by weight), ``log_weight``, ``momentum_sum``, ``lowest`` and ``highest``.
    acceptance, n_steps, divergent : ndarray of shape (n,)
        Of all halves once they are finished: the sum over points of min(1, exp(H(start) - H)),
        their number, and whether energy was lost.
    """

    def __init__(
        self,
        end: Phase,
        *,
        start_energy: FloatArray,
        lowest: FloatArray,
        highest: FloatArray,
        log_uniforms: FloatArray,
        depth: int,
    ) -> None:
        n, dim = end.positions.shape
        self.point, self.sample = end, end
        self.rows: IntArray = np.arange(n)
        self.lowest, self.highest = lowest, highest
        self.log_weight: FloatArray = np.full(n, -np.inf)
        self.momentum_sum: FloatArray = np.zeros((n, dim))
        self.acceptance: FloatArray = np.zeros(n)
        self.n_steps: IntArray = np.zeros(n, dtype=np.int64)
        self.divergent: BoolArray = np.zeros(n, dtype=bool)
        self._start_energy, self._log_uniforms = start_energy, log_uniforms
        self._accepted: FloatArray = np.zeros(n)  # of those still going on
        self._single: IntArray = np.ones(n, dtype=np.int64)
        self._done = 0
        # momenta at the first points of subtrees that are not complete, and sums up to them
        self._first: FloatArray = np.empty((max(depth, 1), n, dim))
        self._sum: FloatArray = np.empty((max(depth, 1), n, dim))

    def follow(
        self, integrator: Integrator, hamiltonian: Hamiltonian, step_size: FloatArray
    ) -> None:
        """Take one step, and draw the new point or keep the one that was drawn.

        Parameters
        ----------
        step_size : ndarray of shape (m,)
            Negative where the path grows backwards.
        """
        self.point, status = integrator.advance(
            hamiltonian, self.point, step_size, self._single[: len(step_size)]
        )
        self._done += 1
        energy = hamiltonian.energy(self.point)
        np.minimum(self.lowest, energy, out=self.lowest)
        np.maximum(self.highest, energy, out=self.highest)
        kept = self.highest - self.lowest <= DIVERGENCE  # not so where it is NaN
        if status.any() or not kept.all():
            kept &= status == 0
            self.divergent[self.rows[~kept]] = True
            energy = energy[kept]
            self._keep(kept)
        self._weigh(self._start_energy - energy)

    def _weigh(self, log_weight: FloatArray) -> None:
        self._accepted += np.exp(np.minimum(log_weight, 0.0))
        if self._done == 1:
            self.log_weight, self.sample = log_weight, copy_phase(self.point)
            return
        self.log_weight = np.logaddexp(self.log_weight, log_weight)
        taken = self._log_uniforms[self._done - 1] < log_weight - self.log_weight
        if taken.any():
            rows = np.flatnonzero(taken)
            put_rows(self.sample, rows, take_rows(self.point, rows))

    def turn_back(self, metric: Metric, slowed: float = 0.0) -> None:
        """Drop halves in which a subtree that ends at the newest point turns back.

        Parameters
        ----------
        metric, slowed
            See :func:`surrokit_hmc.half.turns_back`.
        """
        momenta, index = self.point.momenta, self._done - 1
        self.momentum_sum += momenta
        level = (index >> 1).bit_count()
        if index % 2 == 0:  # begins a subtree at each level that is not under way
            self._first[level], self._sum[level] = momenta, self.momentum_sum
            return
        ending = (~index & (index + 1)).bit_length() - 1  # subtrees of 2, 4, ... points end here
        levels = slice(level - ending + 1, level + 1)
        first = self._first[levels]
        turning = turns_back(
            metric,
            first,
            momenta,
            self.momentum_sum - self._sum[levels] + first,
            n_points=2 ** np.arange(ending, 0, -1),
            slowed=slowed,
        )
        if turning.any():
            self._keep(~turning)

    def finish(self) -> None:
        """Fill in what concerns all halves."""
        self.acceptance[self.rows] = self._accepted
        self.n_steps[self.rows] = self._done

    def _keep(self, sound: BoolArray) -> None:
        self.finish()
        rows = np.flatnonzero(sound)
        self.rows = self.rows[rows]
        self.point, self.sample = take_rows(self.point, rows), take_rows(self.sample, rows)
        self.log_weight, self.momentum_sum = self.log_weight[rows], self.momentum_sum.take(rows, 0)
        self.lowest, self.highest = self.lowest[rows], self.highest[rows]
        self._start_energy, self._accepted = self._start_energy[rows], self._accepted[rows]
        self._log_uniforms = self._log_uniforms.take(rows, 1)
        self._first, self._sum = self._first.take(rows, 1), self._sum.take(rows, 1)
