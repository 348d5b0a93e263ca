"""The bound of what a term may change by, less its expansion to second or third order."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from surrokit.potentials import move_bounds

ORDERS = pytest.mark.parametrize("order", [2, 3])


def ends(dim, n=4000, seed=0):
    rng = np.random.default_rng(seed)
    start = rng.standard_normal((n, dim)) * rng.gamma(1.0, 2.0, (n, 1))
    step = rng.standard_normal((n, dim)) * 10.0 ** rng.uniform(-6.0, 1.0, (n, 1))
    return start, start + step


def change(a, b, step, order):
    """Return how a power of order + 1 changes from a to b."""
    factor = a * a + a * b + b * b if order == 2 else (a + b) * (a * a + b * b)
    return np.abs(step * factor)


@ORDERS
@pytest.mark.parametrize("dim", [1, 2, 3, 30])
def test_no_power_along_any_direction_changes_by_more(dim, order):
    start, end = ends(dim)
    bounds = move_bounds(start, end, order)
    rng = np.random.default_rng(1)
    for _ in range(20):
        u = rng.standard_normal(dim)
        u /= np.linalg.norm(u)
        moved = change(start @ u, end @ u, (end - start) @ u, order)
        assert (moved <= bounds * (1 + 1e-9)).all()


def test_in_one_dimension_it_is_the_change_of_the_cube():
    start, end = ends(1)
    expected = change(start, end, end - start, 2)[:, 0]
    assert_allclose(move_bounds(start, end), expected, rtol=1e-9)


@pytest.mark.parametrize("power", [3, 4])
def test_in_a_plane_powers_attain_it_up_to_half_a_turn_of_theirs(power):
    # Re(w^3 exp(-i t)) has third derivative 6 along the best direction, and some t turns it so that
    # it grows along the whole straight line between the cubes; likewise with fourth powers
    rng = np.random.default_rng(2)
    w = np.abs(rng.standard_normal(500)) * np.exp(1j * rng.uniform(-np.pi, np.pi, 500))
    v = w * rng.gamma(1.0, 1.0, 500) * np.exp(1j * rng.uniform(-np.pi / power, np.pi / power, 500))
    turns = np.exp(-1j * np.linspace(0, np.pi, 721))[:, None]
    largest = np.max(np.abs(np.real((v**power - w**power) * turns)), axis=0)
    before, after = np.column_stack([w.real, w.imag]), np.column_stack([v.real, v.imag])
    assert_allclose(move_bounds(before, after, power - 1), largest, rtol=1e-4)


@ORDERS
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
    for still in (start, np.zeros((3, 4))):
        assert (move_bounds(still, still) == 0).all()
