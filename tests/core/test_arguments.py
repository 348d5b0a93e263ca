"""Arguments of the wrong kind: each is refused with what was expected, and before any call."""

from __future__ import annotations

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


def named():
    return sk.potential(value, gradient, parameters={"a": None, "b": (0, 1)})


# --- parameters and sizes ---


@pytest.mark.parametrize("given", [["a", "b"], ("a", "b")])
@pytest.mark.parametrize("make", [potential, forward_potential])
def test_a_list_of_names_is_no_declaration(make, given):
    message = r"parameters must be a dictionary .*; pass \{'a': None, 'b': None\}"
    with pytest.raises(ConfigurationError, match=message):
        make(dim=None, parameters=given)


@pytest.mark.parametrize("given", ["ab", 3, [], [("a", (0, 1))], {"a", "b"}])
def test_parameters_are_a_dictionary(given):
    message = r"parameters must be a dictionary .*, got .*; pass \{'a': None, 'b': \(0, 1\)\}"
    with pytest.raises(ConfigurationError, match=message):
        potential(dim=None, parameters=given)


@pytest.mark.parametrize("name", [1, "", None, ("a",)])
def test_names_are_text(name):
    with pytest.raises(ConfigurationError, match="a parameter's name must be text, got"):
        potential(dim=None, parameters={name: None})


def test_no_two_numbers_have_one_name():
    with pytest.raises(ConfigurationError, match=r"two numbers the name 'w\[0\]'"):
        potential(dim=None, parameters={"w[0]": None, "w": sk.vector(2)})


@pytest.mark.parametrize("dim", [2.5, 2.0, "2", True, [2], np.nan])
@pytest.mark.parametrize("parameters", [None, {"a": None, "b": None}])
@pytest.mark.parametrize("make", [potential, forward_potential])
def test_a_dimension_is_a_whole_number(make, dim, parameters):
    with pytest.raises(ConfigurationError, match="dim must be a whole number of at least 1, got"):
        make(dim=dim, parameters=parameters)


@pytest.mark.parametrize("size", ["3", 2.5, -1, 0, True, (2,), None])
def test_the_size_of_a_vector_is_a_whole_number(size):
    with pytest.raises(ConfigurationError, match="size of a vector must be a whole number of at"):
        sk.vector(size)


@pytest.mark.parametrize("bound", ["0", [0, 0], True])
def test_bounds_of_a_vector_are_numbers(bound):
    with pytest.raises(ConfigurationError, match="bounds of a parameter must be numbers or None"):
        sk.vector(2, lower=bound)


# --- functions and flags ---


@pytest.mark.parametrize("given", [3, True, "value", [1.0, 2.0], np.zeros(2)])
@pytest.mark.parametrize("name", ["value", "gradient", "log_density", "value_and_gradient"])
def test_what_is_called_is_a_function(name, given):
    options = {"value": None, "gradient": None, name: given}
    with pytest.raises(ConfigurationError, match=f"{name} must be a function of a position, got"):
        potential(**options)


@pytest.mark.parametrize("name", ["forward", "jacobian", "hessian"])
def test_what_is_called_of_a_forward_map_is_a_function(name):
    with pytest.raises(ConfigurationError, match=f"{name} must be a function of a position, got 3"):
        forward_potential(**{name: 3})


@pytest.mark.parametrize("make", [potential, forward_potential])
def test_batched_is_true_or_false(make):
    with pytest.raises(ConfigurationError, match="batched must be True or False, got 'no'"):
        make(batched="no")


# --- what a forward potential is made of ---


@pytest.mark.parametrize("name", ["data", "noise_sd"])
@pytest.mark.parametrize("given", [["a"], ["1.0"], [None], [1j], [[1.0, 2.0], [1.0]], object()])
def test_data_and_noise_are_numbers(name, given):
    with pytest.raises(ShapeError, match=f"{name} must be numbers, equally many in each row, got"):
        forward_potential(**{name: given})


def test_data_are_finite():
    with pytest.raises(
        ConfigurationError, match=r"data must be finite, got nan at \[1\]; leave out"
    ):
        forward_potential(data=[1.0, np.nan])


@pytest.mark.parametrize("prior", ["normal", 3.0, sk.gaussian_prior])
def test_a_prior_is_one(prior):
    message = r"prior must be an object with value_and_gradient, such as surrokit.gaussian_prior"
    with pytest.raises(ConfigurationError, match=message):
        forward_potential(prior=prior)


@pytest.mark.parametrize("energy", ["misfit", value, 3])
def test_an_energy_is_one(energy):
    message = "energy must be an object with value and value_and_gradients, such as"
    with pytest.raises(ConfigurationError, match=message):
        forward_potential(energy=energy, data=None, noise_sd=None)


@pytest.mark.parametrize("name", ["mean", "sd"])
def test_what_a_prior_is_made_of_are_numbers(name):
    message = f"{name} of a prior must be numbers, equally many in each row"
    with pytest.raises(ShapeError, match=message):
        sk.gaussian_prior(**{name: "one"})


def test_the_mean_of_a_prior_is_finite():
    with pytest.raises(ConfigurationError, match="mean of a prior must be finite, got inf; leave"):
        sk.gaussian_prior(mean=np.inf)


# --- sample ---


KINDS = ["sampler", "surrogate", "schedule", "explorer", "correction"]


