"""Arguments of the wrong kind: each is refused with what was expected, and before any call."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import surrokit as sk
from surrokit.coordinates.parameters import Parameter
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.testing.targets import Gaussian


def value(q):
    pytest.fail("the target was evaluated before the arguments were checked")


def gradient(q):
    return value(q)


def potential(**options):
    return sk.potential(**{"value": value, "gradient": gradient, "dim": 2, **options})


def forward_potential(**options):
    given = {"forward": value, "dim": 2, "data": [1.0], "noise_sd": 1.0}
    return sk.forward_potential(**{**given, **options})


def sample(**options):
    return sk.sample(potential(), **options)


def start(initial):
    return sk.sample(
        sk.potential(value, gradient, parameters={"a": None, "b": (0, 1)}), initial=initial
    )


MADE = (potential, forward_potential)
AB = {"a": None, "b": None}
KINDS = ["sampler", "surrogate", "schedule", "explorer", "correction"]
PART = r"a {} must be a registered name \(.*\), a pair of name and settings, or an obj"


class Half:
    """Has the attributes of a potential."""

    dim, value, capabilities = 2, 3.0, frozenset()


def each(make, name, values, message, **more):
    return [(partial(make, **{name: given}, **more), message) for given in values]


A_FUNCTION = "{} must be a function of a position, got"
SETTINGS = [
    # parameters and sizes
    *(
        case
        for make in MADE
        for case in [
            *each(
                make, "parameters", [["a", "b"], ("a", "b")],
                r"parameters must be a dictionary .*; pass \{'a': None, 'b': \(0, 1\)\}", dim=None,
            ),
            *each(
                make, "dim", [2.5, 2.0, "2", True, [2], np.nan],
                "dim must be a whole number of at least 1, got", parameters=AB,
            ),
            *each(make, "dim", [2.5, "2", np.nan], "dim must be a whole number of at least 1, got"),
            *each(make, "batched", ["no"], "batched must be True or False, got 'no'"),
        ]
    ),
    *each(
        potential, "parameters", ["ab", 3, [], [("a", (0, 1))], {"a", "b"}],
        r"parameters must be a dictionary .*, got .*; pass \{'a': None, 'b': \(0, 1\)\}", dim=None,
    ),
    *each(
        potential, "parameters", [{1: None}, {"": None}, {None: None}, {("a",): None}],
        "a parameter's name must be text that files can hold, got", dim=None,
    ),
    *each(
        potential, "parameters", [{"w[0]": None, "w": sk.real(2)}],
        r"two numbers the name 'w\[0\]'", dim=None,
    ),
    # functions, and what a forward potential is made of
    *(
        case
        for name in ("value", "gradient", "log_density", "value_and_gradient")
        for case in each(
            potential, name, [3, True, "value", [1.0, 2.0], np.zeros(2)], A_FUNCTION.format(name),
            **{other: None for other in ("value", "gradient") if other != name},
        )
    ),
    *(
        case
        for name in ("forward", "jacobian", "hessian")
        for case in each(forward_potential, name, [3], A_FUNCTION.format(name) + " 3")
    ),
    *each(
        forward_potential, "prior", ["normal", 3.0, sk.gaussian_prior],
        r"prior must be an object with value_and_gradient, such as surrokit.gaussian_prior",
    ),
    *each(
        forward_potential, "energy", ["misfit", value, 3],
        "energy must be an object with value and value_and_gradients, such as",
        data=None, noise_sd=None,
    ),
    *each(sk.gaussian_prior, "mean", [np.inf], "mean of a prior must be finite, got inf; leave"),
    # parts of a run
    *(
        case
        for given in [3, True, ["hmc"], ("hmc",), {"hmc": 1}, object()]
        for case in [
            *((partial(sample, **{kind: given}), PART.format(kind)) for kind in KINDS),
            *(
                (partial(sample, sampler=("hmc", {kind: given})), PART.format(kind))
                for kind in ("integrator", "metric")
            ),
        ]
    ),
    *each(
        sample, "warm_start",
        [3, True, [], {"positions": [[1.0, 2.0]]}, [[[1.0, 2.0]], [1.0]], np.zeros((3, 2))],
        "warm_start must be the path of a run's file, a list of such, an Evaluations, or a tu",
    ),
    *each(sample, "progress", ["no", 1, None], "progress must be True or False"),
    *each(sample, "observers", [3, None, object()], "observers must be a list of objects, got"),
    *each(sample, "observers", [[object()]], "must have at least one of the methods"),
    *each(
        sk.sample, "target", [Half(), type("Wide", (Half,), {"dim": 2.5, "value": value})()],
        "a target must be a potential, got.* of dim 2",
    ),
    *each(sk.sample, "target", [Gaussian], "a target must be a potential, got"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), SETTINGS)
def test_settings_of_another_kind_are_refused(call, message):
    with pytest.raises(ConfigurationError, match=message):
        call()


def test_parts_of_another_kind_and_classes_are_refused():
    hmc = sk.make("sampler", "hmc")
    with pytest.raises(ConfigurationError, match=r"surrokit.plugin.Schedule; got HMC"):
        sample(surrogate="additive", schedule=hmc)
    with pytest.raises(ConfigurationError, match="the class HMC is given; make an object of it"):
        sample(sampler=type(hmc))


NO_NUMBERS = [["a"], ["1.0"], [None], [1j], [[1.0, 2.0], [1.0]], object()]
ARRAYS = [
    *(
        case
        for name in ("data", "noise_sd")
        for case in each(
            forward_potential, name, NO_NUMBERS, f"{name} must be numbers, equally many in each"
        )
    ),
    *each(sk.gaussian_prior, "mean", ["one"], "mean of a prior must be numbers, equally many"),
    *each(sk.gaussian_prior, "sd", ["one"], "sd of a prior must be numbers, equally many"),
    *each(start, "initial", ["a", ["a", "b"], [None, 0.5]], "a position must be numbers"),
    *each(start, "initial", [[[1.0, 0.5], [1.0]]], "equally many in each row"),
    *each(start, "initial", [{"a": 1.0, "c": 0.5}], "must be given for a, b, got a, c"),
    *each(start, "initial", [{"a": 1.0, "b": "half"}], "parameter 'b' must be numbers"),
    *each(
        start, "initial", [{"a": [1, 2], "b": [0.5] * 3}],
        r"equally many positions, got \(2,\) of a, \(3,\) of b",
    ),
    *each(sample, "warm_start", [([[1.0, 2.0]],)], "warm_start must be .* got 1 items"),
    *each(
        sample, "warm_start", [(None, [1.0]), ([["a", "b"]], [1.0])],
        "positions of evaluations must be numbers",
    ),
    *each(
        sample, "warm_start", [([[1.0, 2.0]], ["a"])], "values of evaluations must be numbers"
    ),
    *each(
        sample, "warm_start", [([[1.0, 2.0]], [1.0], [["x", 2]])],
        "gradients of evaluations must be numbers",
    ),
    *each(sample, "warm_start", [([[1.0, 2.0], [1.0]], [1.0])], "equally many in each row"),
    *each(
        sk.check_gradient, "position", ["ab", ["a", "b"], None], "position must be numbers",
        target=Gaussian(),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), ARRAYS)
def test_what_is_no_array_of_numbers_is_refused(call, message):
    with pytest.raises(ShapeError, match=message):
        call()


def test_observers_may_come_one_at_a_time():
    seen = []

    class Listener:
        def surrokit_run_finished(self, run, outcome):
            seen.append(outcome)

    sizes = {"warmup": 20, "draws": 2, "seed": 1, "progress": False}
    run = sk.sample(Gaussian(), sampler="hmc", observers=iter([Listener()]), **sizes)
    assert seen == [run]


def test_whatever_is_numbers_and_shapes_passes():
    for data in ((1, 2), np.array([1, 2], dtype=np.float32), [True, False]):
        assert forward_potential(data=data).dim == 2
    assert potential(dim=np.int64(2), parameters={"m": Parameter((1, 2))}).dim == 2
