"""A sampler of an earlier run, with what was tuned for it."""

from __future__ import annotations

from typing import Any

import attrs

from surrokit.contracts.potential import Potential
from surrokit.contracts.sampler import Kernel, Sampler, Tuning
from surrokit.types import Capabilities


@attrs.frozen(kw_only=True, eq=False)
class TunedSampler:
    """Can be used again without a warm-up; with one it is tuned afresh.

    Parameters
    ----------
    sampler
        The settings.
    tuning
        What a run has found for them.
    """

    sampler: Sampler
    tuning: Tuning

    @property
    def needs(self) -> Capabilities:
        """What the sampler needs."""
        return self.sampler.needs

    @property
    def tunes(self) -> frozenset[str]:
        """What its user left free."""
        return self.sampler.tunes

    @property
    def target_acceptance(self) -> float:
        """The sampler's."""
        return self.sampler.target_acceptance

    def bind(self, potential: Potential, tuning: Tuning) -> Kernel:
        """Return the sampler's kernel."""
        return self.sampler.bind(potential, tuning)

    def __getattr__(self, name: str) -> Any:
        """Return what else the sampler says; of a sampler inside it, with the same tuning."""
        found = getattr(self.sampler, name)
        return attrs.evolve(self, sampler=found) if name == "kernel" else found
