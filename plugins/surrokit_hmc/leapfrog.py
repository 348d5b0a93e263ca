"""The leapfrog integrator of Algorithm 1, with merged half steps."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.capabilities import GRADIENT, GRADIENT_ALONE, with_gradient, with_gradient_alone
from surrokit.hamiltonian import Hamiltonian
from surrokit.protocols import Potential
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
        for step in range(1, int(n_steps.max()) + 1):
            paths.drift()
            if not len(paths.positions):
                break
            paths.kick_at(step)
        return paths.ends, paths.status


class _Paths:
    """The paths under way, longest first, so that those still going are always a leading slice."""

    def __init__(
        self, hamiltonian: Hamiltonian, phase: Phase, step_size: FloatArray, n_steps: IntArray
    ) -> None:
        n = len(n_steps)
        self.potential: Potential = hamiltonian.potential
        self.alone = GRADIENT_ALONE in hamiltonian.potential.capabilities
        self.velocity = hamiltonian.metric.velocity
        self.chains = np.argsort(-n_steps, kind="stable")
        self.n_steps = n_steps[self.chains]
        self.step_size = step_size[self.chains, None]
        self.positions = phase.positions[self.chains]
        self.momenta = phase.momenta[self.chains]
        self.momenta -= 0.5 * self.step_size * phase.cache["gradient"][self.chains]
        self.status = np.full(n, Status.NOT_FINITE, dtype=np.int64)
        self.ends = Phase(
            positions=phase.positions.copy(),
            momenta=phase.momenta.copy(),
            cache={
                "value": np.full(n, np.inf),
                "gradient": np.full(phase.positions.shape, np.nan),
            },
        )

    def drift(self) -> None:
        self.positions += self.step_size * self.velocity(self.momenta)
        self._drop_unless_finite(self.positions)

    def kick_at(self, step: int) -> None:
        """Kick all paths at their ``step``-th point; those that end there by half, and keep."""
        going = int(np.searchsorted(-self.n_steps, -step, side="left"))
        if going == len(self.n_steps) and self.alone:
            gradient = with_gradient_alone(self.potential).gradient(self.positions)
        else:
            value, gradient = with_gradient(self.potential).value_and_gradient(self.positions)
            self._keep_ends(going, value, gradient)
            if going < len(self.n_steps):
                self._keep_only(np.arange(going))
                gradient = gradient[:going]
        self.momenta -= self.step_size * gradient
        self._drop_unless_finite(gradient)

    def _keep_ends(self, going: int, value: FloatArray, gradient: FloatArray) -> None:
        rows = slice(going, None)
        chains = self.chains[rows]
        momenta = self.momenta[rows] - 0.5 * self.step_size[rows] * gradient[rows]
        finite = np.isfinite(momenta).all(axis=1) & np.isfinite(value[rows])
        self.status[chains[finite]] = Status.OK
        self.ends.positions[chains] = self.positions[rows]
        self.ends.momenta[chains] = momenta
        self.ends.cache["value"][chains] = value[rows]
        self.ends.cache["gradient"][chains] = gradient[rows]

    def _drop_unless_finite(self, array: FloatArray) -> None:
        if not np.isfinite(array.sum()):  # one reduction is the cheap test for the usual case
            self._keep_only(np.flatnonzero(np.isfinite(array).all(axis=1)))

    def _keep_only(self, rows: IntArray) -> None:
        self.chains, self.n_steps = self.chains[rows], self.n_steps[rows]
        self.step_size = self.step_size[rows]
        self.positions, self.momenta = self.positions[rows], self.momenta[rows]
