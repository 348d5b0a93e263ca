"""The core's own wrappers of potentials pass on what is inside, and count what they claim."""

import numpy as np
import pytest

from surrokit.coordinates.parameters import Parameters
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import EvaluationWarning
from surrokit.targets.bounds import BoundedPotential
from surrokit.testing import CountingPotential, Fenced, Wrapped, parametrize_with_checks
from surrokit.testing.demands import arguments
from surrokit.testing.targets import Banana, Gaussian
from surrokit.testing.wrappers import Passing


def recording():
    return lambda potential: RecordingPotential(potential, keep=False)


def keeping():
    return lambda potential: RecordingPotential(potential, keep=True)


def bounded():
    parameters = Parameters.declare({"a": (-4.0, None), "b": (-9.0, 30.0)})
    return lambda potential: BoundedPotential(potential, parameters)


def recorded_bounds():
    return lambda potential: RecordingPotential(bounded()(potential), keep=True)


def wrapped():
    return lambda potential: Wrapped(potential)


def counting():
    return lambda potential: CountingPotential(potential)


def fenced():
    return lambda potential: Fenced(potential, 1e9)


@parametrize_with_checks(
    [recording, keeping, bounded, recorded_bounds, wrapped, counting, fenced],
    kind="wrapper",
)
def test_contract(check):
    check()


KIND_OF_CALL = {
    "value": "value",
    "value_and_gradient": "gradient",
    "gradient": "gradient",
    "hessian": "hessian",
    "metric": "metric",
}


@pytest.mark.parametrize("method", KIND_OF_CALL)
def test_recorded_calls_equal_the_positions_evaluated(method):
    inside = CountingPotential(Gaussian())
    outside = RecordingPotential(inside, keep=False)
    positions = np.zeros((5, 2))

    getattr(outside, method)(positions)
    getattr(outside, method)(positions[:2])

    assert outside.calls[KIND_OF_CALL[method]] == 7 == inside.positions[method]
    assert sum(outside.calls.values()) == 7


WITH_FACTORS = {
    "hessian_trace_gradient": "hessian",
    "hessian_form_gradient": "hessian",
    "hessian_product": "hessian",
    "hessian_diagonal": "hessian",
    "hessian_diagonal_gradient": "hessian",
    "metric_trace_gradient": "metric",
    "metric_form_gradient": "metric",
    "metric_product": "metric",
    "forward_hessian_product": "jacobian",
}


@pytest.mark.parametrize("method", WITH_FACTORS)
def test_recorded_calls_with_factors_equal_the_positions_evaluated(method):
    inside = CountingPotential(Banana())
    outside = RecordingPotential(inside, keep=True)
    given = arguments(inside, method, np.ones((5, 2)))
    inside.positions.clear()

    getattr(outside, method)(*given)

    assert outside.calls[WITH_FACTORS[method]] == 5 == inside.positions[method]
    assert sum(outside.calls.values()) == 5
    assert len(outside.drain()) == 0


@pytest.mark.parametrize("method", WITH_FACTORS)
def test_where_nothing_could_be_evaluated_there_is_no_number(method):
    class Failing(Passing):
        def evaluate(self, name, function, positions):
            if name in WITH_FACTORS:
                raise RuntimeError("no")
            return function(positions)

    failing = Failing(Banana())
    outside = RecordingPotential(failing, keep=False)
    with pytest.warns(EvaluationWarning):
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
    ],
)
def test_calls_of_a_forward_potential_are_counted_as_such(method, call, inner):
    inside = CountingPotential(Banana())
    outside = RecordingPotential(inside, keep=False)

    getattr(outside, method)(np.zeros((5, 2)))

    assert outside.calls[call] == 5 == inside.positions[inner]
    assert sum(outside.calls.values()) == 5
