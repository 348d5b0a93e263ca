"""Random-walk Metropolis: needs nothing but values."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.contracts.potential import Potential
from surrokit.contracts.sampler import ChainState, Proposal, Tuning
from surrokit.kernel.latest import latest
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
class Walk:
    """Normal moves, whatever the potential.

    Parameters
    ----------
    step
        Scale of a move.
    factor : ndarray of shape (dim, dim), optional
        L, with moves of covariance L L^T before they are scaled; the identity if not known.
    """

    step: float
    factor: FloatArray | None = None

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
