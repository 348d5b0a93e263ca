"""The recipe of a run, which is filled in step by step, and the default sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import attrs

from surrokit.capabilities import GRADIENT
from surrokit.contracts.explorer import Past
from surrokit.contracts.learner import Evaluations, Learner
from surrokit.contracts.potential import Potential
from surrokit.contracts.sampler import Sampler
from surrokit.cost.budget import Budget
from surrokit.executors.spread import Ahead
from surrokit.history.scratch import Keep
from surrokit.model.calls import OnError
from surrokit.model.model import calls_per_gradient
from surrokit.plan.fallback import Fallback
from surrokit.plan.safety import Safety
from surrokit.plan.standby import Standby
from surrokit.registry.catalogue import Catalogue
from surrokit.registry.composer import name_and_settings
from surrokit.registry.purposes import NO_LEARNING
from surrokit.result.choice import Choice, Replacement
from surrokit.types import FloatArray

WARMUP = 1000
"""Most iterations of warm-up where no number is given."""

DRAWS = 1000
"""Draws kept of each chain where no number is given."""

MOST_DRAWS = 100_000
"""Most draws of each chain where their quality ends the run and no number is given."""

TUNED_AFTER_DROP = 300
"""Iterations of warm-up on the exact potential where a surrogate was not worth its cost."""

APPROACHED = 400
"""Iterations at most of a warm-up of open length, where exact chains begin about modes."""

TUNED_AFTER_RESTART = 100
"""Iterations of warm-up that follow the repair when draws begin again."""

SETTLING, SHORTEST = 25, 4
"""Iterations of warm-up after an exploration that has tuned the run's sampler, and the fewest where
it foretells an acceptance of at least :data:`SURE`.

Each iteration is paid for, and few are enough: chains begin at about draws of the surrogate, and
proposals are nearly independent.
"""

SURE, STANDING = 0.8, 1.1e-7
"""Foretold acceptance from which on fewer iterations are enough: as many as leave a chain where it
began with such a probability."""

JUDGED = 20
"""Last iterations of the warm-up by which a surrogate is judged again; :data:`SHORTEST` are enough
if there are no more."""

PART_BEFORE_DRAWS = 0.5
"""Part of the budget that exploration and a warm-up of open length may take together."""


def settling(foretold: float | None) -> int:
    """Return the iterations of warm-up after an exploration, by the acceptance it foretells."""
    if foretold is None or foretold < SURE:
        return SETTLING
    if foretold == 1.0:
        return SHORTEST
    return max(math.ceil(math.log(STANDING) / math.log1p(-foretold)), SHORTEST)


LAST_PART = 0.1
"""Part of the iterations so far that a warm-up of open length still makes once its part of the
budget is about used up.

