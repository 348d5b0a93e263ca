"""Moves that leave a normal distribution as it is: independent draws, or shorter ones."""

from __future__ import annotations

import math

import attrs
import numpy as np

from surrokit.capabilities import GAUSSIAN
from surrokit.contracts.dynamics import Status
from surrokit.contracts.potential import GaussianPotential, Potential, with_gaussian
from surrokit.contracts.sampler import ChainState, Proposal, Tuning
from surrokit.kernel.in_use import potential_in_use, step_in_use
from surrokit.settings import HIDDEN, fraction, optional_positive
from surrokit.types import Cache, Capabilities, FloatArray


@attrs.frozen(kw_only=True, eq=False)
class Normal:
    """What moves need to know of a normal distribution.

    Parameters
    ----------
    mean : ndarray of shape (dim,)
        Its mean.
    factor : ndarray of shape (dim, dim)
        L, with L L^T its covariance.
    """

    mean: FloatArray
    factor: FloatArray

    @classmethod
    def of(cls, potential: Potential | None) -> Normal | None:
        """Return what a potential says of itself; None for one that is not normal."""
        if potential is None or GAUSSIAN not in potential.capabilities:
            return None
        normal: GaussianPotential = with_gaussian(potential)
        return cls(mean=normal.mean, factor=normal.factor)


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
    potential
        V, which must be ``gaussian``.
    tuning
        What tuning found.

    Raises
    ------
    ConfigurationError
        If a setting is out of range.
    """

    step_size: float | None = attrs.field(default=None, validator=optional_positive)
    target_acceptance: float = attrs.field(default=0.35, validator=fraction)
    potential: Potential | None = None
    tuning: Tuning | None = None
    normal: Normal | None = attrs.field(repr=False, metadata=HIDDEN)

    @normal.default
    def _of_potential(self) -> Normal | None:
        return Normal.of(self.potential)

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

    @property
    def step(self) -> float:
        """b, given or tuned.

        Raises
        ------
        ConfigurationError
            If it is neither.
        """
        return min(step_in_use("gaussian", self.step_size, self.tuning), 1.0)

    def with_potential(self, potential: Potential) -> GaussianMoves:
        """Return a copy that moves on another potential."""
        return attrs.evolve(self, potential=potential, normal=Normal.of(potential))

    def tuned(self, tuning: Tuning) -> GaussianMoves:
        """Return a copy that uses ``tuning`` unless a step size was given."""
        return attrs.evolve(self, tuning=tuning)

    def cache(self, positions: FloatArray) -> Cache:
        """Return V, shape (n,), at positions of shape (n, dim)."""
        return {"value": self._bound()[0].value(positions)}

    def propose(self, state: ChainState, rng: np.random.Generator) -> Proposal:
        """Move every chain once."""
        potential, normal = self._bound()
        n, dim = state.positions.shape
        b = self.step
        moves = b * rng.standard_normal((n, dim)) @ normal.factor.T
        positions = normal.mean + math.sqrt(1.0 - b * b) * (state.positions - normal.mean) + moves
        value = potential.value(positions)
        return Proposal(
            positions=positions,
            log_correction=value - state.cache["value"],
            moved=np.ones(n, dtype=bool),
            status=np.where(np.isfinite(value), Status.OK, Status.NOT_FINITE),
            cache={"value": value},
            source=potential,
            log_path_ratio=None,
            n_steps=np.ones(n, dtype=np.int64),
        )

    def _bound(self) -> tuple[Potential, Normal]:
        potential = potential_in_use("gaussian", self.potential)
        if self.normal is None:
            with_gaussian(potential)
        assert self.normal is not None
        return potential, self.normal
