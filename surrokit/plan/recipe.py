"""The recipe of a run: what was asked for, filled in step by step; and the usual figures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import attrs

from surrokit.contracts.learner import Evaluations, Learner
from surrokit.contracts.potential import Potential
from surrokit.contracts.sampler import Sampler
from surrokit.cost.budget import Budget
from surrokit.cost.calls import OnError
from surrokit.plan.fallback import Fallback
from surrokit.plan.safety import Safety
from surrokit.registry.catalogue import Catalogue
from surrokit.registry.composer import name_and_settings
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


LAST_PART = 0.1
"""Part of the iterations so far that a warm-up of open length goes on for when its part of the
budget is about used up. By then the chains have forgotten that the limit found them where
iterations are dear."""


def ending(iteration: int) -> int:
    """Return the iteration at which a warm-up ends whose part of the budget is about used up."""
    return iteration + math.ceil(LAST_PART * iteration)


@attrs.frozen(kw_only=True, eq=False)
class Recipe:
    """What a run is made of: as asked for, filled in where it was open, and with all parts made.

    Each step returns a new one. A policy fills in what is open (:meth:`fill`), and
    :func:`surrokit.plan.parts.make_parts` puts objects in the place of names.

    Parameters
    ----------
    exact
        The target.
    name
        What to call it.
    sampler, surrogate, schedule, explorer, correction
        Names, pairs of name and settings, objects, or None where left open. Once parts are made,
        objects: sampler and correction not bound to a potential yet; as surrogate a potential that
        is ready, or None where there is none or it must learn first.
    policy
        What fills in these parts where neither a sampler nor a surrogate is named; likewise.
    settings
        More settings of the sampler.
    chains, warmup, draws
        Sizes; None where left open.
    initial : ndarray of shape (chains, dim), optional
        Where chains start, in the sampling coordinates; once calls were timed, where they were.
    evaluations
        Exact evaluations already paid for, in the sampling coordinates.
    on_error
        What to do where the target raises.
    safety
        What to do when the surrogate fails.
    budget
        Limits of the run.
    exploration
        Limits of the exploration alone, which then ends early.
    fallback
        What to go on with where the surrogate is not worth its cost; None to keep it.
    choice
        What was filled in and why; None where nothing was.
    learner
        Learns; None for a run that learns nothing, and before parts are made.
    exact_sampler
        Makes exact transitions beside those on a surrogate; None where there is no surrogate, or
        no sampler that the target suits.
    described
        Kind of part to a description, for observers and the output.
    """

    exact: Potential
    name: str = "target"
    sampler: Any = None
    surrogate: Any = None
    schedule: Any = None
    explorer: Any = None
    correction: Any = None
    policy: Any = None
    settings: Mapping[str, Any] = attrs.field(factory=dict)
    chains: int = 4
    warmup: int | None = None
    draws: int | None = None
    initial: FloatArray | None = None
    evaluations: Evaluations | None = None
    on_error: OnError = "reject"
    safety: Safety = attrs.field(factory=Safety)
    budget: Budget = attrs.field(factory=Budget)
    exploration: Budget = attrs.field(factory=Budget)
    fallback: Fallback | None = None
    choice: str | None = None
    learner: Learner | None = None
    exact_sampler: Sampler | None = None
    described: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def is_open(self) -> bool:
        """Whether a policy is to fill it in."""
        return self.sampler is None and self.surrogate is None

    @property
    def most_warmup(self) -> int:
        """Iterations of warm-up, as far as is known before the run."""
        return WARMUP if self.warmup is None else self.warmup

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

    @property
    def exploration_limit(self) -> Budget:
        """What the exploration may spend, with all that ends it early."""
        part = Budget() if self.warmup is not None else self.budget.part(PART_BEFORE_DRAWS)
        return part.within(self.exploration)

    @property
    def hurry(self) -> Budget:
        """What is used of the budget when a warm-up of open length comes to its end."""
        return self.budget.part(PART_BEFORE_DRAWS / (1.0 + LAST_PART))

    def needs_surrogate(self, catalogue: Catalogue) -> bool:
        """Return whether something was given that only a surrogate can use."""
        given = (self.explorer, self.evaluations)
        return (
            self.schedule not in (None, catalogue.pick("schedule", NO_LEARNING))
            or any(part is not None for part in given)
            or self.safety.mix > 0
            or self.safety.restart
        )

    def fill(self, reason: str, **parts: Any) -> Recipe:
        """Return a copy with parts filled in.

        Parameters
        ----------
        reason
            Why these, with the figures measured.
        **parts
            Fields and what they become: names, pairs of name and settings, or objects.
        """
        recipe = attrs.evolve(self, **parts)
        kinds = ("sampler", "surrogate", "explorer", "schedule", "correction")
        specs = {kind: getattr(recipe, kind) for kind in kinds}
        given = ", ".join(f"{kind}={_spell(spec)}" for kind, spec in specs.items() if spec)
        return attrs.evolve(recipe, choice=f"{given}: {reason}")

    def drop_surrogate(self, reason: str) -> Recipe:
        """Return the recipe of a run that goes on with its fallback, once parts were made.

        Parameters
        ----------
        reason
            Why the surrogate is not worth its cost.
        """
        fallback = self.fallback
        assert fallback is not None
        return attrs.evolve(
            self,
            sampler=fallback.sampler,
            correction=fallback.correction,
            schedule=fallback.schedule,
            surrogate=None,
            explorer=None,
            learner=None,
            exact_sampler=None,
            fallback=None,
            safety=attrs.evolve(self.safety, mix=0.0, restart=False),
            choice=f"{self.choice}; then {fallback.name} instead: {reason}",
            described={**self.described, **fallback.described},
        )


def _spell(spec: Any) -> str:
    """Return a part as it would be typed, or described where it is an object."""
    return repr(spec) if name_and_settings(spec) is not None else f"<{type(spec).__name__}>"
