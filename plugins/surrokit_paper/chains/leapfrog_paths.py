"""Paths of the leapfrog integrator step by step, for pictures."""

from __future__ import annotations

import attrs
import numpy as np

import surrokit as sk
from surrokit.contracts.dynamics import Hamiltonian, Phase
from surrokit.contracts.potential import Potential
from surrokit.types import FloatArray


@attrs.frozen(kw_only=True, eq=False)
class LeapfrogPaths:
    """Several paths from one start, with unit masses.

    Parameters
    ----------
    positions : ndarray of shape (n, n_steps + 1, dim)
        From the start to the proposals.
    energy_growth : ndarray of shape (n,)
        Growth of the exact energy H from the start to each proposal, in nats.
    """

    positions: FloatArray
    energy_growth: FloatArray

    @property
    def acceptance(self) -> FloatArray:
        """Exact acceptance probability of each proposal, shape (n,)."""
        return np.exp(-np.maximum(self.energy_growth, 0.0))


def leapfrog_paths(
    exact: Potential,
    potential: Potential,
    start: FloatArray,
    momenta: FloatArray,
    *,
    step_size: float,
    n_steps: int,
) -> LeapfrogPaths:
    """Follow a potential from one start with several momenta.

    Parameters
    ----------
    exact
        U, which decides on acceptance.
    potential
        What the paths follow: U itself, or a surrogate of it.
    start : ndarray of shape (dim,)
        Where they start.
    momenta : ndarray of shape (n, dim)
        One for each path.
    step_size, n_steps
        Of every path.
    """
    leapfrog = sk.make("integrator", "leapfrog")
    hamiltonian = Hamiltonian(potential=potential, metric=sk.make("metric", "identity"))
    n = len(momenta)
    starts = np.tile(start, (n, 1))
    phase = Phase(positions=starts, momenta=momenta, cache=leapfrog.cache(hamiltonian, starts))
    kept = [starts]
    for _ in range(n_steps):
        phase, _ = leapfrog.advance(
            hamiltonian, phase, np.full(n, step_size), np.ones(n, dtype=np.int64)
        )
        kept.append(phase.positions)
    kinetic = 0.5 * (np.square(phase.momenta) - np.square(momenta)).sum(axis=1)
    return LeapfrogPaths(
        positions=np.stack(kept, axis=1),
        energy_growth=exact.value(phase.positions) - exact.value(starts) + kinetic,
    )
