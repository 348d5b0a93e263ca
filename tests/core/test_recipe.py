"""A recipe is filled in step by step, and each step leaves the one before as it was."""

from __future__ import annotations

import numpy as np
import pytest

from surrokit.cost.budget import Budget
from surrokit.plan.plan import make_plan
from surrokit.plan.recipe import DRAWS, MOST_DRAWS, WARMUP, Recipe
from surrokit.plan.repair import Safety
from surrokit.registry.catalogue import Composer, default_catalogue
from surrokit.testing.targets import Gaussian


def asked(**given):
    return Recipe(exact=Gaussian(), **given)


def made(**given):
    composer = Composer(default_catalogue())
    return make_plan(composer, asked(**given), np.random.default_rng(1))


@pytest.mark.parametrize(
    ("named", "is_open"),
    [({}, True), ({"schedule": "once"}, True), ({"sampler": "hmc"}, False)],
)
def test_it_is_open_where_neither_sampler_nor_surrogate_is_named(named, is_open):
    assert asked(**named).is_open == is_open


def test_filling_in_says_what_and_why_and_changes_no_other():
    before = asked(explorer=Gaussian())
    after = before.fill("it pays", sampler="hmc", surrogate="additive")
    assert after.choice == ("sampler='hmc', surrogate='additive', explorer=<Gaussian>: it pays")
    assert (before.sampler, before.choice) == (None, None)


@pytest.mark.parametrize(
    ("sizes", "most", "wanted"),
    [
        ({}, DRAWS, DRAWS),
        ({"draws": 40}, 40, 40),
        ({"budget": Budget(target_ess=400.0)}, MOST_DRAWS, 100),
        ({"budget": Budget(target_rhat=1.01)}, MOST_DRAWS, DRAWS),
    ],
)
def test_sizes_left_open_are_the_usual_ones(sizes, most, wanted):
    recipe = asked(**sizes)
    assert (recipe.most_draws, recipe.wanted_draws) == (most, wanted)
    assert recipe.most_warmup == WARMUP


@pytest.mark.parametrize(
    ("given", "needs"),
    [
        ({}, False),
        ({"schedule": "never"}, False),
        ({"schedule": "once"}, True),
        ({"explorer": "rounds"}, True),
        ({"safety": Safety(mix=0.1)}, True),
    ],
)
def test_what_only_a_surrogate_can_use_asks_for_one(given, needs):
    assert asked(**given).needs_surrogate(default_catalogue()) == needs


def test_made_parts_are_objects_and_the_names_are_told():
    recipe = made(surrogate="additive", name="a normal")
    assert recipe.described == {
        "target": "a normal",
        "sampler": "hmc",
        "surrogate": "additive",
        "schedule": "once",
        "explorer": "sampler",
        "correction": "metropolis",
    }
    assert recipe.surrogate is None
    assert recipe.learner is not None
    assert callable(recipe.explorer.explore)


def test_a_ready_potential_stays_the_surrogate():
    ready = Gaussian(mean=(0.1, 0.0))
    recipe = made(surrogate=ready)
    assert recipe.surrogate is ready
    assert (recipe.learner, recipe.explorer) == (None, None)
    assert recipe.described["schedule"] == "never"
