"""Normal moves and the random walk."""

from __future__ import annotations

import math

import attrs
import numpy as np

from surrokit.arguments import fraction, optional_positive
from surrokit.capabilities import GAUSSIAN
from surrokit.interfaces import NOT_FINITE, OK, ChainState, Kernel, Proposal, Sampler, Tuning
from surrokit.kernel.kernel import latest
from surrokit.potentials import FullPotential, Potential, with_gaussian
from surrokit.types import Cache, Capabilities, FloatArray


@attrs.frozen(kw_only=True, eq=False)
class GaussianMoves(Sampler):
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
class GaussianKernel(Kernel):
    """Moves of one normal distribution."""

    potential: FullPotential  # V
    step: float  # b

    @property
    def is_independent(self) -> bool:
        """Whether b is 1."""
        return self.step == 1.0

    def cache(self, positions: FloatArray) -> Cache:
        """Return V, shape (n,), at positions of shape (n, dim)."""
        return {"value": self.potential.value(positions)}

    def propose(self, state: ChainState, rng: np.random.Generator) -> Proposal:
        """Move every chain once."""
        normal, b, n = self.potential, self.step, len(state.positions)
        moves = b * rng.standard_normal(state.positions.shape) @ normal.factor.T
        positions = normal.mean + math.sqrt(1.0 - b * b) * (state.positions - normal.mean) + moves
        value = normal.value(positions)
        return Proposal(
            positions=positions,
            log_correction=value - state.cache["value"],
            moved=np.ones(n, dtype=bool),
            status=np.where(np.isfinite(value), OK, NOT_FINITE),
            cache={"value": value},
            source=normal,
            log_path_ratio=None,
            n_steps=np.ones(n, dtype=np.int64),
        )


@attrs.frozen(kw_only=True, eq=False)
class RandomWalk(Sampler):
    """Normal moves around the current position (Roberts, Gelman and Gilks 1997).

    Parameters
    ----------
    step_size
        Standard deviation of a move in each direction, in units of the target's once a covariance
        is known; None leaves it, and the covariance, to be tuned.
    target_acceptance
        Mean acceptance that tuning aims at.

    Raises
    ------
    ConfigurationError
        If a setting is out of range.
    """

    step_size: float | None = attrs.field(default=None, validator=optional_positive)
    target_acceptance: float = attrs.field(default=0.234, validator=fraction)
    uses_potential = False

    @property
    def needs(self) -> Capabilities:
        """Nothing."""
        return frozenset()

    @property
    def tunes(self) -> frozenset[str]:
        """Step size and covariance, unless a step size was given."""
        return frozenset({"step_size", "metric"}) if self.step_size is None else frozenset()

    def bind(self, potential: Potential, tuning: Tuning) -> Walk:  # noqa: ARG002
        """Return the walk, which uses ``tuning`` unless a step size was given."""
        if self.step_size is not None:
            return Walk(step=self.step_size)
        return Walk(step=tuning.step_size, factor=self._factor(tuning.covariance))

    @latest
    def _factor(self, covariance: FloatArray) -> FloatArray:
        return np.asarray(np.linalg.cholesky(covariance))


@attrs.frozen(kw_only=True, eq=False)
class Walk(Kernel):
    """Normal moves, whatever the potential."""

    step: float  # scale of a move
    factor: FloatArray | None = None  # L (dim, dim): moves have covariance step^2 L L^T

    potential = None

    def cache(self, positions: FloatArray) -> Cache:  # noqa: ARG002
        """Return nothing."""
        return {}

    def propose(self, state: ChainState, rng: np.random.Generator) -> Proposal:
        """Move each chain by one normal draw."""
        move = rng.standard_normal(state.positions.shape)
        if self.factor is not None:
            move = move @ self.factor.T
        return Proposal(positions=state.positions + self.step * move)
