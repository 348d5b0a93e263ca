"""Moves that leave a normal distribution as it is: independent draws, or shorter ones."""

from __future__ import annotations

import math

import attrs
import numpy as np

from surrokit.capabilities import GAUSSIAN
from surrokit.contracts.dynamics import Status
from surrokit.contracts.potential import GaussianPotential, Potential, with_gaussian
from surrokit.contracts.sampler import ChainState, Proposal, Tuning
from surrokit.settings import fraction, optional_positive
from surrokit.types import Cache, Capabilities, FloatArray


@attrs.frozen(kw_only=True, eq=False)
class GaussianMoves:
    """q' = mean + sqrt(1 - b^2) (q - mean) + b L z with z standard normal.

    The move is reversible for exp(-V), the normal distribution with this mean and covariance
    L L^T, so that c = V(q') - V(q). With b = 1 proposals are independent draws of it; with smaller
    b they are the Crank-Nicolson moves of Neal (1999) and Cotter, Roberts, Stuart and White (2013,
    arXiv:1202.0709), which stay near the start and are accepted the more often.

    Parameters
    ----------
    step_size
        b; more than 1 counts as 1. None has it tuned by the exact acceptance, and gives
        independent draws wherever they are accepted often enough.
    target_acceptance
        Mean exact acceptance below which proposals are shortened.

    Raises
    ------
    ConfigurationError
        If a setting is out of range.
    """

    step_size: float | None = attrs.field(default=None, validator=optional_positive)
    target_acceptance: float = attrs.field(default=0.35, validator=fraction)

    @property
    def needs(self) -> Capabilities:
        """A normal distribution."""
        return frozenset({GAUSSIAN})

    @property
    def tunes(self) -> frozenset[str]:
        """The step size, unless it was given."""
        return frozenset({"step_size"}) if self.step_size is None else frozenset()

    @property
    def largest_step(self) -> float:
        """Step size from which on proposals are independent."""
        return 1.0

    def bind(self, potential: Potential, tuning: Tuning) -> GaussianKernel:
        """Return the moves of a normal distribution; ``tuning`` gives b unless it was given.

        Raises
        ------
        CapabilityError
            If the potential is not ``gaussian``.
        """
        b = tuning.step_size if self.step_size is None else self.step_size
        return GaussianKernel(potential=with_gaussian(potential), step=min(b, 1.0))


@attrs.frozen(kw_only=True, eq=False)
class GaussianKernel:
    """Moves of one normal distribution.

    Parameters
    ----------
    potential
        V.
    step
        b.
    """

    potential: GaussianPotential
    step: float

    def cache(self, positions: FloatArray) -> Cache:
        """Return V, shape (n,), at positions of shape (n, dim)."""
        return {"value": self.potential.value(positions)}

    def propose(self, state: ChainState, rng: np.random.Generator) -> Proposal:
        """Move every chain once."""
        normal = self.potential
        n, dim = state.positions.shape
        b = self.step
        moves = b * rng.standard_normal((n, dim)) @ normal.factor.T
        positions = normal.mean + math.sqrt(1.0 - b * b) * (state.positions - normal.mean) + moves
        value = normal.value(positions)
        return Proposal(
            positions=positions,
            log_correction=value - state.cache["value"],
            moved=np.ones(n, dtype=bool),
            status=np.where(np.isfinite(value), Status.OK, Status.NOT_FINITE),
            cache={"value": value},
            source=normal,
            log_path_ratio=None,
            n_steps=np.ones(n, dtype=np.int64),
        )
