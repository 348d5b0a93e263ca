"""The plugin that the guide shows is short, sound, and draws from what it says."""

from __future__ import annotations

import importlib
from pathlib import Path

import attrs
import numpy as np
import pytest

import surrokit as sk
from surrokit.registry.catalogue import Composer, make_catalogue
from surrokit.registry.discovery import make_plugins
from surrokit.testing import check_plugin

TOY = Path(__file__).parents[2] / "docs" / "examples" / "surrokit-toy"


@pytest.fixture(scope="module")
def toy():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(TOY)
        yield importlib.import_module("surrokit_toy")


def test_parts_of_six_kinds_take_ninety_lines_and_one_import_of_surrokit(toy):
    lines = Path(toy.__file__).read_text("utf-8").splitlines()
    assert len(lines) <= 90
    assert [line for line in lines if line.startswith(("import surrokit", "from surrokit"))] == [
        "from surrokit import plugin as sp"
    ]
    kinds = [component.kind for component in toy.surrokit_components()]
    six = ["correction", "explorer", "metric", "potential", "sampler", "surrogate"]
    assert sorted(kinds) == six


def test_they_keep_to_their_contracts(toy):
    results = check_plugin(toy)
    assert len(results) > 40
    assert [(r.name, r.message) for r in results if r.outcome != "passed"] == []


# Chains start from exact draws, x ~ N(1, 1) and y | x ~ N(x^2, 1), so that each is still one after
# any number of transitions. False alarms: two means beyond four standard errors, 1.3e-4 in all.
def means_are_exact(toy, **parts):
    composer = Composer(make_catalogue(make_plugins(toy, discover=True)))
    rng, n_chains = np.random.default_rng(1), 2000
    x = 1.0 + rng.standard_normal(n_chains)
    run = sk.sample(
        composer.make("potential", "toy-ridge"),
        **{kind: composer.make(kind, part) for kind, part in parts.items()},
        initial=np.column_stack([x, x**2 + rng.standard_normal(n_chains)]),
        chains=n_chains,
        warmup=20,
        draws=20,
        seed=1,
        progress=False,
    )
    assert 0.1 < run.acceptance.mean() < 0.9
    last = run.draws[:, -1]
    standard_error = last.std(axis=0) / np.sqrt(n_chains)
    return (np.abs(last.mean(axis=0) - (1.0, 2.0)) < 4.0 * standard_error).all()


def test_draws_of_the_sampler_are_exact(toy):
    assert means_are_exact(toy, sampler="toy-walk")


def test_draws_on_the_surrogate_are_exact(toy):
    hmc = ("hmc", {"step_size": 0.3, "n_steps": 8})
    assert means_are_exact(toy, sampler=hmc, surrogate="toy-bowl")


# chains of twenty draws say nothing of energies
@pytest.mark.filterwarnings("ignore:the energy fraction:surrokit.errors.SamplingWarning")
def test_draws_with_all_of_its_parts_are_exact(toy):
    hmc = ("hmc", {"step_size": 0.3, "n_steps": 8, "metric": "toy-masses"})
    parts = {"surrogate": "toy-bowl", "explorer": "toy-cloud", "correction": "toy-barker"}
    assert means_are_exact(toy, sampler=hmc, **parts)


def test_a_walk_that_leans_is_caught(toy):
    class Leaning(toy.Walk):
        def propose(self, state, rng):
            proposal = super().propose(state, rng)
            return attrs.evolve(proposal, positions=proposal.positions + 0.3)

    assert not means_are_exact(toy, sampler=Leaning())
