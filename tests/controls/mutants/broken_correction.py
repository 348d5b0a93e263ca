"""A correction that passes everything on, for mutants that spoil one thing."""

from __future__ import annotations

from typing import Self

import attrs
import numpy as np

from surrokit.contracts.potential import Potential
from surrokit.contracts.sampler import ChainState, Correction, Proposal, StepInfo
from surrokit.types import Cache, Capabilities, FloatArray


@attrs.frozen(kw_only=True, eq=False)
class BrokenCorrection:
    """Passes everything on to a sound correction; subclasses spoil it.

    Parameters
    ----------
    inner
        The sound correction.
    """

    inner: Correction

    @property
    def needs(self) -> Capabilities:
        """What the sound one needs."""
        return self.inner.needs

    def with_potential(self, potential: Potential) -> Self:
        """Return a copy with another exact potential."""
        return attrs.evolve(self, inner=self.inner.with_potential(self.spoilt(potential)))

    def prepared(self, near: FloatArray) -> Self:
        """Prepare the sound one."""
        return attrs.evolve(self, inner=self.inner.prepared(near))

    def start(self, positions: FloatArray, cache: Cache, source: Potential | None) -> ChainState:
        """Start as the sound one does."""
        return self.inner.start(positions, cache, source)

    def decide(
        self, state: ChainState, proposal: Proposal, rng: np.random.Generator
    ) -> tuple[ChainState, StepInfo]:
        """Decide as the sound one does."""
        return self.inner.decide(state, proposal, rng)

    def spoilt(self, potential: Potential) -> Potential:
        """Return what the sound one decides by."""
        return potential
