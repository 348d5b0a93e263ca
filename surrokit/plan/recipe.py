"""A request for a run, the choice where it leaves something open, and the usual figures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import attrs

from surrokit.contracts.potential import Potential
from surrokit.cost.budget import Budget
from surrokit.cost.calls import OnError
from surrokit.plan.policy import Fixed
from surrokit.plan.safety import Safety
from surrokit.registry.catalogue import Catalogue
from surrokit.registry.purposes import NO_LEARNING
from surrokit.types import FloatArray

WARMUP = 1000
"""Iterations before any is kept, unless the run is told or knows better."""

DRAWS = 1000
"""Draws kept of each chain, unless the run is told otherwise."""

MOST_DRAWS = 100_000
"""Draws kept of each chain at most where a target ends the run and no number was given."""

TUNED_AFTER_DROP = 300
"""Iterations of warm-up on the exact potential where a surrogate was not worth its cost."""

SETTLING, SETTLING_SOON = 25, 10
"""Iterations of warm-up after an exploration that has tuned the run's sampler; the latter where it
foretells an acceptance of at least :data:`SURE`.

Chains begin at about draws of the surrogate and proposals are nearly independent, so few are left
where they began: with an acceptance of 0.8, one chain in ten million after ten iterations. And each
iteration is paid for.
"""

SURE = 0.8
"""Acceptance foretold by an exploration from which on chains settle soon."""

JUDGED = 20
"""The last of these, or half as many where there are no more, by which a surrogate is judged once
more."""

PART_BEFORE_DRAWS = 0.5
"""Part of the budget that a warm-up of open length may take, the exploration counted."""


def settling(foretold: float | None) -> int:
    """Return the iterations of warm-up after an exploration that foretells an acceptance."""
    return SETTLING_SOON if foretold is not None and foretold >= SURE else SETTLING


@attrs.frozen(kw_only=True, eq=False)
class Request:
    """What a user asks for.

    Parameters
    ----------
    exact
        The target.
    name
        What to call it.
    sampler, surrogate, schedule, explorer, correction
        Names, pairs of name and settings, objects, or None.
    policy
        What picks those that are not named; likewise.
    settings
        More settings of the sampler; None where not given.
    chains, warmup, draws
        Sizes; None where left open.
    initial : ndarray of shape (chains, dim), optional
        Starts in the sampling coordinates.
    evaluations
        As the user gave them.
    on_error
        What to do where the target raises.
    safety
        What to do when the surrogate fails.
    budget
        Limits of the run.
    """

    exact: Potential
    name: str
    sampler: Any
    surrogate: Any
    schedule: Any
    explorer: Any
    correction: Any
    policy: Any
    settings: Mapping[str, Any]
    chains: int
    warmup: int | None
    draws: int | None
    initial: FloatArray | None
    evaluations: Any
    on_error: OnError
    safety: Safety
    budget: Budget

    @property
    def most_draws(self) -> int:
        """Draws of each chain at most."""
        if self.draws is not None:
            return self.draws
        return MOST_DRAWS if self.budget.looks_at_draws else DRAWS

    @property
    def wanted_draws(self) -> int:
        """About independent draws of each chain that would do."""
        if self.budget.target_ess is None:
            return min(self.most_draws, DRAWS) if self.draws is None else self.draws
        return min(self.most_draws, math.ceil(self.budget.target_ess / self.chains))

    def fixed(self, catalogue: Catalogue) -> Fixed:
        """Return what is not to be picked."""
        learning_schedule = self.schedule not in (None, catalogue.pick("schedule", NO_LEARNING))
        given = (self.explorer, self.evaluations)
        learns = learning_schedule or any(part is not None for part in given)
        return Fixed(
            schedule=self.schedule,
            explorer=self.explorer,
            correction=self.correction,
            settings={name: value for name, value in self.settings.items() if value is not None},
            learns=learns or self.safety.mix > 0 or self.safety.restart,
            warms_up=self.warmup != 0,
        )