A limit is most likely reached where iterations are expensive; chains forget that meanwhile.
"""


def ending(iteration: int) -> int:
    """Return the last iteration of a warm-up whose budget is about used up at ``iteration``."""
    return iteration + math.ceil(LAST_PART * iteration)


GRADIENTS_A_DRAW = 10
"""Gradients that an iteration of HMC is expected to take."""

MANY_TIMES, NAMED_TIMES = 50, 500
"""Times as many calls as are expected, at which a run without ``max_calls`` ends: one whose parts
are picked, and one whose sampler or surrogate is named, as these may take more on purpose."""

_OF_TAILS = 4.5
"""Variance of the 5 % quantile of a normal distribution, times the draws, in its variances."""


@attrs.frozen(kw_only=True, eq=False)
class Recipe:
    """The parts, sizes and limits of a run.

    Each step returns a new recipe: a policy fills in open parts (:meth:`fill`), and
    :func:`surrokit.plan.parts.make_parts` puts objects in the place of names.

    Parameters
    ----------
    exact
        The target.
    name
        Its name.
    target
        The name of a registered target, alone or with settings; None of any other one.
    seed
        What makes the run's generator again; an ellipsis where that is not known.
    sampler, surrogate, schedule, explorer, correction
        Names, pairs of name and settings, objects, or None where left open. Once parts are made
        they are objects. Sampler and correction are not bound to a potential yet; the surrogate
        is a ready potential, or None where there is none or it must learn first.
    policy
        Picks these parts where neither a sampler nor a surrogate is named; given likewise.
    settings
        More settings of the sampler.
    chains, warmup, draws
        Sizes; None where left open.
    initial : ndarray of shape (chains, dim), optional
        Starts of the chains in the sampling coordinates; once calls are timed, the positions that
        were used for that.
    evaluations
        Exact evaluations already paid for, in the sampling coordinates.
    past
        Draws of earlier runs; None without.
    on_error
        What to do where the target fails.
    retries
        How often a position that failed is evaluated again at most, with ``"retry"``.
    keep
        Where draws are.
    safety
        What to do when the surrogate fails.
    budget
        Limits of the run.
    exploration
        Limits of the exploration alone, which then ends early.
    fallback
        The exact kernel that replaces a surrogate not worth its cost; None to keep the surrogate.
    standby
        The sampler that replaces one whose paths are too dear; None to keep the run's own.
    chosen
        The parts filled in, why, and what replaced them later; None where there are none such.
    noticed
        What was noticed of the target on the way, in sentences.
    learner
        The learner; None for a run that learns nothing, and before parts are made.
    exact_sampler
        Makes exact transitions beside those on a surrogate; None without a surrogate, or where no
        sampler suits the target.
    ahead
        Evaluates positions by workers before anybody asks for them; None for nobody.
    workers
        Calls of the target that may go on at once.
    timed
        Seconds of a value and of a gradient at one position, None where there is no gradient; None
        where no calls were timed.
    described
        Kind of part to a description, for observers and the output.
    """

    exact: Potential
    name: str = "target"
    target: Any = None
    seed: Any = ...
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
    past: Past | None = None
    on_error: OnError = "reject"
    retries: int = 0
    keep: Keep = "memory"
    safety: Safety = attrs.field(factory=Safety)
    budget: Budget = attrs.field(factory=Budget)
    exploration: Budget = attrs.field(factory=Budget)
    fallback: Fallback | None = None
    standby: Standby | None = None
    chosen: Choice | None = None
    noticed: tuple[str, ...] = ()
    learner: Learner | None = None
    exact_sampler: Sampler | None = None
    ahead: Ahead | None = None
    workers: int = 1
    timed: tuple[float, float | None] | None = None
    described: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def choice(self) -> str | None:
        """The parts filled in, and why, in words; None where none was."""
        return None if self.chosen is None else str(self.chosen)

    @property
    def is_open(self) -> bool:
        """Whether a policy picks the parts."""
        return self.sampler is None and self.surrogate is None

    @property
    def most_warmup(self) -> int:
        """Most iterations of warm-up, as far as is known before the run."""
        return WARMUP if self.warmup is None else self.warmup

    @property
    def most_draws(self) -> int:
        """Most draws of each chain."""
        if self.draws is not None:
            return self.draws
        return MOST_DRAWS if self.budget.looks_at_draws else DRAWS

    @property
    def wanted_draws(self) -> int:
        """Number of about independent draws of each chain that would be enough."""
        if self.budget.target_mcse is not None:
            return min(
                self.most_draws, math.ceil(_OF_TAILS / self.budget.target_mcse**2 / self.chains)
            )
        if self.budget.target_ess is None:
            return min(self.most_draws, DRAWS) if self.draws is None else self.draws
        return min(self.most_draws, math.ceil(self.budget.target_ess / self.chains))

    @property
    def most_calls(self) -> float:
        """The default limit on calls, which ends a run that would go on for ever.

        Iterations are expected to take ten gradients each, or as many as ``n_steps`` says. Where
        gradients are made of values, or there are none, half as many values as a gradient to one
        side: chains that move by values alone take one.
        """
        price: float = max(GRADIENTS_A_DRAW, self.settings.get("n_steps") or 0)
        if calls_per_gradient(self.exact) > 1 or GRADIENT not in self.exact.capabilities:
            price = (1 + self.exact.dim) / 2
        iterations = self.chains * (self.most_warmup + max(self.wanted_draws, DRAWS))
        return price * iterations * (MANY_TIMES if self.is_open else NAMED_TIMES)

    def expected_calls(self, *, learns: bool) -> int:
        """Return the calls that chains are expected to take, warm-up included.

        Parameters
        ----------
        learns
            Whether they move on a surrogate: a draw then takes a value, as does an iteration of a
            warm-up whose length is given.
        """
        if learns:
            return self.chains * (self.wanted_draws + (self.warmup or 0))
        # exact chains of a run whose parts are picked begin about modes
        led = self.warmup is None and self.chosen is not None and GRADIENT in self.sampler.needs
        iterations = self.chains * ((APPROACHED if led else self.most_warmup) + self.wanted_draws)
        if GRADIENT not in self.sampler.needs:
            return iterations
        longest = getattr(self.sampler, "n_steps", None)
        steps = GRADIENTS_A_DRAW if longest is None else math.ceil((1 + longest) / 2)
        return steps * calls_per_gradient(self.exact) * iterations

    @property
    def exploration_limit(self) -> Budget:
        """The budget of the exploration, from all limits that end it early.

        What a search for a surrogate may cost is no limit where nothing is learnt: chains of an
        exact sampler go on until they are where the mass is.
        """
        part = Budget() if self.warmup is not None else self.budget.part(PART_BEFORE_DRAWS)
        return part if self.learner is None else part.within(self.exploration)

    @property
    def hurry(self) -> Budget:
        """The part of the budget after which a warm-up of open length comes to its end."""
        return self.budget.part(PART_BEFORE_DRAWS / (1.0 + LAST_PART))

    def needs_surrogate(self, catalogue: Catalogue) -> bool:
        """Return whether something was given that only a surrogate can use."""
        given = (self.explorer, self.evaluations)
        return (
            self.schedule not in (None, catalogue.pick("schedule", NO_LEARNING))
            or any(part is not None for part in given)
            or bool(self.safety.mix)
            or self.safety.restart
        )

    def fill(self, reason: str, **parts: Any) -> Recipe:
        """Return a copy with parts filled in.

        Parameters
        ----------
        reason
            Why these parts, with the figures measured; it follows the reasons of parts that were
            filled in before.
        **parts
            Fields with their new values: names, pairs of name and settings, or objects.
        """
        recipe = attrs.evolve(self, **parts)
        kinds = ("sampler", "surrogate", "explorer", "schedule", "correction")
        specs = {kind: getattr(recipe, kind) for kind in kinds}
        given = {kind: _spell(spec) for kind, spec in specs.items() if spec}
        chosen = attrs.evolve(self.chosen or Choice(), parts=given).because(reason)
        return attrs.evolve(recipe, chosen=chosen)

    def replace_sampler(self, reason: str) -> Recipe:
        """Return the recipe that goes on with the sampler that stands by.

        Parameters
        ----------
        reason
            Why the run's own is not worth its cost.
        """
        standby = self.standby
        assert standby is not None
        own = self.described["sampler"]
        return attrs.evolve(
            self,
            sampler=standby.sampler,
            standby=None,
            chosen=(self.chosen or Choice()).replace(
                Replacement(kind="sampler", old=own, new=standby.name, reason=reason)
            ),
            described={**self.described, "sampler": standby.name},
        )

    def drop_surrogate(self, reason: str) -> Recipe:
        """Return the recipe that goes on with the fallback; its parts must be made already.

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
            standby=None,
            safety=attrs.evolve(self.safety, mix=0.0, restart=False),
            chosen=(self.chosen or Choice()).replace(
                Replacement(kind="surrogate", new=fallback.name, reason=reason)
            ),
            described={**self.described, **fallback.described},
        )


def _spell(spec: Any) -> str:
    """Return a part as it would be typed, or described where it is an object."""
    return repr(spec) if name_and_settings(spec) is not None else f"<{type(spec).__name__}>"
