"""Random-walk Metropolis: needs nothing but values."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.contracts.potential import Potential
from surrokit.contracts.sampler import ChainState, Proposal, Tuning
from surrokit.kernel.in_use import step_in_use
from surrokit.settings import fraction, optional_positive
from surrokit.types import Cache, Capabilities, FloatArray


@attrs.frozen(kw_only=True, eq=False)
class RandomWalk:
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
    tuning: Tuning | None = None
    _factor: FloatArray | None = attrs.field(init=False)

    @_factor.default
    def _cholesky(self) -> FloatArray | None:
        if self.step_size is not None or self.tuning is None or self.tuning.covariance is None:
            return None
        return np.asarray(np.linalg.cholesky(self.tuning.covariance))

    @property
    def potential(self) -> Potential | None:
        """None: moves need no potential."""
        return None

    @property
    def needs(self) -> Capabilities:
        """Nothing."""
        return frozenset()

    @property
    def tunes(self) -> frozenset[str]:
        """Step size and covariance, unless a step size was given."""
        return frozenset({"step_size", "metric"}) if self.step_size is None else frozenset()

    @property
    def step(self) -> float:
        """The step size in use, given or tuned.

        Raises
        ------
        ConfigurationError
            If it is neither.
        """
        return step_in_use("random-walk", self.step_size, self.tuning)

    def with_potential(self, potential: Potential) -> RandomWalk:  # noqa: ARG002
        """Return itself."""
        return self

    def tuned(self, tuning: Tuning) -> RandomWalk:
        """Return a copy that uses ``tuning`` unless a step size was given."""
        return attrs.evolve(self, tuning=tuning)

    def cache(self, positions: FloatArray) -> Cache:  # noqa: ARG002
        """Return nothing."""
        return {}

    def propose(self, state: ChainState, rng: np.random.Generator) -> Proposal:
        """Move each chain by one normal draw."""
        move = rng.standard_normal(state.positions.shape)
        if self._factor is not None:
            move = move @ self._factor.T
        return Proposal(positions=state.positions + self.step * move)
