"""The parts of a recipe: made from their names, and checked against each other."""

from __future__ import annotations

import warnings
from typing import Any

import attrs
import numpy as np

from surrokit.arguments import is_whole
from surrokit.capabilities import FORWARD, GRADIENT, GRADIENT_ALONE, JACOBIAN, reasons_of, require
from surrokit.errors import CapabilityError, ConfigurationError, SamplingWarning, ShapeError
from surrokit.interfaces import (
    Explorer,
    Learner,
    LearningProblem,
    Sampler,
    Schedule,
    Surrogate,
    Tuning,
    weighs,
)
from surrokit.kernel.tuning import has_to_approach
from surrokit.plan.recipe import Recipe
from surrokit.potentials import Potential, terms_of, with_forward
from surrokit.registry.catalogue import Catalogue, Composer, Spec, describe, name_and_settings
from surrokit.registry.components import DEFAULT, GRADIENTS, NO_LEARNING, STARTS, VALUES
from surrokit.types import Capabilities

_OF_A_POTENTIAL = ("dim", "capabilities", "value")


def make_parts(composer: Composer, asked: Recipe, rng: np.random.Generator) -> Recipe:
    """Return a recipe with all parts made and their needs checked, without an exact call.

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
    """
    pick = composer.catalogue.pick
    asked = attrs.evolve(
        asked,
        sampler=asked.sampler or pick("sampler"),
        correction=asked.correction or pick("correction"),
        surrogate=None if asked.surrogate == "none" else asked.surrogate,
    )
    sampler = composer.make("sampler", asked.sampler)
    correction = composer.make("correction", asked.correction)
    composer = composer.with_own({"sampler": sampler, "correction": correction})
    names = {"sampler": asked.sampler, "surrogate": asked.surrogate or "none"}
    told = {"target": asked.name, **{kind: describe(spec) for kind, spec in names.items()}}
    recipe = attrs.evolve(asked, sampler=sampler, correction=correction, described=told)
    recipe = _add_learner(composer, recipe, rng)
    recipe = attrs.evolve(recipe, sampler=_suit(recipe, asked))
    recipe = _add_explorer(composer, recipe)
    _check_needs(recipe, _advice(composer.catalogue))
    if recipe.learner is not None:
        _check_learnable(recipe.learner, recipe.exact)
    return attrs.evolve(
        recipe,
        exact_sampler=None if asked.surrogate is None else _exact_sampler(composer, asked.exact),
        fallback=None if recipe.learner is None else asked.fallback,
        described={**recipe.described, "correction": describe(asked.correction)},
    )


def _add_learner(composer: Composer, recipe: Recipe, rng: np.random.Generator) -> Recipe:
    """Return a recipe with its schedule, and with a surrogate that is ready or a learner."""
    made: Any = None
    ready = None
    if recipe.surrogate is not None:
        made = composer.make("surrogate", recipe.surrogate)
        ready = _fitting(made, recipe.exact) if is_ready(made) else None
    learns = made is not None and ready is None
    purpose = DEFAULT if learns else NO_LEARNING
    named = recipe.schedule or composer.catalogue.pick("schedule", purpose)
    schedule = _schedule(composer, named, learns, ready)
    return attrs.evolve(
        recipe,
        surrogate=ready,
        schedule=schedule,
        learner=_learner(made, recipe, rng, schedule) if learns else None,
        described={**recipe.described, "schedule": describe(named)},
    )


def _add_explorer(composer: Composer, recipe: Recipe) -> Recipe:
    """Return a recipe with an explorer, if it has a learner or has to look for the mass."""
    explorer, name = None, "none"
    approach = composer.catalogue.serving("explorer", STARTS)
    if approach is not None and recipe.explorer is None and _approaches(recipe):
        explorer, name = composer.make("explorer", approach.name), approach.name
    elif recipe.learner is not None:
        explorer = _explorer(composer, recipe, recipe.learner)
        name = describe(recipe.explorer or composer.catalogue.pick("explorer"))
    elif recipe.explorer is not None:
        why = _nothing_learns(recipe.surrogate)
        raise ConfigurationError(f"an explorer is given, but {why}, or leave explorer out")
    told = {**recipe.described, "explorer": name}
    return attrs.evolve(recipe, explorer=explorer, described=told)


def _approaches(recipe: Recipe) -> bool:
    """Return whether the run's own sampler is exact, was not tuned before, and has to approach."""
    sampler = recipe.sampler
    exact = recipe.learner is None and recipe.surrogate is None
    untuned = sampler.tuning is None
    return exact and untuned and has_to_approach(sampler, recipe.exact, recipe.most_warmup)


def is_ready(surrogate: object) -> bool:
    """Return whether a surrogate is a potential, and has nothing to learn."""
    potential = all(hasattr(surrogate, name) for name in _OF_A_POTENTIAL)
    return potential and not hasattr(surrogate, "learner")


