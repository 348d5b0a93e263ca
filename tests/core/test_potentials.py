"""Targets from plain functions: ways of giving one and of getting it wrong, row by row."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.capabilities import GRADIENT, GRADIENT_ALONE, METHODS
from surrokit.errors import CapabilityError, ConfigurationError, EvaluationError, ShapeError
from surrokit.model.source import row_by_row
from surrokit.testing.targets import Gaussian

SCALE = np.array([1.0, 4.0])


def value(q):
    return 0.5 * (SCALE * q) @ q


def gradient(q):
    return SCALE * q


def rows_value(q):
    return 0.5 * (SCALE * q * q).sum(axis=1)


def minus(function):
    return lambda q: -function(q)


ROWS = {"gradient": gradient, "batched": True}
WAYS = {
    "value": {"value": value},
    "value-gradient": {"value": value, "gradient": gradient},
    "log-density": {"log_density": minus(value)},
    "log-density-gradient": {"log_density": minus(value), "gradient": minus(gradient)},
    "joint": {"value_and_gradient": lambda q: (value(q), gradient(q))},
    "rows": {"value": rows_value, "batched": True},
    "rows-gradient": {"value": rows_value, **ROWS},
    "rows-log-density": {
        "log_density": minus(rows_value), **ROWS, "gradient": minus(gradient),
    },
    "rows-joint": {
        "value_and_gradient": lambda q: (rows_value(q), gradient(q)), "batched": True,
    },
}  # fmt: skip
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
        assert_allclose(gradients, gradient(q))


@pytest.mark.parametrize("name", ["value-gradient", "log-density-gradient", "rows-gradient"])
def test_a_separate_gradient_can_be_had_alone(name, q):
    calls = []
    way = dict(WAYS[name])
    for key in {"value", "log_density"} & set(way):
        way[key] = lambda q: calls.append(1)
    target = sk.potential(**way, dim=2)
    assert GRADIENT_ALONE in target.capabilities
    assert_allclose(target.gradient(q), gradient(q))
    assert not calls
    assert sk.potential(**WAYS["joint"], dim=2).capabilities == {GRADIENT}
    plain = sk.potential(value, dim=2)
    assert plain.capabilities == frozenset()
    with pytest.raises(CapabilityError, match="needs gradient from FunctionPotential"):
        sk.check_gradient(plain, [1.0, 1.0])


def test_functions_receive_users_coordinates_in_declared_order(differences, rng):
    seen = []
    target = sk.potential(
        lambda q: seen.append(q) or 0.0, parameters={"rate": (0, None), "slope": None}
    )
    target.value(np.array([[-1.0, 2.0]]))
    assert_allclose(seen, [[np.exp(-1.0), 2.0]])
    target = sk.potential(
        log_density=lambda q: -q[0] + 2 * np.log(q[0]),
        gradient=lambda q: np.array([-1 + 2 / q[0]]),
        parameters={"rate": (0, None)},
    )
    z = rng.standard_normal((4, 1))
    assert_allclose(target.value_and_gradient(z)[1], differences(target.value, z), atol=1e-6)


def test_numbers_in_arrays_and_integers_are_taken(q):
    assert_allclose(sk.potential(lambda x: np.array([value(x)]), dim=2).value(q), rows_value(q))
    assert sk.potential(lambda q: 3, dim=1).value(np.zeros((1, 1))).dtype == np.float64
    assert sk.potential(value, dim=2, parameters={"a": None, "b": None}).dim == 2


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
        ({"value": value, "parameters": {"a": None}}, "dim is 2, but the parameters hold 1 num"),
    ],
)
def test_what_makes_no_target_is_refused(given, expected):
    with pytest.raises(ConfigurationError, match=expected):
        sk.potential(**{"dim": 2, **given})


PAIR = r"must return a pair \(value, gradient\)"


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
        ({"value_and_gradient": lambda q: 3.0, "batched": True}, PAIR),
        ({"value_and_gradient": lambda q: 3.0}, PAIR),
    ],
)
def test_a_result_of_another_shape_is_refused(way, message):
    target = sk.potential(**way, dim=2)
    method = target.value if set(way) <= {"value", "batched"} else target.value_and_gradient
    with pytest.raises((ShapeError, EvaluationError), match=message):
        method(np.ones((3, 2)))


@pytest.mark.parametrize("error", [TypeError("mine"), KeyboardInterrupt("mine")])
def test_a_function_s_own_error_is_not_blamed_on_its_result(error):
    def broken(q):
        raise error

    target = sk.potential(value_and_gradient=broken, dim=2, batched=isinstance(error, TypeError))
    with pytest.raises(type(error), match="mine"):
        target.value_and_gradient(np.ones((3, 2)))


# --- rows that fail ---


def fails_on_the_right(q):
    if q[0] > 0:
        raise ZeroDivisionError("right half")
    return value(q)


def test_rows_that_fail_leave_the_others():
    q = np.array([[-1.0, 1.0], [1.0, 1.0], [-2.0, 1.0]])
    message = "1 of 3 positions could not be evaluated; the first raised ZeroDivisionError: right"
    with pytest.raises(EvaluationError, match=message) as caught:
        sk.potential(fails_on_the_right, dim=2).value(q)
    assert_allclose(caught.value.results[0], [value(q[0]), np.nan, value(q[2])])
    assert {row: type(cause) for row, cause in caught.value.causes.items()} == {
        1: ZeroDivisionError
    }
    sloped = sk.potential(value, lambda x: fails_on_the_right(x) * 0 + gradient(x), dim=2)
    with pytest.raises(EvaluationError) as caught:
        sloped.value_and_gradient(q[:2])
    values, gradients = caught.value.results
    assert_allclose(values, [value(q[0]), np.nan])
    assert_allclose(gradients, [gradient(q[0]), [np.nan, np.nan]])
    with pytest.raises(EvaluationError, match="2 of 2 positions") as caught:
        sk.potential(fails_on_the_right, dim=2).value(np.ones((2, 2)))
    assert caught.value.results == ()


def test_a_shape_error_is_wrong_everywhere_and_shapes_may_not_change(q):
    def refuses(q):
        raise ShapeError("always")

    with pytest.raises(ShapeError, match="always"):
        row_by_row(refuses, q).unwrap()
    numbers = np.array([[1.0], [3.0]])
    with pytest.raises(ShapeError, match=r"shape \(1,\) at one position and \(3,\) at another"):
        row_by_row(lambda q: (np.zeros(int(q[0])),), numbers).unwrap()


# --- one by one ---

SIZES = {"sampler": "hmc", "warmup": 50, "draws": 20, "seed": 1, "progress": False}


def test_functions_of_rows_are_called_with_single_rows(q):
    seen = []

    def counting(q):
        seen.append(len(q))
        return rows_value(q)

    def whole():
        return sk.potential(counting, gradient, dim=2, batched=True)

    values, gradients = sk.one_by_one(whole()).value_and_gradient(q)
    assert seen == [1] * 5
    assert_array_equal(gradients, gradient(q))
    assert_allclose(values, rows_value(q), rtol=1e-15)
    for target in (whole(), Gaussian()):
        calls = [sk.sample(t, **SIZES).calls for t in (target, sk.one_by_one(target))]
        assert calls[0] == calls[1]


def test_what_is_around_the_functions_is_kept(q):
    names = {"a": (0, None), "b": (0, 1)}
    whole = sk.potential(rows_value, "differences", parameters=names, batched=True)
    single = sk.one_by_one(whole)
    assert type(single) is type(whole)
    assert_allclose(single.value(q), whole.value(q), rtol=1e-14)
    for target in (sk.potential(value, dim=2), single, sk.one_by_one(Gaussian())):
        assert sk.one_by_one(target) is target
    assert sk.one_by_one(Gaussian()).value(np.empty((0, 2))).shape == (0,)


def test_every_method_of_a_potential_goes_one_by_one(q):
    whole, single = Gaussian(), sk.one_by_one(Gaussian())
    factors = {"vectors": q, "matrices": q[:, :, None] * q[:, None, :]}
    tried = 0
    for method in METHODS:
        if method.capability is not None and method.capability not in whole.capabilities:
            continue
        more = () if method.factor is None else (factors[method.factor],)
        one, other = (getattr(p, method.name)(q, *more) for p in (single, whole))
        for a, b in zip(one, other, strict=True) if isinstance(one, tuple) else [(one, other)]:
            assert_allclose(a, b, rtol=1e-12, atol=1e-12)
        tried += 1
    assert tried > 4


def test_a_row_that_fails_is_told_by_its_own_exception():
    class Failing(Gaussian):
        def value(self, positions):
            if positions[0, 0] > 0:
                raise EvaluationError({0: ArithmeticError("no")}, (), n=1)
            return super().value(positions)

    with pytest.raises(EvaluationError) as caught:
        sk.one_by_one(Failing()).value(np.array([[1.0, 0.0], [-1.0, 0.0]]))
    assert {row: str(cause) for row, cause in caught.value.causes.items()} == {0: "no"}
    assert np.isfinite(caught.value.results[0][1])
