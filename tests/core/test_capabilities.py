"""Asking for capabilities by name."""

from __future__ import annotations

import types

import pytest

from surrokit import capabilities as can
from surrokit import potentials
from surrokit.errors import CapabilityError, ConfigurationError


def potential(*names):
    return types.SimpleNamespace(capabilities=frozenset(names))


NAMES = "GRADIENT GRADIENT_ALONE HESSIAN HESSIAN_DERIVATIVE HESSIAN_DIAGONAL GAUSSIAN METRIC"
NAMES += " FORWARD VJP ROWS"


@pytest.mark.parametrize("name", NAMES.split())
def test_a_potential_that_can_is_returned_and_any_other_refused(name):
    function, capability = getattr(potentials, f"with_{name.lower()}"), getattr(can, name)
    able = potential(capability)
    assert function(able) is able
    message = f"this computation needs {capability} from SimpleNamespace, which offers values only"
    with pytest.raises(CapabilityError, match=message):
        function(potential())


def test_the_message_lists_what_is_missing_and_what_is_offered():
    with pytest.raises(ConfigurationError) as caught:
        can.require("x", frozenset("dba"), frozenset("bc"), "y", "do z")
    assert str(caught.value) == "x needs a, d from y, which offers b, c; do z"
    can.require("x", frozenset("a"), frozenset("ab"), "y", "z")


def test_all_names_are_known():
    names = {v for k, v in vars(can).items() if k.isupper() and isinstance(v, str)}
    assert names == can.KNOWN