def _nothing_learns(ready: Potential | None) -> str:
    """Return why a run learns nothing, and what to pass so that it does, for messages."""
    if ready is None:
        return "there is no surrogate that could learn; pass surrogate=..."
    return (
        f"the surrogate, a {type(ready).__name__}, is ready and learns nothing; pass one that "
        "learns as surrogate=..."
    )


def check_target(target: Potential) -> Potential:
    """Return a target, if it is a potential.

    Raises
    ------
    ConfigurationError
        If it is not.
    """
    missing = [name for name in _OF_A_POTENTIAL if not hasattr(target, name)]
    if missing:
        raise ConfigurationError(
            f"a target must be a potential, got {type(target).__name__} without "
            f"{', '.join(missing)}; make one with surrokit.potential(value, gradient, dim=...)"
        )
    if not (is_whole(target.dim, 1) and callable(target.value)) or isinstance(target, type):
        raise ConfigurationError(
            f"a target must be a potential, got a {type(target).__name__} of dim {target.dim!r} "
            f"and value {target.value!r}; make one with surrokit.potential(value, gradient, "
            "dim=...)"
        )
    return target


def _fitting(ready: Potential, exact: Potential) -> Potential:
    if ready.dim != exact.dim:
        raise ShapeError(
            f"the surrogate has dim {ready.dim}, but the target has dim {exact.dim}; pass one of "
            "the same target"
        )
    return ready


def _learner(
    surrogate: Surrogate, recipe: Recipe, rng: np.random.Generator, schedule: Schedule
) -> Learner:
    exact = recipe.exact
    problem = LearningProblem(
        dim=exact.dim,
        capabilities=exact.capabilities,
        energy=with_forward(exact).energy if FORWARD in exact.capabilities else None,
        deployment_rate=schedule.deployment_rate / recipe.chains,
        terms=terms_of(exact),
        is_density=True,
        is_weighed=weighs(recipe.correction),
    )
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


def _explorer(composer: Composer, recipe: Recipe, learner: Learner) -> Explorer:
    explorer: Explorer | Spec | None = recipe.explorer
    if explorer is None:
        moves = _exact_sampler(composer, recipe.exact)
        settings: dict[str, Any] = _suggest(recipe, learner, moves or recipe.sampler)
        if moves is not recipe.sampler:
            settings["sampler"] = moves or composer.catalogue.pick("sampler", VALUES)
        explorer = (composer.catalogue.pick("explorer"), settings)
    made: Explorer = composer.make("explorer", explorer)
    return made


