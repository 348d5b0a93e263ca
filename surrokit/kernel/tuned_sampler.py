"""A sampler of an earlier run, with what was tuned for it."""

from __future__ import annotations

from typing import Any

import attrs

from surrokit.contracts.sampler import Sampler, Tuning


@attrs.frozen(kw_only=True, eq=False)
class TunedSampler:
    """Can be used again without a warm-up; with one it is tuned afresh.

    All else that a sampler says, ``bind`` too, is the sampler's.

    Parameters
    ----------
    sampler
        The settings.
    tuning
        What a run has found for them.
    """

    sampler: Sampler
    tuning: Tuning

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.sampler, name)
        # a sampler inside is tuned as well
        return attrs.evolve(self, sampler=found) if name == "kernel" else found
