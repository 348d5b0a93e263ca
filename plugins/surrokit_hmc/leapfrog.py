"""The leapfrog integrator of Algorithm 1, with merged half steps."""

from __future__ import annotations

import math

import attrs
import numpy as np

from surrokit.capabilities import GRADIENT, GRADIENT_ALONE, with_gradient, with_gradient_alone
from surrokit.hamiltonian import Hamiltonian
from surrokit.records import Phase, Status
from surrokit.types import Cache, Capabilities, FloatArray, IntArray


@attrs.frozen
class Leapfrog:
    """Half a kick, then drift and kick in turn, then half a kick; all chains as one batch.

    The two half kicks between drifts are merged, and the gradient at the start comes from the
    cache, so a path of L steps costs L gradients. (Written as in Algorithm 1 of Zhang, Shahbaba
    and Zhao (2017) it would cost 2 L.) Values are evaluated only where a path ends, if the
    potential can give gradients by themselves.

    A chain whose position or gradient stops being finite drops out with ``NOT_FINITE``; its
    reverse path would meet the same point.
    """

    @property
    def needs(self) -> Capabilities:
        """Gradients."""
        return frozenset({GRADIENT})

    def cache(self, hamiltonian: Hamiltonian, positions: FloatArray) -> Cache:
        """Return value, shape (n,), and gradient, shape (n, dim), at positions (n, dim)."""
        value, gradient = with_gradient(hamiltonian.potential).value_and_gradient(positions)
        return {"value": value, "gradient": gradient}

    def advance(
        self, hamiltonian: Hamiltonian, phase: Phase, step_size: FloatArray, n_steps: IntArray
    ) -> tuple[Phase, IntArray]:
        """Follow each chain's path for its number of steps; see the protocol."""
        paths = _Paths(hamiltonian, phase, step_size, n_steps)
        while len(paths.chains):
            paths.follow()
            paths.arrive()
        return paths.ends, paths.status


class _Paths:
    """The paths under way, longest first, so that those still going are always a leading slice.

    Momenta are kept times the step size, which saves a product in every drift.
    """

    def __init__(
        self, hamiltonian: Hamiltonian, phase: Phase, step_size: FloatArray, n_steps: IntArray
    ) -> None:
        n = len(n_steps)
        potential = hamiltonian.potential
        self.value_and_gradient = with_gradient(potential).value_and_gradient
        self.gradient = (
            with_gradient_alone(potential).gradient
            if GRADIENT_ALONE in potential.capabilities
            else lambda positions: self.value_and_gradient(positions)[1]
        )
        self.velocity = hamiltonian.metric.velocity
        self.chains = np.argsort(-n_steps, kind="stable")
        self.lengths = n_steps[self.chains]
        self.to_next_end = int(self.lengths[-1])
        self.step_size = step_size[self.chains, None]
        self.squared_step = np.square(self.step_size)
        self.positions = phase.positions[self.chains]
        self.momenta = phase.momenta[self.chains] * self.step_size
        self.momenta -= 0.5 * self.squared_step * phase.cache["gradient"][self.chains]
        self.status = np.full(n, Status.NOT_FINITE, dtype=np.int64)
        self.ends = Phase(
            positions=phase.positions.copy(),
            momenta=phase.momenta.copy(),
            cache={
                "value": np.full(n, np.inf),
                "gradient": np.full(phase.positions.shape, np.nan),
            },
        )

    def follow(self) -> None:
        """Drift and kick all paths, up to the last kick of the shortest."""
        positions, momenta, squared_step = self.positions, self.momenta, self.squared_step
        while self.to_next_end > 1:
            positions += self.velocity(momenta)
            if not _all_finite(positions):
                self._drop_the_lost()
                if not len(self.chains):
                    return
                positions, momenta, squared_step = self.positions, self.momenta, self.squared_step
            momenta -= squared_step * self.gradient(positions)
            self.to_next_end -= 1

    def arrive(self) -> None:
        """Make the last step of the shortest paths, put them away, and kick the others."""
        if not len(self.chains):
            return
        self.positions += self.velocity(self.momenta)
        if not _all_finite(self.positions):
            self._drop_the_lost()
        if not len(self.chains):
            return
        value, gradient = self.value_and_gradient(self.positions)
        if self.to_next_end == 1:
            gradient = self._put_away(value, gradient)
        else:
            self.to_next_end -= 1
        self.momenta -= self.squared_step * gradient

    def _put_away(self, value: FloatArray, gradient: FloatArray) -> FloatArray:
        """Keep the ends of the shortest paths; return the gradients of those that go on."""
        going = int(np.count_nonzero(self.lengths > self.lengths[-1]))
        rows = slice(going, None)
        chains = self.chains[rows]
        kicked = self.momenta[rows] - 0.5 * self.squared_step[rows] * gradient[rows]
        momenta = kicked / self.step_size[rows]
        finite = np.isfinite(momenta).all(axis=1) & np.isfinite(value[rows])
        self.status[chains[finite]] = Status.OK
        self.ends.positions[chains] = self.positions[rows]
        self.ends.momenta[chains] = momenta
        self.ends.cache["value"][chains] = value[rows]
        self.ends.cache["gradient"][chains] = gradient[rows]
        self.to_next_end = 0
        self._keep_only(np.arange(going))
        return gradient[:going]

    def _drop_the_lost(self) -> None:
        self._keep_only(np.flatnonzero(np.isfinite(self.positions).all(axis=1)))

    def _keep_only(self, rows: IntArray) -> None:
        shortest = self.lengths[-1]
        self.chains, self.lengths = self.chains[rows], self.lengths[rows]
        self.step_size, self.squared_step = self.step_size[rows], self.squared_step[rows]
        self.positions, self.momenta = self.positions[rows], self.momenta[rows]
        if rows.size:  # the shortest path may be among those dropped
            self.to_next_end += int(self.lengths[-1] - shortest)


def _all_finite(positions: FloatArray) -> bool:
    # One product is the cheapest test for the usual case. A gradient that is not finite shows
    # here too, one drift later.
    flat = positions.reshape(-1)
    return math.isfinite(flat.dot(flat)) or bool(np.isfinite(positions).all())
