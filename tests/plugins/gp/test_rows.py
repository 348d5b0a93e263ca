"""Which rows count, and how much."""

import numpy as np
import pytest

from surrokit.errors import SurrogateFitError
from surrokit.interfaces import Evaluations
from surrokit.surrogate.whitening import Whitening
from surrokit_gp.rows import TrainingRows, typical_excess

DIM = 2


def rows_of(positions, values, gradients=None, tail="down-weighted"):
    evaluations = Evaluations(positions=positions, values=values, gradients=gradients)
    return TrainingRows.of(evaluations, tail)


@pytest.fixture
def positions(rng):
    return rng.standard_normal((20, DIM))


def test_failures_are_dropped(positions):
    values = np.arange(20.0)
    values[[3, 5]] = np.inf, -np.inf
    moved = positions.copy()
    moved[7, 0] = np.inf
    rows = rows_of(moved, values)
    assert len(rows) == 17
    assert set(rows.values) == set(range(20)) - {3, 5, 7}


def test_repeats_become_one_row_with_the_mean(positions):
    again = np.concatenate([positions, positions[:1], positions[:1]])
    values = np.concatenate([np.ones(20), [2.0, 3.0]])
    rows = rows_of(again, values)
    assert len(rows) == 20
    place = int(np.argmax(rows.copies))
    assert rows.copies[place] == 3.0
    assert rows.values[place] == pytest.approx(2.0)
    np.testing.assert_array_equal(rows.positions[place], positions[0])
    # zeros of both signs are one position
    assert len(rows_of(np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 1.0]]), np.zeros(3))) == 2


def test_a_gradient_is_kept_wherever_it_came(positions):
    again = np.concatenate([positions, positions])
    gradients = np.full((40, DIM), np.nan)
    gradients[25], gradients[3, 0] = [1.0, 2.0], 5.0
    rows = rows_of(again, np.zeros(40), gradients)
    assert len(rows.gradient_rows) == 1
    place = int(rows.gradient_rows[0])
    np.testing.assert_array_equal(rows.positions[place], positions[5])
    np.testing.assert_array_equal(rows.gradients[place], [1.0, 2.0])
    assert not len(rows_of(positions, np.zeros(20)).gradient_rows)


@pytest.mark.parametrize("far", [1e8, 1e150, 1e303, -1.7e308])
def test_points_that_ran_away_are_dropped(positions, far):
    beyond = np.concatenate([positions, [[far, 0.0]], [[0.0, far]]])
    rows = rows_of(beyond, np.zeros(22))
    assert len(rows) == 20
    assert np.isfinite(Whitening.of(rows.positions, rows.spread()).factor).all()


def test_a_coordinate_in_which_most_points_are_equal_keeps_the_others(positions):
    positions[:, 0] = 0.0
    positions[:5, 0] = [1.0, 2.0, -1.0, 3.0, 0.5]
    assert len(rows_of(positions, np.zeros(20))) == 20
    positions[:, 0] = 4.0
    assert len(rows_of(positions, np.zeros(20))) == 20


def test_far_tail_rows_have_noise_of_their_own(positions):
    typical = typical_excess(DIM)
    values = np.zeros(20)
    values[:3] = typical, 2.0 * typical, 10.0 * typical
    rows = rows_of(positions, values)
    by_value = dict(zip(rows.values, rows.tail_sd, strict=True))
    assert by_value[0.0] == by_value[typical] == 0.0
    assert by_value[2.0 * typical] == pytest.approx(0.3 * typical)
    assert by_value[10.0 * typical] == pytest.approx(9.9 * typical)
    assert not rows_of(positions, values, tail="full").tail_sd.any()


def test_rows_that_say_nothing_are_left_out_unless_there_is_nothing_else(positions):
    values = np.zeros(20)
    values[:4] = 1e5
    assert len(rows_of(positions, values)) == 16
    assert len(rows_of(positions, values, tail="full")) == 20
    steep = 1e5 * np.arange(20.0)
    assert len(rows_of(positions, steep)) == 2 * DIM + 4
    assert np.isfinite(rows_of(positions, 1e300 * np.arange(20.0)).tail_sd).all()


def test_too_few_rows_are_told_apart(positions):
    rows = rows_of(positions[:3], np.zeros(3))
    rows.demand(3, 3)
    with pytest.raises(
        SurrogateFitError,
        match="process in 2 dimensions needs at least 4 distinct points with a finite value, got 3 "
        r"\(9 rows were observed\); explore for longer, or pass",
    ):
        rows.demand(4, 9)
