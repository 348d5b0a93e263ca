"""Checks of policies: picks exist and fit the target, and parts that users named stay."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import attrs
import numpy as np

from surrokit.capabilities import GRADIENT
from surrokit.cost.budget import Budget
from surrokit.cost.measuring import Costs
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import SurrokitError
from surrokit.plan.parts import make_parts
from surrokit.plan.recipe import Recipe
from surrokit.potentials import Potential
from surrokit.registry.catalogue import Composer, default_catalogue
from surrokit.registry.components import Kind
from surrokit.testing.measures.demands import demand
from surrokit.testing.results import Check, Factory
from surrokit.testing.targets.counting import Limited
from surrokit.testing.targets.densities import Gaussian
from surrokit.testing.targets.summed import Summed

_CHAINS = 3
_SECONDS = (1e-6, 1e-3, 1.0)


def _targets() -> dict[str, Potential]:
    return {
        "a target with gradients": Gaussian(),
        "a target with values only": Limited(Gaussian(), frozenset()),
        "a sum over rows": Summed(),
    }


def _costs(target: Potential, seconds: float) -> Costs:
    has_gradient = GRADIENT in target.capabilities
    return Costs(
        value=0.5 * seconds,
        gradient=seconds if has_gradient else None,
        values=0.5 * _CHAINS * seconds,
        gradients=_CHAINS * seconds if has_gradient else None,
    )


def _choice(make: Factory, target: Potential, seconds: float, **given: Any) -> Recipe:
    asked = Recipe(
        exact=target, chains=_CHAINS, draws=100, initial=np.zeros((_CHAINS, target.dim)), **given
    )
    choice: Recipe = make().choose(
        Composer(default_catalogue()),
        asked,
        RecordingPotential(target, keep=True),
        _costs(target, seconds),
        np.random.default_rng(1604),
    )
    return choice


def _cases() -> Iterator[tuple[str, Potential, float]]:
    for (name, target), seconds in product(_targets().items(), _SECONDS):
        yield f"{name} of {seconds:g} seconds", target, seconds


def _make(choice: Recipe, what: str) -> Recipe:
    composer, rng = Composer(default_catalogue()), np.random.default_rng(1605)
    try:
        return make_parts(composer, choice, rng)
    except SurrokitError as error:
        raise AssertionError(f"what was picked for {what} cannot be made: {error}") from error


def check_choices_can_be_made(make: Factory) -> None:
    """The picked parts exist and fit the target, whatever it offers and its calls cost."""
    for what, target, seconds in _cases():
        for given in ({}, {"warmup": 0}):
            _make(_choice(make, target, seconds, **given), what)


def check_same_choice(make: Factory) -> None:
    """The same target, costs and generator give the same choice."""
    for what, target, seconds in _cases():
        first, second = (_choice(make, target, seconds) for _ in range(2))
        demand(first.choice == second.choice, f"two choices for {what} differ")


def check_fixed_parts(make: Factory) -> None:
    """Parts that the user has named stay."""
    kinds: tuple[Kind, ...] = ("schedule", "explorer", "correction")
    given = {kind: default_catalogue().pick(kind) for kind in kinds}
    for what, target, seconds in _cases():
        choice = _choice(make, target, seconds, **given)
        for kind, named in given.items():
            picked = getattr(choice, kind)
            demand(picked == named, f"for {what} {kind}={named!r} was given, and {picked!r} picked")


def check_plain(make: Factory) -> None:
    """Without measurements the choice is an exact kernel that fits the target."""
    for what, target in _targets().items():
        asked = Recipe(exact=target, chains=_CHAINS)
        choice = make().plain(Composer(default_catalogue()), asked, "nothing was measured")
        demand(choice.surrogate is None, f"for {what} a surrogate is picked unmeasured")
        _make(choice, what)


def check_fallback(make: Factory) -> None:
    """The fallback is an exact kernel that fits the target, and its draws cost time."""
    for what, target, seconds in _cases():
        fallback = _choice(make, target, seconds).fallback
        if fallback is None:
            continue
        demand(
            fallback.sampler.needs <= target.capabilities and not fallback.schedule.learns,
            f"the fallback for {what} is no exact kernel that fits it",
        )
        demand(fallback.seconds_per_draw > 0, f"a draw of the fallback for {what} costs nothing")


def check_exploration(make: Factory) -> None:
    """The limit of an exploration is a ``Budget`` of calls and seconds alone."""
    for what, target, seconds in _cases():
        budget = _choice(make, target, seconds).exploration
        demand(isinstance(budget, Budget), f"the limit for {what} must be a Budget, got {budget!r}")
        spent = attrs.evolve(budget, max_calls=None, max_seconds=None)
        demand(spent == Budget(), f"the limit for {what} must be one of calls and seconds")


CHECKS: tuple[Check, ...] = (
    Check(check_choices_can_be_made),
    Check(check_same_choice),
    Check(check_fixed_parts),
    Check(check_plain),
    Check(check_fallback),
    Check(check_exploration),
)
"""For every policy."""
