"""Whether a gradient agrees with its value."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.errors import CapabilityError, GradientWarning, SamplingWarning, ShapeError

SCALE = np.array([1.0, 5.0, 0.2])
AT = np.array([1.5, -0.7, 2.0])
RUN = {"chains": 4, "warmup": 20, "draws": 2, "seed": 1, "progress": False, "initial": AT}


def value(q):
    return 0.5 * (SCALE * q) @ q + q[0] * q[1]


def right(q):
    return SCALE * q + np.array([q[1], q[0], 0.0])


def one_wrong(q):
    return right(q) * [1.0, 1.1, 1.0]


WRONG = {
    "sign": lambda q: -right(q),
    "factor": lambda q: 2 * right(q),
    "order": lambda q: right(q)[[1, 2, 0]],
    "missing-term": lambda q: np.array([q[0], 0.0, 0.2 * q[2]]),
}


def target(gradient, **options):
    return sk.potential(value, gradient, **(options or {"dim": 3}))


def test_a_right_gradient_agrees():
    check = sk.check_gradient(target(right), AT)
    assert check.ok
    assert check.wrong == []
    assert_allclose(check.given, check.differences, rtol=1e-6)
    flat = sk.potential(lambda q: 1.0, lambda q: 0 * q, dim=2)
    assert sk.check_gradient(flat, [1.0, 2.0]).ok


def test_a_wrong_gradient_disagrees():
    assert not any(sk.check_gradient(target(gradient), AT).ok for gradient in WRONG.values())


def test_the_wrong_parameter_is_named_and_written_out():
    check = sk.check_gradient(target(one_wrong, parameters=dict.fromkeys("abc")), AT)
    assert check.wrong == ["b"]
    lines = str(check).splitlines()
    assert [line.endswith("<- disagrees") for line in lines] == [False, False, True, False]
    nan = sk.potential(value, lambda q: np.array([np.nan, 1.0, 1.0]), dim=3)
    assert "q[0]" in sk.check_gradient(nan, AT).wrong


def test_bounded_parameters_are_checked_in_sampling_coordinates():
    bounded = sk.potential(
        lambda q: q[0] - 3 * np.log(q[0]),
        lambda q: np.array([1 - 3 / q[0]]),
        parameters={"rate": (0, None)},
    )
    check = sk.check_gradient(bounded, [1.5])
    assert check.ok
    assert check.labels == ["rate"]
    assert_allclose(check.given, 1.5 * (1 - 3 / 1.5) - 1)


def test_the_cost_is_what_it_says():
    counts = {"value": 0, "gradient": 0}

    def counted(name, function):
        def call(q):
            counts[name] += 1
            return function(q)

        return call

    sk.check_gradient(sk.potential(counted("value", value), counted("gradient", right), dim=3), AT)
    assert counts == {"value": 1 + 6, "gradient": 1}


def test_a_position_may_be_given_by_name():
    named = sk.potential(value, right, parameters={"a": None, "b": sk.real(2)})
    by_name = sk.check_gradient(named, {"b": AT[1:], "a": AT[0]})
    assert by_name.labels == ["a", "b[0]", "b[1]"]
    assert_allclose(by_name.given, sk.check_gradient(named, AT).given)
    with pytest.raises(ShapeError, match="must be given for a, b, got a, c"):
        sk.check_gradient(named, {"a": 1.0, "c": 2.0})
    for position in ([1.0], [[1.0, 2.0, 3.0]], 1.0):
        with pytest.raises(ShapeError, match=r"position must have shape \(3,\), got"):
            sk.check_gradient(target(right), position)
    with pytest.raises(CapabilityError, match="needs gradient"):
        sk.check_gradient(sk.potential(value, dim=3), AT)


# --- at the start of a run ---


def test_a_run_with_a_wrong_gradient_warns():
    for gradient in WRONG.values():
        said = r"use surrokit.check_gradient\(target, position\)$"
        with pytest.warns(GradientWarning, match=said):
            sk.sample(target(gradient), sampler="hmc", **RUN)


def test_an_exploration_with_a_wrong_gradient_warns():
    surrogate = sk.batch_surrogate(lambda evaluations, rng: target(right))
    with pytest.warns(GradientWarning, match="Draws stay exact, but acceptance falls"):
        sk.sample(target(WRONG["factor"]), surrogate=surrogate, **RUN)


def steep(q):
    return 1e4 * (q[1] - q[0] ** 2) ** 2 + q[0] ** 2


def steep_gradient(q):
    bent = q[1] - q[0] ** 2
    return np.array([-4e4 * bent * q[0] + 2 * q[0], 2e4 * bent])


@pytest.mark.parametrize(
    ("right", "initial"),
    [
        (target(right), AT),
        (target(right), np.zeros(3)),  # the mode
        (sk.potential(steep, steep_gradient, dim=2), None),
    ],
    ids=["away", "mode", "steep"],
)
def test_a_run_with_a_right_gradient_does_not_warn(right, initial):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", SamplingWarning)
        for seed in range(3):
            sk.sample(right, sampler="hmc", **{**RUN, "initial": initial, "seed": seed})