@pytest.mark.parametrize("given", [3, True, ["hmc"], ("hmc",), {"hmc": 1}, object()])
@pytest.mark.parametrize("kind", [*KINDS, "integrator", "metric"])
def test_a_part_is_a_name_or_an_object_of_its_kind(kind, given):
    message = rf"a {kind} must be a registered name \(.*\), a pair of name and settings, or an obj"
    parts = {kind: given} if kind in KINDS else {"sampler": ("hmc", {kind: given})}
    with pytest.raises(ConfigurationError, match=message):
        sk.sample(potential(), **parts)


def test_a_part_of_another_kind_is_refused():
    with pytest.raises(ConfigurationError, match=r"surrokit.plugin.Schedule; got HMC"):
        sk.sample(potential(), surrogate="additive", schedule=sk.make("sampler", "hmc"))


def test_a_part_is_no_class():
    sampler = type(sk.make("sampler", "hmc"))
    with pytest.raises(ConfigurationError, match="the class HMC is given; make an object of it"):
        sk.sample(potential(), sampler=sampler)


class Half:
    """Has the attributes of a potential."""

    dim, value, capabilities = 2, 3.0, frozenset()


@pytest.mark.parametrize(
    ("target", "got"),
    [
        (Half(), ".* of dim 2"),
        (type("Wide", (Half,), {"dim": 2.5, "value": value})(), ".* of dim 2"),
        (Gaussian, ""),
    ],
)
def test_a_target_has_a_dimension_can_be_evaluated_and_is_no_class(target, got):
    with pytest.raises(ConfigurationError, match=f"a target must be a potential, got{got}"):
        sk.sample(target)


@pytest.mark.parametrize(
    ("initial", "message"),
    [
        ("a", "a position must be numbers"),
        (["a", "b"], "a position must be numbers"),
        ([None, 0.5], "a position must be numbers"),
        ([[1.0, 0.5], [1.0]], "equally many in each row"),
        ({"a": 1.0}, "values by name must be given for a, b, got a"),
        ({"a": 1.0, "c": 0.5}, "values by name must be given for a, b, got a, c"),
        ({"a": 1.0, "b": "half"}, "parameter 'b' must be numbers"),
        ({"a": [1, 2], "b": [0.5] * 3}, r"equally many positions, got \(2,\) of a, \(3,\) of b"),
    ],
)
def test_starts_are_numbers_by_known_names(initial, message):
    with pytest.raises(ShapeError, match=message):
        sk.sample(named(), initial=initial)


@pytest.mark.parametrize(
    "given", [3, True, [], {"positions": [[1.0, 2.0]]}, [[[1.0, 2.0]], [1.0]], np.zeros((3, 2))]
)
def test_a_warm_start_is_files_or_evaluations(given):
    message = "warm_start must be the path of a run's file, a list of such, an Evaluations, or a tu"
    with pytest.raises(ConfigurationError, match=message):
        sk.sample(potential(), warm_start=given)


@pytest.mark.parametrize(
    ("evaluations", "message"),
    [
        (([[1.0, 2.0]],), "evaluations in warm_start must be .* got 1 items"),
        ((None, [1.0]), "positions of evaluations must be numbers"),
        (([["a", "b"]], [1.0]), "positions of evaluations must be numbers"),
        (([[1.0, 2.0]], ["a"]), "values of evaluations must be numbers"),
        (([[1.0, 2.0]], [1.0], [["x", 2]]), "gradients of evaluations must be numbers"),
        (([[1.0, 2.0], [1.0]], [1.0]), "equally many in each row"),
    ],
)
def test_evaluations_are_arrays(evaluations, message):
    with pytest.raises(ShapeError, match=message):
        sk.sample(potential(), warm_start=evaluations)


@pytest.mark.parametrize("progress", ["no", 1, None])
def test_progress_is_true_or_false(progress):
    with pytest.raises(ConfigurationError, match="progress must be True or False"):
        sk.sample(potential(), progress=progress)


@pytest.mark.parametrize("observers", [3, None, object()])
def test_observers_are_a_list(observers):
    with pytest.raises(ConfigurationError, match="observers must be a list of objects, got"):
        sk.sample(potential(), observers=observers)


def test_observers_listen_to_something_before_anything_is_called():
    with pytest.raises(ConfigurationError, match="must have at least one of the methods"):
        sk.sample(potential(), observers=[object()])


def test_observers_may_come_one_at_a_time():
    seen = []

    class Listener:
        def surrokit_run_finished(self, run, outcome):
            seen.append(outcome)

    run = sk.sample(
        Gaussian(), sampler="hmc", observers=iter([Listener()]), warmup=20, draws=2, seed=1,
        progress=False,
    )  # fmt: skip
    assert seen == [run]


@pytest.mark.parametrize("position", ["ab", ["a", "b"], None])
def test_a_gradient_is_checked_at_numbers(position):
    with pytest.raises(ShapeError, match="position must be numbers"):
        sk.check_gradient(Gaussian(), position)


# --- what is accepted ---


@pytest.mark.parametrize("data", [(1, 2), np.array([1, 2], dtype=np.float32), [True, False]])
def test_whatever_is_numbers_passes(data):
    assert forward_potential(data=data).dim == 2


def test_a_shape_of_a_parameter_is_still_a_tuple():
    assert potential(dim=np.int64(2), parameters={"m": Parameter((1, 2))}).dim == 2
