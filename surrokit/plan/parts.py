"""The parts of a run: chosen by name or given, made, and checked against each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from surrokit.capabilities import FORWARD, GRADIENT, GRADIENT_ALONE, JACOBIAN, require
from surrokit.contracts.explorer import Explorer
from surrokit.contracts.forward import with_forward
from surrokit.contracts.learner import Learner, LearningProblem, Surrogate
from surrokit.contracts.potential import Potential
from surrokit.contracts.rows import terms_of
from surrokit.contracts.sampler import Correction, Sampler
from surrokit.contracts.schedule import Schedule
from surrokit.errors import CapabilityError, ConfigurationError, ShapeError
from surrokit.registry.catalogue import Catalogue
from surrokit.registry.composer import Composer, Spec, named
from surrokit.registry.purposes import DEFAULT, GRADIENTS, NO_LEARNING, VALUES
from surrokit.settings import is_whole
from surrokit.types import Capabilities

_OF_A_POTENTIAL = ("dim", "capabilities", "value")


@attrs.frozen(kw_only=True, eq=False)
class Parts:
    """What a run is made of.

    Parameters
    ----------
    sampler, correction
        The kernel; not bound to a potential yet.
    schedule
        When to learn and deploy.
    explorer, learner
        None for a run that learns nothing.
    ready
        A potential that stands for the exact one from the first iteration on; None where there is
        no surrogate, or one that must learn first.
    exact_sampler
        Makes exact transitions beside those on a surrogate; None where there is no surrogate, or
        no sampler that the target suits.
    described
        Kind of part to a description, for observers and the output.
    """

    sampler: Sampler
    correction: Correction
    schedule: Schedule
    explorer: Explorer | None
    learner: Learner | None
    ready: Potential | None
    exact_sampler: Sampler | None
    described: Mapping[str, str]


def chosen_parts(
    composer: Composer,
    exact: Potential,
    rng: np.random.Generator,
    *,
    sampler: Sampler | Spec,
    sampler_settings: Mapping[str, Any],
    surrogate: Surrogate | Potential | Spec | None,
    schedule: Schedule | Spec | None,
    explorer: Explorer | Spec | None,
    correction: Correction | Spec,
    chains: int,
    warmup: int,
) -> Parts:
    """Make all parts, and check that each gets what it needs, without an exact call.

    Parameters
    ----------
    composer
        Makes parts.
    exact
        The target.
    rng
        Draws what is random in a learner.
    sampler, surrogate, schedule, explorer, correction
        Names, pairs of name and settings, or objects; as surrogate a ready potential, too.
    sampler_settings
        More settings of the sampler; None where not given.
    chains, warmup
        Sizes of the run.

    Raises
    ------
    UnknownComponentError
        If a name is not registered.
    CapabilityError
        If a part needs what the target or the surrogate does not offer.
    ConfigurationError
        If settings cannot work.
    """
    own_sampler: Sampler = composer.make("sampler", sampler, **sampler_settings)
    own_correction: Correction = composer.make("correction", correction)
    composer = composer.with_own({"sampler": own_sampler, "correction": own_correction})
    ready, learning = _surrogate(composer, surrogate, exact)
    pick = composer.catalogue.pick
    default = pick("schedule", NO_LEARNING if learning is None else DEFAULT)
    own_schedule = _schedule(composer, schedule or default, learning is not None, ready)
    learner = None if learning is None else _learner(learning, exact, rng, own_schedule, chains)
    if learner is None and explorer is not None:
        raise ConfigurationError(
            f"an explorer is given, but {nothing_learns(ready)}, or leave explorer out"
        )
    own_explorer = None
    if learner is not None:
        moves = _exact_sampler(composer, exact) or own_sampler
        suggested = _suggested(own_schedule, learner, moves, exact, warmup)
        own_explorer = _explorer(composer, explorer, exact, suggested)
    instead = _advice(composer.catalogue)
    provided = _provided(learner, ready)
    _check_needs(exact, own_sampler, own_correction, own_explorer, provided, instead)
    if learner is not None:
        _check_learnable(learner, exact)
    return Parts(
        sampler=own_sampler,
        correction=own_correction,
        schedule=own_schedule,
        explorer=own_explorer,
        learner=learner,
        ready=ready,
        exact_sampler=None if surrogate is None else _exact_sampler(composer, exact),
        described={
            "sampler": described(sampler),
            "surrogate": described(surrogate or "none"),
            "schedule": described(schedule or default),
            "explorer": "none" if learner is None else described(explorer or pick("explorer")),
            "correction": described(correction),
        },
    )


def _surrogate(
    composer: Composer, surrogate: Surrogate | Potential | Spec | None, exact: Potential
) -> tuple[Potential | None, Surrogate | None]:
    """Return a surrogate that is ready, or else one that learns."""
    if surrogate is None:
        return None, None
    made = composer.make("surrogate", surrogate)
    return (_fitting(made, exact), None) if is_ready(made) else (None, made)


def is_ready(surrogate: object) -> bool:
    """Return whether a surrogate is a potential, and has nothing to learn."""
    potential = all(hasattr(surrogate, name) for name in _OF_A_POTENTIAL)
    return potential and not hasattr(surrogate, "learner")


def nothing_learns(ready: Potential | None) -> str:
    """Return why a run learns nothing, and what to pass so that it does, for messages."""
    if ready is None:
        return "there is no surrogate that could learn; pass surrogate=..."
    return (
        f"the surrogate, a {type(ready).__name__}, is ready and learns nothing; pass one that "
        "learns as surrogate=..."
    )


def checked_target(target: Potential) -> Potential:
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
            f"a target must be a potential, got a {type(target).__name__} of dim {target.dim!r}, "
            f"and with {target.value!r} as its value; make one with surrokit.potential(value, "
            "gradient, dim=...)"
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
    surrogate: Surrogate,
    exact: Potential,
    rng: np.random.Generator,
    schedule: Schedule,
    chains: int,
) -> Learner:
    problem = LearningProblem(
        dim=exact.dim,
        capabilities=exact.capabilities,
        energy=with_forward(exact).energy if FORWARD in exact.capabilities else None,
        deployment_rate=schedule.deployment_rate / chains,
        terms=terms_of(exact),
    )
    return surrogate.learner(problem, rng)


def _schedule(
    composer: Composer,
    schedule: Schedule | Spec,
    has_learner: bool,
    ready: Potential | None,
) -> Schedule:
    made: Schedule = composer.make("schedule", schedule)
    if made.learns and not has_learner:
        none = "none is named; pass surrogate=..." if ready is None else nothing_learns(ready)
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
    explorer: Explorer | Spec | None,
    exact: Potential,
    suggested: Mapping[str, int],
) -> Explorer:
    if explorer is None:
        settings: dict[str, Any] = dict(suggested)
        moves = _exact_sampler(composer, exact)
        if moves is not composer.own["sampler"]:
            settings["sampler"] = moves or composer.catalogue.pick("sampler", VALUES)
        explorer = (composer.catalogue.pick("explorer"), settings)
    made: Explorer = composer.make("explorer", explorer)
    return made


def _suggested(
    schedule: Schedule, learner: Learner, sampler: Sampler, exact: Potential, warmup: int
) -> dict[str, int]:
    """Return settings of the explorer that suit a schedule, if it asks for any.

    However few rows come of it, half of the warm-up is left for what follows.
    """
    pays_gradients = sampler.needs <= exact.capabilities and GRADIENT in sampler.needs
    rows = schedule.exploration(pays_gradients and uses_derivatives(learner))
    if rows is None:
        return {}
    return {"evaluations": rows, "iterations": max(warmup // 2, 1)}


def _exact_sampler(composer: Composer, exact: Potential) -> Sampler | None:
    own: Sampler = composer.own["sampler"]
    own = getattr(own, "kernel", own)  # on the exact potential a sub-chain costs k times as much
    if own.needs <= exact.capabilities & {GRADIENT, GRADIENT_ALONE}:
        return own  # one that needs more, such as Hessians, may be dear on the exact potential
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


def _provided(learner: Learner | None, ready: Potential | None) -> Capabilities | None:
    if learner is not None:
        return learner.provides
    return None if ready is None else ready.capabilities


def _advice(catalogue: Catalogue) -> str:
    """Return what to do where a target offers too little."""
    serving = catalogue.serving("sampler", VALUES)
    walk = "" if serving is None else f"use sampler={serving.name!r}, or "
    return f"give the target what is missing, or {walk}a surrogate that learns from values"


def _check_needs(
    exact: Potential,
    sampler: Sampler,
    correction: Correction,
    explorer: Explorer | None,
    provided: Capabilities | None,
    advice: str,
) -> None:
    require("the correction", correction.needs, exact.capabilities, "the target", advice)
    if provided is None:  # no surrogate
        require("the sampler", sampler.needs, exact.capabilities, "the target", advice)
        return
    if not getattr(sampler, "uses_potential", True):
        raise ConfigurationError(
            "a surrogate is named, but the sampler moves without any potential and would never use "
            "it; pass another sampler, or leave surrogate out"
        )
    if explorer is not None:
        require("the explorer", explorer.needs, exact.capabilities, "the target", advice)
    require("the sampler", sampler.needs, provided, "the surrogate", "use another surrogate")


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


def described(spec: object) -> str:
    """Return a name with its settings, or the type of an object."""
    found = named(spec)
    if found is None:
        return type(spec).__name__
    settings = ", ".join(f"{name}={value!r}" for name, value in found[1].items())
    return found[0] + (f"({settings})" if settings else "")
