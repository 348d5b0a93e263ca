"""A correction that passes everything on, for mutants that spoil one thing."""

from __future__ import annotations

from typing import Self

import attrs
import numpy as np

from surrokit.interfaces import ChainState, Correction, Decider, Proposal, StepInfo
from surrokit.potentials import Potential
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

    def bind(self, potential: Potential) -> Decider:
        """Return what decides by an exact potential."""
        return _BrokenDecider(self.inner.bind(self.spoilt(potential)), self)

    def decide(
        self, decider: Decider, state: ChainState, proposal: Proposal, rng: np.random.Generator
    ) -> tuple[ChainState, StepInfo]:
        """Decide as the sound one does, which is bound."""
        return decider.decide(state, proposal, rng)

    def spoilt(self, potential: Potential) -> Potential:
        """Return what the sound one decides by."""
        return potential


@attrs.frozen(eq=False)
class _BrokenDecider:
    """A sound correction that is bound, and what spoils it."""

    inner: Decider
    mutant: BrokenCorrection

    def prepare(self, near: FloatArray) -> Self:
        """Prepare the sound one."""
        return attrs.evolve(self, inner=self.inner.prepare(near))

    def start(self, positions: FloatArray, cache: Cache, source: Potential | None) -> ChainState:
        """Start as the sound one does."""
        return self.inner.start(positions, cache, source)

    def decide(
        self, state: ChainState, proposal: Proposal, rng: np.random.Generator
    ) -> tuple[ChainState, StepInfo]:
        """Decide as the mutant does."""
        return self.mutant.decide(self.inner, state, proposal, rng)
