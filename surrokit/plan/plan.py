"""The plan of a run: the parts that its recipe names, made and checked against each other."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from surrokit.capabilities import (
    FORWARD,
    GRADIENT,
    GRADIENT_ALONE,
    JACOBIAN,
    ROWS,
    reasons_of,
    require,
)
from surrokit.cheap import cheap_learner
from surrokit.cost.budget import Budget
from surrokit.errors import CapabilityError, ConfigurationError, SamplingWarning, ShapeError
from surrokit.interfaces import (
    Correction,
    Explorer,
    Findings,
    Learner,
    LearningProblem,
    Sampler,
    Schedule,
    Surrogate,
    Weigher,
    weighs,
)
from surrokit.kernel.tuning import has_to_approach
from surrokit.model.model import calls_per_gradient
from surrokit.plan.recipe import (
    GRADIENTS_A_DRAW,
    PART_BEFORE_DRAWS,
    TUNED_AFTER_DROP,
    Recipe,
)
from surrokit.potentials import OF_A_POTENTIAL, Potential, terms_of, with_forward
from surrokit.progress import Estimate
from surrokit.registry.catalogue import Catalogue, Composer, Spec, describe, name_and_settings
from surrokit.registry.components import DEFAULT, GRADIENTS, NO_LEARNING, STARTS, VALUES
from surrokit.result.records import Choice
from surrokit.targets.bounds import between_of
from surrokit.targets.cheap import cheap_of, is_fit
from surrokit.types import Capabilities

APPROACHED = 400
"""Iterations at most of a warm-up of open length, where exact chains begin about modes."""

TUNED_AFTER_RESTART = 100
"""Iterations of warm-up that follow the repair when draws begin again."""

SETTLING, SHORTEST = 25, 4
"""Iterations of warm-up after an exploration that has tuned the run's sampler, and the fewest where
it predicts an acceptance of at least :data:`SURE`.

