"""The leapfrog integrator of Algorithm 1, with merged half steps."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.arguments import all_finite
from surrokit.capabilities import GRADIENT, GRADIENT_ALONE
from surrokit.interfaces import Hamiltonian, Phase, Status
from surrokit.kernel.hamiltonian import constant_metric, copy_phase, put_rows
from surrokit.limits import check_deadline
from surrokit.potentials import with_gradient, with_gradient_alone
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
        """Follow each chain's path for its number of steps; see the protocol.

        Raises
        ------
        ConfigurationError
            If the metric changes with position.
        """
        if len(n_steps) and n_steps.max() == 1:
            single = _one_step(hamiltonian, phase, step_size)
            if single is not None:
                return single
        paths = _Paths(hamiltonian, phase, step_size, n_steps)
        while len(paths.chains):
            paths.follow()
            paths.arrive()
        return paths.ends()


def _one_step(
    hamiltonian: Hamiltonian, phase: Phase, step_size: FloatArray
) -> tuple[Phase, IntArray] | None:
    """Return the end of paths of one step, at half the overhead; None if one is lost on its way."""
    steps = step_size[:, None]
    half_squares = 0.5 * steps * steps
    # momenta times the step size, with the same rounding as on longer paths
    momenta = phase.momenta * steps - half_squares * phase.cache["gradient"]
    velocity = constant_metric(hamiltonian.metric, "leapfrog").velocity
    positions = phase.positions + velocity(momenta)
    if not all_finite(positions):
        return None
    value, gradient = with_gradient(hamiltonian.potential).value_and_gradient(positions)
    momenta = (momenta - half_squares * gradient) / steps
    end = Phase(positions=positions, momenta=momenta, cache={"value": value, "gradient": gradient})
    return end, _status(end)


def _status(end: Phase) -> IntArray:
    value, momenta = end.cache["value"], end.momenta
    if all_finite(value) and all_finite(momenta):
        return np.full(len(value), Status.OK, dtype=np.int64)
    finite = np.isfinite(value) & np.isfinite(momenta).all(axis=1)
    return np.where(finite, Status.OK, Status.NOT_FINITE)


class _Paths:
    """The paths under way, longest first, so that those still going are always a leading slice.

    Momenta are kept times the step size, which saves a product in every drift.
    """

    def __init__(
        self, hamiltonian: Hamiltonian, phase: Phase, step_size: FloatArray, n_steps: IntArray
    ) -> None:
        potential = hamiltonian.potential
        self.value_and_gradient = with_gradient(potential).value_and_gradient
        self.gradient = (
            with_gradient_alone(potential).gradient
            if GRADIENT_ALONE in potential.capabilities
            else lambda positions: self.value_and_gradient(positions)[1]
        )
        self.velocity = constant_metric(hamiltonian.metric, "leapfrog").velocity
        self.start = phase
        self.chains = np.argsort(-n_steps, kind="stable")
        self.lengths = n_steps[self.chains]
        self.to_next_end = int(self.lengths[-1])
        self.step_size = step_size[self.chains, None]
        self.squared_step = self.step_size * self.step_size
        self.positions = phase.positions[self.chains]
        self.momenta = phase.momenta[self.chains] * self.step_size
        self.momenta -= 0.5 * self.squared_step * phase.cache["gradient"][self.chains]
        self.groups: list[tuple[IntArray, Phase]] = []

    def follow(self) -> None:
        """Drift and kick all paths, up to the last kick of the shortest."""
        positions, momenta, squared_step = self.positions, self.momenta, self.squared_step
        while self.to_next_end > 1:
            check_deadline()
            positions += self.velocity(momenta)
            if not all_finite(positions):
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
        if not all_finite(self.positions):
            self._drop_the_lost()
        if not len(self.chains):
            return
        value, gradient = self.value_and_gradient(self.positions)
        if self.to_next_end == 1:
            gradient = self._put_away(value, gradient)
            if not len(self.chains):
                return
        else:
            self.to_next_end -= 1
        self.momenta -= self.squared_step * gradient

    def _put_away(self, value: FloatArray, gradient: FloatArray) -> FloatArray:
        """Keep the ends of the shortest paths; return the gradients of those that go on."""
        going = int(np.count_nonzero(self.lengths > self.lengths[-1]))
        rows = slice(going, None)
        kicked = self.momenta[rows] - 0.5 * self.squared_step[rows] * gradient[rows]
        end = Phase(
            positions=self.positions[rows],
            momenta=kicked / self.step_size[rows],
            cache={"value": value[rows], "gradient": gradient[rows]},
        )
        self.groups.append((self.chains[rows], end))
        self.to_next_end = 0
        if going:
            self._keep_only(np.arange(going))
        else:
            self.chains = self.chains[:0]
        return gradient[:going]

    def ends(self) -> tuple[Phase, IntArray]:
        """Return the end and status of every path, once all have come to one."""
        n = len(self.start.positions)
        if len(self.groups) == 1 and len(self.groups[0][0]) == n:
            _, end = self.groups[0]  # all were of one length, so they are in order
        else:
            nowhere = {
                "value": np.full(n, np.inf),
                "gradient": np.full_like(self.start.positions, np.nan),
            }
            end = copy_phase(attrs.evolve(self.start, cache=nowhere))
            for chains, part in self.groups:
                put_rows(end, chains, part)
        return end, _status(end)

    def _drop_the_lost(self) -> None:
        self._keep_only(np.flatnonzero(np.isfinite(self.positions).all(axis=1)))

    def _keep_only(self, rows: IntArray) -> None:
        shortest = self.lengths[-1]
        self.chains, self.lengths = self.chains[rows], self.lengths[rows]
        self.step_size, self.squared_step = self.step_size[rows], self.squared_step[rows]
        self.positions, self.momenta = self.positions[rows], self.momenta[rows]
        if rows.size:  # the shortest path may be among those dropped
            self.to_next_end += int(self.lengths[-1] - shortest)
