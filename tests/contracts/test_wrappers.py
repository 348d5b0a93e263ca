"""The core's own wrappers of potentials pass on what is inside, and count what they claim."""

import numpy as np
import pytest

from surrokit import capabilities as can
from surrokit.coordinates.parameters import Parameters
from surrokit.cost.recording import RecordingPotential
from surrokit.targets.bounds import BoundedPotential
from surrokit.testing import CountingPotential, Fenced, Limited, Wrapped
from surrokit.testing.checks import CHECKS, arguments, evaluations_of
from surrokit.testing.rows import Summed
from surrokit.testing.targets import Banana, Gaussian, Mixture
from surrokit.testing.wrappers import WITH_FACTORS, Passing

PARAMETERS = Parameters.declare({"a": (-4.0, None), "b": (-9.0, 30.0)})
WRAPPERS = {
    "recording": lambda inner: RecordingPotential(inner, keep=False),
    "keeping": lambda inner: RecordingPotential(inner, keep=True),
    "bounded": lambda inner: BoundedPotential(inner, PARAMETERS),
    "recorded bounds": lambda inner: RecordingPotential(
        BoundedPotential(inner, PARAMETERS), keep=True
    ),
    "wrapped": Wrapped,
    "counting": CountingPotential,
    "fenced": lambda inner: Fenced(inner, 1e9),
}


ALONE = {can.GRADIENT, can.GRADIENT_ALONE}
BANANA = Banana(adjoint=True)
SUBSETS = (
    set(),
    {can.GRADIENT},
    ALONE,
    ALONE | {can.HESSIAN},
    ALONE | {can.HESSIAN, can.HESSIAN_DERIVATIVE},
    ALONE | {can.HESSIAN_PRODUCT},
    ALONE | {can.HESSIAN, can.HESSIAN_DIAGONAL},
    ALONE | {can.HESSIAN_PRODUCT, can.HESSIAN_DIAGONAL},
    {can.GRADIENT, can.METRIC, can.INITIAL},
    {can.GRADIENT, can.METRIC, can.METRIC_DERIVATIVE},
    {can.FORWARD},
    {can.FORWARD, can.JACOBIAN, can.GRADIENT},
    {can.FORWARD, can.VJP, can.GRADIENT},
    Banana().capabilities,
    BANANA.capabilities,
)
LIMITED = [Limited(BANANA, frozenset(offered)) for offered in SUBSETS]
whatever_wraps = pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)


def keeps_capabilities(wrap):
    """But for matrices' diagonals and products, which the whole ones stand for."""
    for inner in LIMITED:
        spared = inner.capabilities - {can.HESSIAN_DIAGONAL, can.METRIC_PRODUCT}
        assert spared <= wrap(inner).capabilities <= inner.capabilities


@whatever_wraps
def test_capabilities_are_kept(wrap):
    keeps_capabilities(wrap)


@pytest.mark.parametrize("change", [lambda has, one: has - one, lambda has, one: has | one])
def test_a_capability_that_is_lost_or_invented_is_seen(change):
    class Broken(Wrapped):
        @property
        def capabilities(self):
            return change(self.inner.capabilities, {can.HESSIAN})

    with pytest.raises(AssertionError):
        keeps_capabilities(Broken)


@whatever_wraps
@pytest.mark.parametrize("check", CHECKS["potential"], ids=lambda check: check.name)
def test_what_is_wrapped_is_a_potential(wrap, check):
    for inner in (Gaussian(), Mixture(), Summed(), *LIMITED):
        if check.applies(wrap(inner)):
            check(lambda inside=inner: wrap(inside))


@whatever_wraps
def test_each_position_is_evaluated_once_in_one_batch(wrap):
    wrapped = wrap(counting := CountingPotential(BANANA))
    positions = BANANA.sample(np.random.default_rng(21), 5)
    for name in sorted(evaluations_of(wrapped)):
        given = arguments(name, positions)
        counting.forget()
        getattr(wrapped, name)(*given)
        cost = max(counting.positions.values()), max(counting.batches.values())
        assert cost == (5, 1), name


PRODUCTS = sorted(WITH_FACTORS)
KINDS = {
    "value": "value",
    "value_and_gradient": "gradient",
    **{name: name for name in ("gradient", "hessian", "metric")},
    **{name: name.partition("_")[0] for name in ("hessian_diagonal", *PRODUCTS)},
}
"""Methods, and what their positions count as."""


@pytest.mark.parametrize(("method", "kind"), KINDS.items())
def test_recorded_calls_equal_the_positions_evaluated(method, kind):
    inside = CountingPotential(Gaussian())
    outside = RecordingPotential(inside, keep=False)
    given = arguments(method, np.ones((5, 2)))
    getattr(outside, method)(*given)
    getattr(outside, method)(*(each[:2] for each in given))
    assert outside.calls[kind] == 7 == inside.positions[method]
    assert sum(outside.calls.values()) == 7


@pytest.mark.parametrize("method", PRODUCTS)
def test_where_nothing_could_be_evaluated_there_is_no_number(method):
    class Failing(Passing):
        def evaluate(self, name, function, positions):
            if name in PRODUCTS:
                raise RuntimeError("no")
            return function(positions)

    failing = Failing(Banana())
    outside = RecordingPotential(failing, keep=False)
    found = getattr(outside, method)(*arguments(method, np.ones((5, 2))))
    assert found.shape == (5, 2)
    assert np.isnan(found).all()


@pytest.mark.parametrize(
    ("method", "call", "inner"),
    [
        ("value", "forward", "forward"),
        ("forward", "forward", "forward"),
        ("value_and_gradient", "jacobian", "forward_and_jacobian"),
        ("gradient", "jacobian", "forward_and_jacobian"),
        ("forward_and_jacobian", "jacobian", "forward_and_jacobian"),
    ],
)
def test_calls_of_a_forward_potential_are_counted_as_such(method, call, inner):
    inside = CountingPotential(Banana())
    outside = RecordingPotential(inside, keep=True)
    given = arguments(method, np.ones((5, 2)))
    inside.forget()
    getattr(outside, method)(*given)
    assert outside.calls[call] == 5 == inside.positions[inner]
    assert len(outside.drain()) == 5
    assert sum(outside.calls.values()) == 5
