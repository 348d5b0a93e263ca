"""Evaluations: their checks, and how they are put together and taken apart."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from surrokit import Evaluations
from surrokit.errors import ShapeError

PARTS = ("positions", "values", "gradients", "outputs", "jacobians")


def full(n=3, dim=2, m=4, start=0.0):
    return Evaluations(
        positions=start + np.arange(n * dim, dtype=float).reshape(n, dim),
        values=start + np.arange(n, dtype=float),
        gradients=np.ones((n, dim)),
        outputs=np.ones((n, m)),
        jacobians=np.ones((n, m, dim)),
    )


def bare(n=2, **more):
    return Evaluations(positions=np.zeros((n, 2)), values=np.zeros(n), **more)


@pytest.mark.parametrize(
    ("part", "shape"),
    [
        ("values", (2,)),
        ("values", (3, 1)),
        ("gradients", (3, 3)),
        ("gradients", (2, 2)),
        ("outputs", (2, 4)),
        ("outputs", (3,)),
        ("outputs", ()),
        ("jacobians", (3, 5, 2)),
        ("jacobians", (3, 4)),
        ("weights", (2,)),
    ],
)
def test_parts_must_agree_in_shape(part, shape):
    shapes = {"positions": (3, 2), "values": (3,), "outputs": (3, 4), part: shape}
    with pytest.raises(ShapeError, match=f"{part} of evaluations at 3 positions of dim 2"):
        Evaluations(**{name: np.zeros(shape) for name, shape in shapes.items()})


def test_positions_must_be_rows_and_jacobians_are_checked_without_outputs_too():
    for shape in ((3,), (3, 2, 1), ()):
        with pytest.raises(ShapeError, match=r"must have shape \(n, dim\), got"):
            Evaluations(positions=np.zeros(shape), values=np.zeros(3))
    with pytest.raises(ShapeError, match="jacobians"):
        bare(3, jacobians=np.zeros(7))


def test_arrays_are_copied_and_cannot_be_changed():
    positions = np.zeros((1, 2))
    rows = Evaluations(positions=positions, values=[0])
    positions[0, 0] = 5.0
    assert rows.positions[0, 0] == 0.0
    assert rows.values.dtype == np.float64
    for array in (getattr(full(), name) for name in PARTS):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 1.0


def test_the_representation_shows_shapes_and_no_numbers():
    assert repr(bare(3)) == "Evaluations(positions(3, 2), values(3,))"
    assert "jacobians(3, 4, 2)" in repr(full())
    assert (len(full(3)), len(Evaluations.empty(5))) == (3, 0)


def test_log_densities_change_sign():
    rows = Evaluations.from_log_density([[1.0]], [-3.0], [[2.0]])
    assert_array_equal(rows.values, [3.0])
    assert_array_equal(rows.gradients, [[-2.0]])
    assert Evaluations.from_log_density([[1.0]], [-3.0]).gradients is None


@pytest.mark.parametrize(
    "rows", [np.array([2, 0]), np.array([True, False, True]), slice(0, 3, 2)], ids=str
)
def test_rows_are_taken_from_every_part(rows):
    whole = full()
    taken = whole.take(rows)
    for name in PARTS:
        assert_array_equal(getattr(taken, name), getattr(whole, name)[rows])
    few = bare(3).take(slice(2))
    assert (len(few), few.gradients, few.outputs, few.jacobians) == (2, None, None, None)


def test_joined_blocks_follow_each_other_and_what_one_lacks_is_nan():
    joined = Evaluations.join([full(2), full(3, start=9.0)], 2)
    assert_array_equal(joined.values, [0, 1, 9, 10, 11])
    assert joined.jacobians.shape == (5, 4, 2)
    part = Evaluations.join([bare(), full(3)], 2)
    for array in (part.gradients, part.outputs, part.jacobians):
        assert np.isnan(array[:2]).all()
        assert (array[2:] == 1.0).all()
    assert Evaluations.join([bare(), bare()], 2).gradients is None
    assert not np.isnan(Evaluations.join([Evaluations.empty(2), full(3)], 2).outputs).any()
    assert Evaluations.join([], 2).positions.shape == (0, 2)


def test_positions_are_found_by_their_last_row():
    rows = Evaluations(positions=[[1, 2], [3, 4], [1, 2]], values=[0, 1, 2])
    wanted = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 4.0], [np.nan, 2.0]])
    assert_array_equal(rows.find(wanted), [2, 1, -1, -1])
    assert_array_equal(Evaluations.empty(2).find(np.zeros((3, 2))), [-1, -1, -1])


def test_weights_of_evaluations_go_with_their_rows():
    some = bare(3, weights=[1.0, 2.0, 0.5])
    assert some.take(slice(1, 3)).weights.tolist() == [2.0, 0.5]
    assert Evaluations.join([some, bare()], 2).weights.tolist() == [1.0, 2.0, 0.5, 1.0, 1.0]
    assert Evaluations.join([bare(), bare()], 2).weights is None
