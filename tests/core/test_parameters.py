"""Names, shapes and bounds of parameters."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from surrokit import Parameter, Parameters, vector
from surrokit.errors import ConfigurationError, ShapeError

MIXED = {
    "rate": (0, np.inf),
    "slope": None,
    "w": vector(2, lower=0, upper=1),
    "m": Parameter((2, 2)),
}


@pytest.fixture
def mixed():
    return Parameters.declare(MIXED)


def test_every_form_of_declaration_is_read(mixed):
    assert mixed.specs["rate"].bounds == (0.0, np.inf)
    assert mixed.specs["slope"] == Parameter()
    assert mixed.specs["w"] == Parameter((2,), lower=0, upper=1)
    assert mixed.specs["m"].shape == (2, 2)
    assert mixed.bounded
    assert not Parameters.unnamed(3).bounded
    one_sided = Parameters.declare({"a": (None, 3), "b": (None, None)})
    assert one_sided.specs["a"].bounds == (-np.inf, 3.0)
    assert one_sided.specs["b"].bounds == (-np.inf, np.inf)


def test_labels_are_in_c_order(mixed):
    assert mixed.labels == ["rate", "slope", "w[0]", "w[1]", "m[0,0]", "m[0,1]", "m[1,0]", "m[1,1]"]
    assert Parameters.unnamed(3).labels == ["q[0]", "q[1]", "q[2]"]


def test_slices_lie_one_after_the_other(mixed):
    covered = [i for part in mixed.slices().values() for i in range(8)[part]]
    assert covered == list(range(mixed.dim)) == list(range(8))
    assert mixed.slices()["w"] == slice(2, 4)


def test_bounds_are_repeated_for_every_element(mixed):
    lower, upper = mixed.bounds()
    assert_array_equal(lower, [0, -np.inf, 0, 0, *[-np.inf] * 4])
    assert_array_equal(upper, [np.inf, np.inf, 1, 1, *[np.inf] * 4])


def test_values_by_name_become_a_position(mixed):
    values = {"w": [0.1, 0.2], "m": [[1, 2], [3, 4]], "slope": -1, "rate": 5}
    position = mixed.position(values)
    assert_array_equal(position, [5, -1, 0.1, 0.2, 1, 2, 3, 4])
    for name, part in mixed.slices().items():
        assert_array_equal(position[part].reshape(mixed.specs[name].shape), values[name])
    assert_array_equal(Parameters.unnamed(2).position([1, 2]), [1.0, 2.0])


def test_values_by_name_may_have_chains_in_front():
    declared = Parameters.declare({"a": None, "w": vector(2)})
    position = declared.position({"a": [1, 2, 3], "w": np.ones((3, 2))})
    assert_array_equal(position, [[1, 1, 1], [2, 1, 1], [3, 1, 1]])


@pytest.mark.parametrize(
    "bounds", [(1, 0), (1, 1), (np.nan, 1), (0, np.nan), (np.inf, None), (None, -np.inf)]
)
def test_bounds_in_the_wrong_order_are_refused(bounds):
    with pytest.raises(ConfigurationError, match="lower < upper") as caught:
        Parameters.declare({"a": bounds})
    assert "use None for a side without a bound" in str(caught.value)


@pytest.mark.parametrize("spec", [3, (1, 2, 3), (0,), [], object()])
def test_what_is_no_declaration_is_refused_by_name(spec):
    with pytest.raises(ConfigurationError, match="'rate' must be declared by None, a pair"):
        Parameters.declare({"rate": spec})


def test_no_parameters_are_refused():
    with pytest.raises(ConfigurationError, match="at least one parameter, got none"):
        Parameters.declare({})


@pytest.mark.parametrize("values", [{"a": 1}, {"a": 1, "b": 1, "c": 1}, {}])
def test_values_for_other_names_are_refused(values):
    declared = Parameters.declare({"a": None, "b": None})
    with pytest.raises(ShapeError, match="must be given for a, b, got"):
        declared.position(values)


def test_values_of_another_shape_are_refused_by_name():
    with pytest.raises(ShapeError, match=r"'w' must have shape \(2,\), got \(3,\)"):
        Parameters.declare({"w": vector(2)}).position({"w": [1, 2, 3]})


@pytest.mark.parametrize(
    "make",
    [
        lambda: vector(2.5),
        lambda: vector(0),
        lambda: vector(-1),
        lambda: Parameter(3),
        lambda: Parameters.declare({"a": "01"}),
        lambda: Parameters.declare({"a": ("x", 1)}),
    ],
    ids=["size", "none", "negative", "shape", "string", "text-bound"],
)
def test_declarations_of_another_type_are_refused(make):
    with pytest.raises(ConfigurationError):
        make()
