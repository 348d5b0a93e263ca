"""A sampler of an earlier run, with its tuning."""

from __future__ import annotations

from typing import Any

import attrs

from surrokit.contracts.sampler import Sampler, Tuning


@attrs.frozen(kw_only=True, eq=False)
class TunedSampler:
    """A tuned sampler, for use without a warm-up; a warm-up tunes it afresh.

    All other attributes, ``bind`` included, are those of the sampler.

    Parameters
    ----------
    sampler
        The sampler.
    tuning
        Tuning that a run found for it.
    """

    sampler: Sampler
    tuning: Tuning

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.sampler, name)
        # a sampler inside is tuned as well
        return attrs.evolve(self, sampler=found) if name == "kernel" else found