def _suggest(recipe: Recipe, learner: Learner, sampler: Sampler) -> dict[str, Any]:
    """Return settings of the explorer that suit a schedule, if it asks for any.

    However few rows the exploration gives, half of the warm-up is left for what follows.
    """
    pays_gradients = sampler.needs <= recipe.exact.capabilities and GRADIENT in sampler.needs
    rows = recipe.schedule.exploration(pays_gradients and uses_derivatives(learner))
    if rows is None:
        return {}
    return {"evaluations": rows, "iterations": max(recipe.most_warmup // 2, 1)}


def _exact_sampler(composer: Composer, exact: Potential) -> Sampler | None:
    own: Sampler = composer.own[
        "sampler"
    ].kernel  # on the exact potential a sub-chain costs k times as much
    if own.needs <= exact.capabilities & {GRADIENT, GRADIENT_ALONE}:
        return own  # one that needs more, such as Hessians, may be dear on the exact potential
    for purpose in (GRADIENTS, VALUES):
        serving = composer.catalogue.serving("sampler", purpose)
        if serving is not None:
            made: Sampler = composer.make("sampler", serving.name)
            if made.needs <= exact.capabilities:
                return made
    return None


def _suit(recipe: Recipe, asked: Recipe) -> Sampler:
    """Return the sampler with parts that suit what it moves on, where they were left open."""
    sampler: Sampler = recipe.sampler
    named = name_and_settings(asked.sampler)
    return sampler if named is None else sampler.suit(_provided(recipe), named[1])


def uses_derivatives(learner: Learner) -> bool:
    """Return whether a learner learns from gradients or Jacobians where there are any."""
    return bool({"gradient", "jacobian"} & (learner.uses | learner.needs))


def _advice(catalogue: Catalogue) -> str:
    """Return what to do where a target offers too little."""
    serving = catalogue.serving("sampler", VALUES)
    walk = "" if serving is None else f"use sampler={serving.name!r}, or "
    return f"give the target what is missing, or {walk}a surrogate that learns from values"


def _check_needs(recipe: Recipe, advice: str) -> None:
    sampler, explorer, offered = recipe.sampler, recipe.explorer, recipe.exact.capabilities
    why = reasons_of(recipe.exact)
    require("the correction", recipe.correction.needs, offered, "the target", advice, why)
    if recipe.learner is None and recipe.surrogate is None:
        require("the sampler", sampler.needs, offered, "the target", advice)
        return
    if not sampler.uses_potential:
        raise ConfigurationError(
            "a surrogate is named, but the sampler moves without any potential and would never use "
            "it; pass another sampler, or leave surrogate out"
        )
    if explorer is not None:
        require("the explorer", explorer.needs, offered, "the target", advice)
    provided = _provided(recipe)
    require("the sampler", sampler.needs, provided, "the surrogate", "use another surrogate")


def _provided(recipe: Recipe) -> Capabilities:
    """Return what the potential offers that the sampler moves on."""
    if recipe.learner is not None:
        return recipe.learner.provides
    ready: Potential = recipe.surrogate or recipe.exact
    return ready.capabilities


def _check_learnable(learner: Learner, exact: Potential) -> None:
    offered = {"value"}
    offered |= {"gradient"} if GRADIENT in exact.capabilities else set()
    offered |= {"outputs"} if FORWARD in exact.capabilities else set()
    offered |= {"jacobian"} if JACOBIAN in exact.capabilities else set()
    missing = learner.needs - offered
    if missing:
        raise CapabilityError(
            f"the surrogate learns from {', '.join(sorted(learner.needs))}, but evaluations of "
            f"the target give only {', '.join(sorted(offered))}; use another surrogate, or give "
            "the target what is missing"
        )


def check_recipe(recipe: Recipe) -> Recipe:
    """Return a recipe whose parts are made, if they can work together.

    Raises
    ------
    ConfigurationError
        If evaluations or a setting of safety are given that the parts cannot use, or answers are to
        be weighted and there is nothing to weigh, or too little.
    ShapeError
        If the sampler was tuned on a target of another dimension.
    """
    _check_safety(recipe)
    _check_weighing(recipe)
    _check_tuning(recipe.sampler.tuning, recipe.exact.dim)
    if recipe.learner is None and recipe.evaluations is not None:
        why = _nothing_learns(recipe.surrogate)
        raise ConfigurationError(f"evaluations are given, but {why}, or leave warm_start out")
    untuned = "step_size" in recipe.sampler.tunes and recipe.sampler.tuning is None
    if recipe.warmup == 0 and untuned:
        warnings.warn(
            "there is no warm-up to tune the step size in; pass warmup=..., or "
            "name a step_size among the sampler's settings",
            SamplingWarning,
            stacklevel=5,  # the caller of sample
        )
    return recipe


def _check_weighing(recipe: Recipe) -> None:
    weigher, draws = recipe.correction, recipe.draws
    if not weighs(weigher):
        return
    if recipe.learner is None:
        what = "there is none" if recipe.surrogate is None else "a ready one does not"
        raise ConfigurationError(
            f"weighted answers need a surrogate that learns from what is paid for, and {what}; "
            "name one in surrogate=, where surrokit.batch_surrogate makes one of a function that "
            "returns a ready one, or leave correction out"
        )
    if draws is not None and not weigher.next_size(0, 0, draws * recipe.chains):
        raise ConfigurationError(
            f"draws={draws} of {recipe.chains} chains are fewer than a round of weighted answers "
            "pays for; ask for more, or leave draws out and give a budget with target_mcse, "
            "or max_calls"
        )
    if recipe.budget.target_rhat is not None:
        raise ConfigurationError(
            "target_rhat is for chains, and weighted answers have none; say target_mcse or "
            "target_ess in its place, or leave correction out"
        )


def _check_tuning(tuning: Tuning | None, dim: int) -> None:
    covariance = None if tuning is None else tuning.covariance
    if covariance is not None and len(covariance) != dim:
        raise ShapeError(
            f"the sampler was tuned on a target with dim {len(covariance)}, but this one has dim "
            f"{dim}; name the sampler, so that a new one is made"
        )


def _check_safety(recipe: Recipe) -> None:
    net = recipe.safety
    if net.restart and recipe.learner is None:
        why = _nothing_learns(recipe.surrogate)
        raise ConfigurationError(f"safety asks for restart, but {why}, or leave restart out")
    if not net.mix:
        return
    if recipe.learner is None and recipe.surrogate is None:
        raise ConfigurationError(
            "safety asks to mix in exact transitions, but there is no surrogate and all are exact; "
            "leave mix out"
        )
    if recipe.exact_sampler is None:
        raise ConfigurationError(
            "safety asks to mix in exact transitions, but no sampler at hand suits the target: it "
            "needs one that moves by gradients or values alone; enable a plugin that has one, or "
            "leave mix out"
        )
