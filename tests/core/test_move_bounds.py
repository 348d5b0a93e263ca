"""The bound of what a term may change by, less its second-order expansion."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from surrokit.potentials import move_bounds


def ends(dim, n=4000, seed=0):
    rng = np.random.default_rng(seed)
    start = rng.standard_normal((n, dim)) * rng.gamma(1.0, 2.0, (n, 1))
    step = rng.standard_normal((n, dim)) * 10.0 ** rng.uniform(-6.0, 1.0, (n, 1))
    return start, start + step


@pytest.mark.parametrize("dim", [1, 2, 3, 30])
def test_no_cube_along_any_direction_changes_by_more(dim):
    start, end = ends(dim)
    bounds = move_bounds(start, end)
    rng = np.random.default_rng(1)
    for _ in range(20):
        u = rng.standard_normal(dim)
        u /= np.linalg.norm(u)
        step = (end - start) @ u
        a, b = start @ u, end @ u
        change = np.abs(step * (a * a + a * b + b * b))  # b^3 - a^3
        assert (change <= bounds * (1 + 1e-9)).all()


@pytest.mark.parametrize("dim", [1, 2, 3, 30])
def test_no_fourth_power_along_any_direction_changes_by_more(dim):
    start, end = ends(dim)
    bounds = move_bounds(start, end, 3)
    rng = np.random.default_rng(1)
    for _ in range(20):
        u = rng.standard_normal(dim)
        u /= np.linalg.norm(u)
        step = (end - start) @ u
        a, b = start @ u, end @ u
        change = np.abs(step * (a + b) * (a * a + b * b))  # b^4 - a^4
        assert (change <= bounds * (1 + 1e-9)).all()


def test_in_one_dimension_it_is_the_change_of_the_cube():
    start, end = ends(1)
    change = (end - start) * (start**2 + start * end + end**2)
    assert_allclose(move_bounds(start, end), np.abs(change)[:, 0], rtol=1e-9)


@pytest.mark.parametrize("power", [3, 4])
def test_in_a_plane_powers_attain_it_up_to_half_a_turn_of_theirs(power):
    # Re(w^3 exp(-i t)) has third derivative 6 along the best direction, and some t turns it so that
    # it grows along the whole straight line between the cubes; likewise with fourth powers
    rng = np.random.default_rng(2)
    w = np.abs(rng.standard_normal(500)) * np.exp(1j * rng.uniform(-np.pi, np.pi, 500))
    v = w * rng.gamma(1.0, 1.0, 500) * np.exp(1j * rng.uniform(-np.pi / power, np.pi / power, 500))
    largest = np.max(
        [
            np.abs(np.real((v**power - w**power) * np.exp(-1j * t)))
            for t in np.linspace(0, np.pi, 721)
        ],
        axis=0,
    )
    before, after = np.column_stack([w.real, w.imag]), np.column_stack([v.real, v.imag])
    bounds = move_bounds(before, after, power - 1)
    assert_allclose(bounds, largest, rtol=1e-4)


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("dim", [2, 7])
def test_it_is_no_looser_than_the_two_bounds_that_are_easy_to_see(dim, order):
    start, end = ends(dim)
    r, s = np.linalg.norm(start, axis=1), np.linalg.norm(end, axis=1)
    through_centre = r ** (order + 1) + s ** (order + 1)
    straight = (order + 1) * np.maximum(r, s) ** order * np.linalg.norm(end - start, axis=1)
    bounds = move_bounds(start, end, order)
    assert (bounds <= np.minimum(through_centre, straight) * (1 + 1e-9)).all()
    short = np.linalg.norm(end - start, axis=1) < 0.01 * r
    assert bounds[short].max() < 0.1 * through_centre[short].max()


def test_it_is_the_same_both_ways_and_nothing_where_nothing_moves():
    start, end = ends(4)
    assert_allclose(move_bounds(start, end), move_bounds(end, start), rtol=1e-9)
    assert (move_bounds(start, start) == 0).all()
    nothing = np.zeros((3, 4))
    assert (move_bounds(nothing, nothing) == 0).all()
