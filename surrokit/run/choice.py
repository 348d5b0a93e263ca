"""The first phase of a run: the choice of open parts by what calls cost."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.capabilities import ROWS, reasons_of, require
from surrokit.cost.budget import Budget
from surrokit.cost.measuring import Costs, measure_starts
from surrokit.errors import ConfigurationError
from surrokit.interfaces import Evaluations
from surrokit.plan.parts import check_recipe, make_parts
from surrokit.plan.recipe import WARMUP, Policy, Recipe
from surrokit.plan.stopping import reason_of
from surrokit.registry.catalogue import Composer
from surrokit.registry.components import NO_LEARNING
from surrokit.run.book import ENDS, Book


def choose(asked: Recipe, composer: Composer, book: Book, rng: np.random.Generator) -> Recipe:
    """Return the recipe of a run with its parts made; a few calls are timed if parts are open.

    Parameters
    ----------
    asked
        The recipe as asked for.
    composer
        Makes parts.
    book
        The run's; if timing is cut short, it goes by a plain recipe, and nothing is drawn.
    rng
        The run's generator.

    Raises
    ------
    UnknownComponentError
        If a name is not registered.
    CapabilityError
        If a part needs what the target or the surrogate does not offer.
    ConfigurationError
        If settings cannot work.
    """
    if not asked.is_open:
        if asked.policy is not None:
            raise ConfigurationError(
                "a policy is named as sampler, but a surrogate is named too, so that nothing is "
                "left to pick; leave one of them out"
            )
        return check_recipe(make_parts(composer, asked, rng))
    _check_given(composer, asked)
    policy: Policy = composer.make("policy", asked.policy or composer.catalogue.pick("policy"))
    try:
        with book.clock.phase("warmup"):
            picked, paid = _measure_and_pick(policy, composer, asked, book, rng)
    except ENDS as end:
        bare = attrs.evolve(asked, schedule=None, explorer=None, correction=None)
        reason = f"nothing was measured, {reason_of(end)} came first"
        book.begin(make_parts(composer, policy.plain(composer, bare, reason), rng))
        raise
    recipe = check_recipe(make_parts(composer, picked, rng))
    return recipe if recipe.learner is None else _add_paid(recipe, paid)


def _measure_and_pick(
    policy: Policy, composer: Composer, asked: Recipe, book: Book, rng: np.random.Generator
) -> tuple[Recipe, Evaluations]:
    """Return the recipe that the policy picks, and the evaluations paid for that."""
    most = None if asked.budget.calls is not None else asked.budget.max_seconds
    starts, costs = measure_starts(
        book.target, asked.initial, asked.chains, rng, book.clock.with_saved, left=most
    )
    timed = costs.a_position(asked.chains, asked.workers)
    recipe = attrs.evolve(asked, initial=starts, exact=book.target.target, timed=timed)
    if most is not None:
        left = most - book.clock.elapsed()
        recipe = attrs.evolve(recipe, budget=_in_calls(recipe, costs, left, book.target.paid))
    # a generator of its own: what it tries, and so what it uses up, may go by the clock
    picked = policy.choose(composer, recipe, book.target, costs, rng.spawn(1)[0])
    return _tell_of_rows(_tell_of_stairs(picked, costs)), book.target.drain()


def _in_calls(recipe: Recipe, costs: Costs, left: float, paid: float) -> Budget:
    """Return the budget with the calls that the seconds left pay for, where these are few.

    By them explorations are planned, and whether answers are weighted; the clock ends the run.
    """
    seconds = min(costs.value, costs.values / recipe.chains)
    calls = max(int(paid + left / seconds), 1)
    if calls >= recipe.chains * (WARMUP + recipe.wanted_draws):
        return recipe.budget
    return attrs.evolve(recipe.budget, max_calls=calls)


def _tell_of_stairs(picked: Recipe, costs: Costs) -> Recipe:
    """Return a recipe that notes along which numbers the density is constant but for steps."""
    if not costs.stairs:
        return picked
    which = ", ".join(costs.stairs)
    note = (
        f"the density is constant but for steps along {which}, so that differences of values tell "
        "nothing; values alone decide"
    )
    return attrs.evolve(picked, noticed=(*picked.noticed, note))


def _tell_of_rows(picked: Recipe) -> Recipe:
    """Return a recipe whose choice says why its target is no sum over rows, as far as it knows."""
    why = reasons_of(picked.exact).get(ROWS)
    if why is None or picked.chosen is None:
        return picked
    return attrs.evolve(picked, chosen=picked.chosen.because(why))


def _add_paid(recipe: Recipe, paid: Evaluations) -> Recipe:
    blocks = [block for block in (recipe.evaluations, paid) if block is not None and len(block)]
    joined = Evaluations.join(blocks, recipe.exact.dim) if blocks else None
    return attrs.evolve(recipe, evaluations=joined)


def _check_given(composer: Composer, asked: Recipe) -> None:
    """Raise, before the first call, if given settings cannot work."""
    pick = composer.catalogue.pick
    sampler = composer.make("sampler", pick("sampler"))
    correction = composer.make("correction", asked.correction or pick("correction"))
    offered, advice = asked.exact.capabilities, "name another correction, or leave it out"
    why = reasons_of(asked.exact)
    require("the correction", correction.needs, offered, "the target", advice, why)
    composer = composer.with_own({"sampler": sampler, "correction": correction})
    composer.make("schedule", asked.schedule or pick("schedule", NO_LEARNING))
    if asked.explorer is not None:
        composer.make("explorer", asked.explorer)
