"""Every registered part, at every one of its examples, keeps to the contract of its kind.

So do the plugins that register them, and every setting says what it is and what it may be.
"""

import re

import attrs
import pytest

from surrokit.cli.parts import part_rows
from surrokit.registry.catalogue import default_catalogue
from surrokit.registry.components import KINDS
from surrokit.registry.discovery import default_plugins
from surrokit.testing import checks_for, parametrize_with_checks
from surrokit.testing.plugins import check_imports_light, demand_light
from surrokit.testing.running import CHECKS, Case

COMPONENTS = [entry for entry in default_catalogue() if entry.plugin.startswith("surrokit[")]

DECIDING = ("sampler", "integrator", "correction")
"""Kinds on which it depends whether draws are exact: all their examples are checked each time."""

FIRST = [attrs.evolve(one, examples=one.examples[:1]) for one in COMPONENTS]
OTHERS = [attrs.evolve(one, examples=one.examples[1:]) for one in COMPONENTS if one.examples[1:]]


@parametrize_with_checks(FIRST)
def test_contract(check):
    # in the paper's scheme every row counts in full, so one row of a path that ran away rules the
    # fit; the default weighs such rows down
    if check.check.name == "check_failed_rows" and "-paper" in check.part:
        with pytest.raises(AssertionError, match="weigh down, rows far above"):
            check()
    else:
        check()


@parametrize_with_checks([one for one in OTHERS if one.kind in DECIDING])
def test_contract_of_other_examples(check):
    check()


@pytest.mark.long
@parametrize_with_checks([one for one in OTHERS if one.kind not in DECIDING])
def test_contract_of_other_examples_that_decide_nothing(check):
    check()


def test_every_kind_and_example_is_checked():
    assert {component.kind for component in COMPONENTS} == set(KINDS)
    checked = [case for case in checks_for(*COMPONENTS) if case.check.name == "check_builds"]
    assert len(checked) == sum(len(component.examples) for component in COMPONENTS)


PLUGINS = [
    Case(check, module.__name__, lambda module=module: module)
    for module in sorted(default_plugins().get_plugins(), key=lambda module: module.__name__)
    for check in CHECKS["plugin"]
    if check is not check_imports_light  # one catalogue of all shows it below
]


@pytest.mark.parametrize("check", PLUGINS, ids=[case.name for case in PLUGINS])
def test_plugin_contract(check):
    check()


def test_building_the_catalogue_imports_nothing_heavy():
    code = "from surrokit.registry.catalogue import default_catalogue; default_catalogue()"
    demand_light(code, "building the catalogue")


def test_each_setting_has_a_sentence_says_what_it_takes_and_a_bare_number_its_range():
    settings = {
        f"{row['kind']} {row['name']}.{name}": setting
        for row in part_rows(COMPONENTS)
        for name, setting in row["settings"].items()
    }
    assert len(settings) > 200
    assert [name for name, each in settings.items() if not each["help"].strip()] == []
    assert [name for name, each in settings.items() if not each["takes"]] == []
    bare = re.compile(r"(int|float)( \| None)?")
    in_words = re.compile(r"[Pp]ositive|[Aa]t least|at most|above|\d to \d|None")
    numbers = {name: each for name, each in settings.items() if bare.fullmatch(each["takes"])}
    assert [name for name, each in numbers.items() if not in_words.search(each["help"])] == []
