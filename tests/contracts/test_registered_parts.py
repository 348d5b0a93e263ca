"""Every registered part, at every one of its examples, keeps to the contract of its kind."""

import attrs
import pytest

from surrokit.registry.catalogue import default_catalogue
from surrokit.registry.components import KINDS
from surrokit.testing import FAMILY_SIZE, checks_for, parametrize_with_checks

COMPONENTS = [entry for entry in default_catalogue() if entry.plugin.startswith("surrokit[")]

_FULL_TAIL = (
    "in the paper's scheme every row counts in full, so one row of a path that ran away rules the "
    "fit; the default weighs such rows down"
)

KNOWN_FAILURES = {
    case.name: _FULL_TAIL
    for case in checks_for(*COMPONENTS)
    if case.name.startswith("check_failed_rows[") and "-paper" in case.part
}


DECIDING = ("sampler", "integrator", "correction")
"""Kinds on which it depends whether draws are exact: all their examples are checked each time."""

FIRST = [attrs.evolve(one, examples=one.examples[:1]) for one in COMPONENTS]
OTHERS = [attrs.evolve(one, examples=one.examples[1:]) for one in COMPONENTS if one.examples[1:]]


@parametrize_with_checks(
    FIRST, levels=("quick", "statistical", "long"), known_failures=KNOWN_FAILURES
)
def test_contract(check):
    check()


@parametrize_with_checks([one for one in OTHERS if one.kind in DECIDING])
def test_contract_of_other_examples(check):
    check()


@pytest.mark.long
@parametrize_with_checks([one for one in OTHERS if one.kind not in DECIDING])
def test_contract_of_other_examples_that_decide_nothing(check):
    check()


@pytest.mark.long
@parametrize_with_checks(OTHERS, levels=("statistical", "long"))
def test_statistics_of_other_examples(check):
    check()


def test_every_kind_has_a_registered_part():
    assert {component.kind for component in COMPONENTS} == set(KINDS)


def test_every_example_is_checked():
    checked = {case.part for case in checks_for(*COMPONENTS)}

    assert len(checked) == sum(len(component.examples) for component in COMPONENTS)


def test_statistical_checks_fit_in_the_family_whose_rate_is_stated():
    statistical = list(checks_for(*COMPONENTS, levels=("statistical", "long")))

    assert 0 < len(statistical) <= FAMILY_SIZE / 2  # the other half is for tests/invariance
