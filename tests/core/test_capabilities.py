"""Asking for capabilities by name."""

from __future__ import annotations

import types

import pytest

from surrokit import capabilities as can
from surrokit.errors import CapabilityError, ConfigurationError
from surrokit.potentials import (
    with_convex,
    with_forward,
    with_forward_hessian,
    with_gaussian,
    with_gradient,
    with_gradient_alone,
    with_hessian,
    with_hessian_derivative,
    with_hessian_diagonal,
    with_hessian_product,
    with_metric,
    with_metric_derivative,
    with_metric_product,
    with_rows,
    with_vjp,
)


def potential(*names):
    return types.SimpleNamespace(capabilities=frozenset(names))


WITH = {
    can.GRADIENT: with_gradient,
    can.GRADIENT_ALONE: with_gradient_alone,
    can.HESSIAN: with_hessian,
    can.HESSIAN_DERIVATIVE: with_hessian_derivative,
    can.HESSIAN_PRODUCT: with_hessian_product,
    can.HESSIAN_DIAGONAL: with_hessian_diagonal,
    can.CONVEX: with_convex,
    can.GAUSSIAN: with_gaussian,
    can.METRIC: with_metric,
    can.METRIC_DERIVATIVE: with_metric_derivative,
    can.METRIC_PRODUCT: with_metric_product,
    can.FORWARD: with_forward,
    can.FORWARD_HESSIAN: with_forward_hessian,
    can.VJP: with_vjp,
    can.ROWS: with_rows,
}
EACH = pytest.mark.parametrize(("name", "function"), WITH.items(), ids=WITH)


@EACH
def test_a_potential_that_can_is_returned(name, function):
    able = potential(name)
    assert function(able) is able


@EACH
def test_a_potential_that_cannot_is_refused(name, function):
    message = f"this computation needs {name} from SimpleNamespace, which offers values only"
    with pytest.raises(CapabilityError, match=message):
        function(potential())


def test_the_message_lists_what_is_missing_and_what_is_offered():
    with pytest.raises(ConfigurationError) as caught:
        can.require("x", frozenset("dba"), frozenset("bc"), "y", "do z")
    assert str(caught.value) == "x needs a, d from y, which offers b, c; do z"


def test_nothing_is_said_if_all_is_there():
    can.require("x", frozenset("a"), frozenset("ab"), "y", "z")


def test_all_names_are_known():
    names = {v for k, v in vars(can).items() if k.isupper() and isinstance(v, str)}
    assert names == can.KNOWN
