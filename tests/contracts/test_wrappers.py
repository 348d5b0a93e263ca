"""The core's own wrappers of potentials pass on what is inside, and count what they claim."""

import numpy as np
import pytest

from surrokit.coordinates.parameters import Parameters
from surrokit.cost.recording import RecordingPotential
from surrokit.targets.bounds import BoundedPotential
from surrokit.testing import CountingPotential, Fenced, Wrapped
from surrokit.testing.demands import CHECKS, arguments
from surrokit.testing.targets import Banana, Gaussian
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


@pytest.mark.parametrize("check", CHECKS["wrapper"], ids=lambda check: check.name)
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_contract(wrapper, check):
    check(lambda: WRAPPERS[wrapper])


PRODUCTS = sorted(WITH_FACTORS - {"forward_hessian_product"})
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
    given = arguments(inside, method, np.ones((5, 2)))
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
    found = getattr(outside, method)(*arguments(failing, method, np.ones((5, 2))))
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
        ("forward_hessian_product", "jacobian", "forward_hessian_product"),
    ],
)
def test_calls_of_a_forward_potential_are_counted_as_such(method, call, inner):
    inside = CountingPotential(Banana())
    outside = RecordingPotential(inside, keep=True)
    given = arguments(inside, method, np.ones((5, 2)))
    inside.forget()
    getattr(outside, method)(*given)
    assert outside.calls[call] == 5 == inside.positions[inner]
    # products are no evaluations to keep
    assert len(outside.drain()) == (0 if method == "forward_hessian_product" else 5)
    assert sum(outside.calls.values()) == 5