Each iteration costs calls, and few are enough: chains begin at about draws of the surrogate, and
proposals are nearly independent.
"""

SURE, STANDING = 0.8, 1.1e-7
"""Predicted acceptance from which on fewer iterations are enough: as many as leave a chain where it
began with such a probability."""


@attrs.frozen(kw_only=True, eq=False)
class Plan:
    """What a run goes by: its recipe, and the parts made of it.

    Parameters
    ----------
    sampler, correction
        Not bound to a potential yet.
    described
        Kind of part to a description, for observers and the output.
    surrogate
        A ready potential; None where there is none, or it must learn first.
    learner
        None for a run that learns nothing.
    explorer
        None for a run that explores nothing.
    exact_sampler
        Makes exact transitions beside those on a surrogate; None without a surrogate, or where no
        sampler suits the target.
    """

    recipe: Recipe
    sampler: Sampler
    correction: Correction
    schedule: Schedule
    described: Mapping[str, str]
    surrogate: Potential | None = None
    learner: Learner | None = None
    explorer: Explorer | None = None
    exact_sampler: Sampler | None = None

    @property
    def learns(self) -> bool:
        """Whether chains move on a surrogate."""
        return self.learner is not None or self.surrogate is not None

    @property
    def exploration_limit(self) -> Budget:
        """The budget of the exploration, from all limits that end it early.

        What a search for a surrogate may cost is no limit where nothing is learnt: chains of an
        exact sampler go on until they are where the mass is.
        """
        recipe = self.recipe
        part = Budget() if recipe.warmup is not None else recipe.budget.part(PART_BEFORE_DRAWS)
        own = getattr(self.explorer, "evaluations", None)
        if weighs(self.correction) and own is not None and own < (recipe.budget.calls or 0):
            part = attrs.evolve(part, max_calls=None)  # a round of weights takes what is left
        return part if self.learner is None else part.within(recipe.exploration)

    @property
    def expected_calls(self) -> int:
        """The calls that chains are expected to take, warm-up included.

        On a surrogate a draw takes a value, as does an iteration of a warm-up of given length. An
        exact sampler takes a path of gradients, or one value, in each iteration.
        """
        recipe, by_gradients = self.recipe, GRADIENT in self.sampler.needs
        if self.learns:
            return recipe.chains * (recipe.wanted_draws + (recipe.warmup or 0))
        # exact chains of a run whose parts are picked begin about modes
        led = recipe.warmup is None and recipe.chosen is not None and by_gradients
        warmup = APPROACHED if led else recipe.most_warmup
        iterations = recipe.chains * (warmup + recipe.wanted_draws)
        if not by_gradients:
            return iterations
        longest = getattr(self.sampler, "n_steps", None)
        steps = GRADIENTS_A_DRAW if longest is None else math.ceil((1 + longest) / 2)
        return steps * calls_per_gradient(recipe.exact) * iterations

    def begins_about_modes(self, found: Findings | None) -> bool:
        """Return whether exact chains begin about modes that were found."""
        modes = None if found is None else found.modes
        return modes is not None and modes.reliable and self.learner is None

    def warmup_left(self, found: Findings | None, iteration: int, *, replaces: bool) -> int:
        """Return the iterations of warm-up that are left after an exploration.

        Parameters
        ----------
        found
            What the exploration has found; None without one.
        replaces
            Whether another kernel moved the chains until now.
        """
        recipe, is_open = self.recipe, self.recipe.warmup is None
        rest = recipe.most_warmup - iteration
        is_led = found is None or found.modes is None or found.modes.reliable
        if replaces and is_led:
            return TUNED_AFTER_DROP if is_open else max(rest, TUNED_AFTER_RESTART)
        if is_open and found is not None and found.tuning is not None:
            return 0 if found.at_draws else settling(found.acceptance)
        if is_open and found is not None:
            rest = min(rest, self.sampler.longest_warmup or rest)
        if is_open and self.begins_about_modes(found):
            rest = min(rest, APPROACHED)
        return max(rest, 0)

    def drop_surrogate(self, reason: str) -> Plan:
        """Return the plan without the surrogate, which is not worth its cost for this reason."""
        recipe, fallback = self.recipe, self.recipe.fallback
        assert fallback is not None
        return Plan(
            recipe=attrs.evolve(
                recipe,
                fallback=None,
                safety=attrs.evolve(recipe.safety, mix=0.0),
                chosen=attrs.evolve(recipe.chosen or Choice(), fallback=(fallback.name, reason)),
            ),
            sampler=fallback.sampler,
            correction=fallback.correction,
            schedule=fallback.schedule,
            described={**self.described, **fallback.described},
        )


def settling(predicted: float | None) -> int:
    """Return the iterations of warm-up after an exploration, by the acceptance it predicts."""
    if predicted is None or predicted < SURE:
        return SETTLING
    if predicted == 1.0:
        return SHORTEST
    return max(math.ceil(math.log(STANDING) / math.log1p(-predicted)), SHORTEST)


def make_plan(composer: Composer, asked: Recipe, rng: np.random.Generator) -> Plan:
    """Return the plan of a recipe, with its parts' needs checked, without an exact call.

    Parameters
    ----------
    asked
        Names parts; open parts become the defaults.
    rng
        Generator of a learner's random choices.

    Raises
    ------
    UnknownComponentError
        If a name is not registered.
    CapabilityError
        If a part needs what the target or the surrogate does not offer.
    ConfigurationError
        If settings cannot work.
    ShapeError
        If the surrogate is of a target of another dimension.
    """
    catalogue, exact = composer.catalogue, asked.exact
    named = asked.sampler or catalogue.pick("sampler")
    decides = asked.correction or catalogue.pick("correction")
    learns_from = None if asked.surrogate == "none" else asked.surrogate
    sampler: Sampler = composer.make("sampler", named)
    correction: Correction = composer.make("correction", decides)
    composer = composer.with_own({"sampler": sampler, "correction": correction})

    made: Any = None if learns_from is None else composer.make("surrogate", learns_from)
    ready = _fitting(made, exact) if made is not None and is_ready(made) else None
    learns = made is not None and ready is None
    deploys = asked.schedule or catalogue.pick("schedule", DEFAULT if learns else NO_LEARNING)
    schedule = _schedule(composer, deploys, learns, ready)
    learner = None
    if learns:
        learner = _learner(made, asked, correction, schedule, rng)
    provided = (ready or exact).capabilities if learner is None else learner.provides
    if (of_name := name_and_settings(named)) is not None:
        sampler = sampler.suit(provided, of_name[1])
    # answers are weighted by draws of the kernel, and a sub-chain is tuned where it is needed
    tunes = composer.with_own({"sampler": sampler.kernel}) if weighs(correction) else composer
    explorer, explores = _explorer(tunes, asked, sampler, learner, ready, schedule)

    has_surrogate = learner is not None or ready is not None
    _check_needs(asked, sampler, correction, explorer, provided, has_surrogate, catalogue)
    if learner is not None:
        _check_learnable(learner, exact)
    exact_sampler = None if learns_from is None else _exact_sampler(composer, exact)
    return Plan(
        recipe=asked if learns else attrs.evolve(asked, fallback=None),
        sampler=sampler,
        correction=correction,
        schedule=schedule,
        surrogate=ready,
        learner=learner,
        explorer=explorer,
        exact_sampler=exact_sampler,
        described={
            "target": asked.name,
            "sampler": describe(named),
            "surrogate": describe(learns_from or "none"),
            "schedule": describe(deploys),
            "explorer": explores,
            "correction": describe(decides),
        },
    )


FEW, FEW_A_DIMENSION = 300, 30
"""Calls from which on weighted answers are suggested, and calls for each number in a position."""


def estimate_of(plan: Plan, asked: Recipe) -> Estimate:
    """Return what a run is expected to cost.

    On a surrogate each draw takes a value, and what is learnt from before is small beside that.
    """
    recipe, learns = plan.recipe, plan.learns
    value, gradient = recipe.timed or (None, None)
    few, calls = None, None
    by_gradients = not learns and GRADIENT in plan.sampler.needs
    weighing = weighs(plan.correction)
    if weighing and recipe.budget.calls is not None:
        calls = recipe.budget.calls
    elif ROWS not in plan.correction.needs:
        calls = plan.expected_calls
        is_free = asked.is_open and asked.correction is None and asked.draws is None
        if learns and is_free and asked.budget.target_rhat is None and recipe.budget.calls is None:
            fewer = max(FEW, FEW_A_DIMENSION * recipe.exact.dim)
            few = fewer if 2 * fewer <= calls else None
    by_values = by_gradients and calls_per_gradient(recipe.exact) > 1
    is_gradient = by_gradients and not by_values
    return Estimate(
        seconds_a_call=gradient if is_gradient else value,
        kind="gradient" if is_gradient else "value",
        calls=calls,
        workers=recipe.workers,
        most_workers=recipe.chains * (2 if weighing else 1),  # which share a round's points
        weighs=weighing,
        few_calls=few,
    )


# --- parts ---


def is_ready(surrogate: object) -> bool:
    """Return whether a surrogate is a potential, and has nothing to learn."""
    potential = all(hasattr(surrogate, name) for name in OF_A_POTENTIAL)
    return potential and not hasattr(surrogate, "learner")


def _nothing_learns(ready: Potential | None) -> str:
    """Return why a run learns nothing, and what to pass so that it does, for messages."""
    if ready is None:
        return "there is no surrogate that could learn; pass surrogate=..."
    return (
        f"the surrogate, a {type(ready).__name__}, is ready and learns nothing; pass one that "
        "learns as surrogate=..."
    )


def _fitting(ready: Potential, exact: Potential) -> Potential:
    if ready.dim != exact.dim:
        raise ShapeError(
            f"the surrogate has dim {ready.dim}, but the target has dim {exact.dim}; pass one of "
            "the same target"
        )
    return ready


def _learner(
    surrogate: Surrogate,
    asked: Recipe,
    correction: Correction,
    schedule: Schedule,
    rng: np.random.Generator,
) -> Learner:
    exact = asked.exact
    problem = LearningProblem(
        dim=exact.dim,
        capabilities=exact.capabilities,
        energy=with_forward(exact).energy if FORWARD in exact.capabilities else None,
        deployment_rate=schedule.deployment_rate / asked.chains,
        terms=terms_of(exact),
        is_density=True,
        is_weighed=weighs(correction),
        between=between_of(exact),
    )
    cheap = cheap_of(exact)
    if cheap is not None:
        return cheap_learner(surrogate, problem, cheap, rng, counts=not is_fit(exact))
    return surrogate.learner(problem, rng)


def _schedule(
    composer: Composer, schedule: Schedule | Spec, has_learner: bool, ready: Potential | None
) -> Schedule:
    made: Schedule = composer.make("schedule", schedule)
    if made.learns and not has_learner:
        none = "none is named; pass surrogate=..." if ready is None else _nothing_learns(ready)
        raise ConfigurationError(
            f"schedule {schedule!r} deploys a surrogate, but {none}, or leave schedule out"
        )
    if has_learner and not made.learns:
        raise ConfigurationError(
            f"a surrogate is named, but schedule {schedule!r} never deploys it; pass "
            f"schedule={composer.catalogue.pick('schedule')!r}, or leave surrogate out"
        )
    return made


def _explorer(
    composer: Composer,
    asked: Recipe,
    sampler: Sampler,
    learner: Learner | None,
    ready: Potential | None,
    schedule: Schedule,
) -> tuple[Explorer | None, str]:
    """Return the explorer of a run that has a learner or has to look for the mass, and its name."""
    given, catalogue = asked.explorer, composer.catalogue
    approach = catalogue.serving("explorer", STARTS)
    is_exact = learner is None and ready is None and sampler.tuning is None
    has_to_look = is_exact and has_to_approach(sampler, asked.exact, asked.most_warmup)
    if has_to_look and given is None and approach is not None:
        return composer.make("explorer", approach.name), approach.name
    if learner is None:
        if given is None:
            return None, "none"
        why = _nothing_learns(ready)
        raise ConfigurationError(f"an explorer is given, but {why}, or leave explorer out")
    if given is not None:
        return composer.make("explorer", given), describe(given)
    name, moves = catalogue.pick("explorer"), _exact_sampler(composer, asked.exact)
    settings: dict[str, Any] = {}
    by_gradients = (moves or sampler).needs <= asked.exact.capabilities
    by_gradients = by_gradients and GRADIENT in (moves or sampler).needs
    rows = schedule.exploration(by_gradients and uses_derivatives(learner))
    if rows is not None:  # however few these are, half of the warm-up is left for what follows
        settings = {"evaluations": rows, "iterations": max(asked.most_warmup // 2, 1)}
    if moves is not sampler:
        settings["sampler"] = moves or catalogue.pick("sampler", VALUES)
    return composer.make("explorer", (name, settings)), describe(name)


def _exact_sampler(composer: Composer, exact: Potential) -> Sampler | None:
    own: Sampler = composer.own["sampler"].kernel  # a sub-chain would cost k times as much
    if own.needs <= exact.capabilities & {GRADIENT, GRADIENT_ALONE}:
        return own  # one that needs more, such as Hessians, may be expensive on the exact potential
    for purpose in (GRADIENTS, VALUES):
        serving = composer.catalogue.serving("sampler", purpose)
        if serving is not None:
            made: Sampler = composer.make("sampler", serving.name)
            if made.needs <= exact.capabilities:
                return made
    return None


def uses_derivatives(learner: Learner) -> bool:
    """Return whether a learner learns from gradients or Jacobians where there are any."""
    return bool({"gradient", "jacobian"} & (learner.uses | learner.needs))


# --- checks ---


def _check_needs(
    asked: Recipe,
    sampler: Sampler,
    correction: Correction,
    explorer: Explorer | None,
    provided: Capabilities,
    has_surrogate: bool,
    catalogue: Catalogue,
) -> None:
    serving = catalogue.serving("sampler", VALUES)
    walk = "" if serving is None else f"use sampler={serving.name!r}, or "
    advice = f"give the target what is missing, or {walk}a surrogate that learns from values"
    offered, why = asked.exact.capabilities, reasons_of(asked.exact)
    require("the correction", correction.needs, offered, "the target", advice, why)
    if not has_surrogate:
        require("the sampler", sampler.needs, offered, "the target", advice)
        return
    if not sampler.uses_potential:
        raise ConfigurationError(
            "a surrogate is named, but the sampler moves without any potential and would never use "
            "it; pass another sampler, or leave surrogate out"
        )
    if explorer is not None:
        require("the explorer", explorer.needs, offered, "the target", advice)
    require("the sampler", sampler.needs, provided, "the surrogate", "use another surrogate")


def _check_learnable(learner: Learner, exact: Potential) -> None:
    offered = {"value"}
    offered |= {"gradient"} if GRADIENT in exact.capabilities else set()
    offered |= {"outputs"} if FORWARD in exact.capabilities else set()
    offered |= {"jacobian"} if JACOBIAN in exact.capabilities else set()
    if learner.needs - offered:
        raise CapabilityError(
            f"the surrogate learns from {', '.join(sorted(learner.needs))}, but evaluations of "
            f"the target give only {', '.join(sorted(offered))}; use another surrogate, or give "
            "the target what is missing"
        )


def check_plan(plan: Plan) -> Plan:
    """Return a plan, if its parts can work together on what is given.

    Raises
    ------
    ConfigurationError
        If evaluations or a setting of safety are given that the parts cannot use, or answers are to
        be weighted and there is nothing to weigh, or too little.
    ShapeError
        If the sampler was tuned on a target of another dimension.
    """
    recipe, sampler, learner = plan.recipe, plan.sampler, plan.learner
    _check_safety(plan)
    if weighs(plan.correction):
        _check_weighing(plan, plan.correction)
    tuning, dim = sampler.tuning, recipe.exact.dim
    if tuning is not None and tuning.covariance is not None and len(tuning.covariance) != dim:
        raise ShapeError(
            f"the sampler was tuned on a target with dim {len(tuning.covariance)}, but this one "
            f"has dim {dim}; name the sampler, so that a new one is made"
        )
    if learner is None and recipe.evaluations is not None:
        why = _nothing_learns(plan.surrogate)
        raise ConfigurationError(f"evaluations are given, but {why}, or leave warm_start out")
    if recipe.warmup == 0 and "step_size" in sampler.tunes and tuning is None:
        warnings.warn(
            "there is no warm-up to tune the step size in; pass warmup=..., or "
            "name a step_size among the sampler's settings",
            SamplingWarning,
            stacklevel=5,  # the caller of sample
        )
    return plan


def _check_weighing(plan: Plan, weigher: Weigher) -> None:
    recipe, draws = plan.recipe, plan.recipe.draws
    if plan.learner is None:
        what = "there is none" if plan.surrogate is None else "a ready one does not"
        raise ConfigurationError(
            f"weighted answers need a surrogate that learns from evaluations, and {what}; "
            "name one in surrogate=, where surrokit.batch_surrogate makes one of a function that "
            "returns a ready one, or leave correction out"
        )
    if draws is not None and not weigher.next_size(0, 0, draws * recipe.chains):
        raise ConfigurationError(
            f"draws={draws} of {recipe.chains} chains are fewer than a round of weighted "
            "answers evaluates; ask for more, or leave draws out and give a budget with "
            "target_mcse, or max_calls"
        )
    if recipe.budget.target_rhat is not None:
        raise ConfigurationError(
            "target_rhat is for chains, and weighted answers have none; say target_mcse or "
            "target_ess in its place, or leave correction out"
        )


def _check_safety(plan: Plan) -> None:
    net = plan.recipe.safety
    if not net.mix:
        return
    if not plan.learns:
        raise ConfigurationError(
            "safety has mix=, but without a surrogate all transitions are exact; leave mix out"
        )
    if plan.exact_sampler is None:
        raise ConfigurationError(
            "safety has mix=, but no sampler for exact transitions suits the target: it "
            "needs one that moves by gradients or values alone; enable a plugin that has one, or "
            "leave mix out"
        )
