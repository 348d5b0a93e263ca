"""Targets from plain functions: each way of giving one, and each way of getting it wrong."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.capabilities import GRADIENT, GRADIENT_ALONE
from surrokit.errors import CapabilityError, ConfigurationError, EvaluationError, ShapeError

SCALE = np.array([1.0, 4.0])


def value(q):
    return 0.5 * (SCALE * q) @ q


def gradient(q):
    return SCALE * q


def rows_value(q):
    return 0.5 * (SCALE * q * q).sum(axis=1)


def rows_gradient(q):
    return SCALE * q


WAYS = {
    "value": {"value": value},
    "value-gradient": {"value": value, "gradient": gradient},
    "log-density": {"log_density": lambda q: -value(q)},
    "log-density-gradient": {
        "log_density": lambda q: -value(q),
        "gradient": lambda q: -gradient(q),
    },
    "joint": {"value_and_gradient": lambda q: (value(q), gradient(q))},
    "rows": {"value": rows_value, "batched": True},
    "rows-gradient": {"value": rows_value, "gradient": rows_gradient, "batched": True},
    "rows-log-density": {
        "log_density": lambda q: -rows_value(q),
        "gradient": lambda q: -rows_gradient(q),
        "batched": True,
    },
    "rows-joint": {
        "value_and_gradient": lambda q: (rows_value(q), rows_gradient(q)),
        "batched": True,
    },
}
ALL = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@pytest.fixture
def q(rng):
    return rng.standard_normal((5, 2))


@ALL
def test_each_way_gives_the_same_potential(way, q):
    target = sk.potential(**way, dim=2)
    assert_allclose(target.value(q), rows_value(q))
    assert target.value(np.empty((0, 2))).shape == (0,)
    sloped = "gradient" in way or "value_and_gradient" in way
    assert (GRADIENT in target.capabilities) == sloped
    if sloped:
        values, gradients = target.value_and_gradient(q)
        assert_allclose(values, rows_value(q))
        assert_allclose(gradients, rows_gradient(q))


@pytest.mark.parametrize("name", ["value-gradient", "log-density-gradient", "rows-gradient"])
def test_a_separate_gradient_can_be_had_alone(name, q):
    calls = []
    way = dict(WAYS[name])
    for key in {"value", "log_density"} & set(way):
        way[key] = lambda q: calls.append(1)
    target = sk.potential(**way, dim=2)
    assert GRADIENT_ALONE in target.capabilities
    assert_allclose(target.gradient(q), rows_gradient(q))
    assert not calls


def test_a_joint_function_gives_no_gradient_alone():
    assert sk.potential(**WAYS["joint"], dim=2).capabilities == {GRADIENT}


def test_without_a_gradient_there_is_no_capability(q):
    target = sk.potential(value, dim=2)
    assert target.capabilities == frozenset()
    with pytest.raises(CapabilityError, match="needs gradient from FunctionPotential"):
        sk.check_gradient(target, [1.0, 1.0])


@ALL
def test_functions_cannot_change_the_positions(way, q):
    def spoiling(function):
        def spoilt(x):
            result = function(x.copy())
            x[...] = np.nan
            return result

        return spoilt

    spoilt = {k: spoiling(v) if callable(v) else v for k, v in way.items()}
    before = q.copy()
    target = sk.potential(**spoilt, dim=2)
    target.value(q)
    assert_array_equal(q, before)


def test_functions_receive_users_coordinates_in_declared_order():
    seen = []
    target = sk.potential(
        lambda q: seen.append(q) or 0.0, parameters={"rate": (0, None), "slope": None}
    )
    target.value(np.array([[-1.0, 2.0]]))
    assert_allclose(seen, [[np.exp(-1.0), 2.0]])


def test_a_bounded_gradient_is_given_in_users_coordinates(differences, rng):
    target = sk.potential(
        log_density=lambda q: -q[0] + 2 * np.log(q[0]),
        gradient=lambda q: np.array([-1 + 2 / q[0]]),
        parameters={"rate": (0, None)},
    )
    z = rng.standard_normal((4, 1))
    assert_allclose(target.value_and_gradient(z)[1], differences(target.value, z), atol=1e-6)


def test_one_number_in_an_array_is_taken_as_a_number(q):
    target = sk.potential(lambda x: np.array([value(x)]), dim=2)
    assert_allclose(target.value(q), rows_value(q))


def test_integers_are_taken_as_numbers():
    assert sk.potential(lambda q: 3, dim=1).value(np.zeros((1, 1))).dtype == np.float64


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "exactly one of value, .*got none"),
        ({"value": value, "log_density": value}, "exactly one .*got value and log_density"),
        ({"value": value, "value_and_gradient": value}, "exactly one .*value and value_and_grad"),
        ({"gradient": gradient}, "exactly one of value, .*got none"),
        ({"value_and_gradient": value, "gradient": gradient}, "gradient is given twice"),
        ({"value": value, "dim": None}, "the number of parameters is not known; pass dim="),
        ({"value": value, "dim": 0}, "dim must be a whole number of at least 1, got 0"),
        ({"value": value, "dim": -3}, "dim must be a whole number of at least 1, got -3"),
        ({"value": value, "dim": 2.5}, "dim must be a whole number"),
        ({"value": value, "dim": "2"}, "dim must be a whole number"),
        ({"value": value, "dim": True}, "dim must be a whole number"),
        ({"value": value, "parameters": {"a": None}}, "dim is 2, but the parameters hold 1 num"),
    ],
)
def test_what_makes_no_target_is_refused(given, expected):
    with pytest.raises(ConfigurationError, match=expected):
        sk.potential(**{"dim": 2, **given})


def test_two_sizes_that_agree_are_taken():
    assert sk.potential(value, dim=2, parameters={"a": None, "b": None}).dim == 2


@pytest.mark.parametrize(
    ("way", "message"),
    [
        (
            {"value": lambda q: q},
            r"called with one position, must return shape .*; pass batched=True if it takes rows",
        ),
        (
            {"value": value, "gradient": lambda q: q[:1]},
            r"the gradient function.*\(2,\), got \(1,\)",
        ),
        ({"value": rows_value, "batched": False}, "axis 1 is out of bounds"),
        ({"value": lambda q: q, "batched": True}, r"called with rows.*shape \(3,\), got \(3, 2\)"),
        ({"value": lambda q: 0.0, "batched": True}, r"shape \(3,\), got \(\)"),
    ],
)
def test_a_result_of_another_shape_is_refused(way, message):
    target = sk.potential(**way, dim=2)
    method = target.value_and_gradient if "gradient" in way else target.value
    with pytest.raises((ShapeError, EvaluationError), match=message):
        method(np.ones((3, 2)))


@pytest.mark.parametrize("batched", [True, False])
def test_a_joint_function_must_return_a_pair(batched):
    target = sk.potential(value_and_gradient=lambda q: 3.0, dim=2, batched=batched)
    with pytest.raises(ShapeError, match=r"must return a pair \(value, gradient\)"):
        target.value_and_gradient(np.ones((3, 2)))


def test_a_type_error_of_a_joint_function_itself_is_not_blamed_on_its_result():
    def broken(q):
        raise TypeError("mine")

    target = sk.potential(value_and_gradient=broken, dim=2, batched=True)
    with pytest.raises(TypeError, match="mine"):
        target.value_and_gradient(np.ones((3, 2)))


def fails_on_the_right(q):
    if q[0] > 0:
        raise ZeroDivisionError("right half")
    return value(q)


def test_rows_that_fail_leave_the_others():
    q = np.array([[-1.0, 1.0], [1.0, 1.0], [-2.0, 1.0]])
    with pytest.raises(
        EvaluationError, match=r"1 of 3 positions.*ZeroDivisionError: right half"
    ) as e:
        sk.potential(fails_on_the_right, dim=2).value(q)
    assert_allclose(e.value.results[0], [value(q[0]), np.nan, value(q[2])])
    assert set(e.value.causes) == {1}


def test_a_gradient_that_fails_takes_its_row_with_it_and_no_other():
    q = np.array([[-1.0, 1.0], [1.0, 1.0]])
    target = sk.potential(value, lambda x: fails_on_the_right(x) * 0 + gradient(x), dim=2)
    with pytest.raises(EvaluationError) as caught:
        target.value_and_gradient(q)
    values, gradients = caught.value.results
    assert_allclose(values, [value(q[0]), np.nan])
    assert_allclose(gradients, [gradient(q[0]), [np.nan, np.nan]])


def test_all_rows_may_fail():
    with pytest.raises(EvaluationError, match="2 of 2 positions") as caught:
        sk.potential(fails_on_the_right, dim=2).value(np.ones((2, 2)))
    assert caught.value.results == ()


def test_an_interrupt_is_not_taken_for_a_failure():
    def interrupted(q):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sk.potential(interrupted, dim=2).value(np.ones((2, 2)))
