"""Which rows a surrogate learns from."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from surrokit import Evaluations
from surrokit.errors import ConfigurationError
from surrokit.interfaces import ChainState, StepInfo, check_learn_from
from surrokit.surrogate.training import training_rows

# three chains: the first accepted, the second rejected, the third accepted a move that cost no row
AFTER = ChainState(
    positions=np.array([[1.0], [5.0], [8.0]]), values=np.array([10.0, 50.0, 80.0]), cache={}
)
PAID = Evaluations(
    positions=[[0.5], [1.0], [2.0]],
    values=[5.0, 10.0, 20.0],
    gradients=[[0.05], [0.1], [0.2]],
    outputs=[[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]],
    jacobians=np.ones((3, 2, 1)),
)
INFO = StepInfo(
    accepted=np.array([True, False, True]),
    acceptance=np.ones(3),
    path_acceptance=np.ones(3),
    status=np.zeros(3, dtype=np.int64),
    divergent=np.zeros(3, dtype=bool),
    n_steps=np.ones(3, dtype=np.int64),
)


def test_all_is_everything_that_was_paid():
    assert training_rows("all", PAID, AFTER, INFO) is PAID


def test_accepted_are_the_proposals_that_were_taken():
    rows = training_rows("accepted", PAID, AFTER, INFO)
    assert_array_equal(rows.positions, [[1.0], [8.0]])
    assert_array_equal(rows.values, [10.0, 80.0])


def test_states_are_all_chains_repeats_included():
    rows = training_rows("states", PAID, AFTER, INFO)
    assert_array_equal(rows.positions, AFTER.positions)
    assert_array_equal(rows.values, AFTER.values)


def test_gradients_are_there_where_they_were_paid():
    rows = training_rows("states", PAID, AFTER, INFO)
    assert_array_equal(rows.gradients, [[0.1], [np.nan], [np.nan]])
    assert_array_equal(rows.outputs, [[2.0, 2.0], [np.nan] * 2, [np.nan] * 2])
    assert rows.jacobians is not None
    assert_array_equal(rows.jacobians[1:], np.nan)


@pytest.mark.parametrize(("learn_from", "left"), [("accepted", [10.0]), ("states", [10.0, 50.0])])
def test_positions_whose_value_is_not_known_are_left_out(learn_from, left):
    after = ChainState(
        positions=AFTER.positions, values=np.array([10.0, 50.0, np.nan]), cache=AFTER.cache
    )
    rows = training_rows(learn_from, PAID, after, INFO)
    assert_array_equal(rows.values, left)


def test_parts_that_were_not_paid_stay_missing():
    bare = Evaluations(positions=PAID.positions, values=PAID.values)
    rows = training_rows("accepted", bare, AFTER, INFO)
    assert (rows.gradients, rows.outputs, rows.jacobians) == (None, None, None)


def test_nothing_accepted_is_no_row():
    import attrs

    nobody = attrs.evolve(INFO, accepted=np.zeros(3, dtype=bool))
    assert len(training_rows("accepted", PAID, AFTER, nobody)) == 0


def test_looking_up_leaves_what_was_paid_alone():
    before = np.array(PAID.gradients)
    training_rows("states", PAID, AFTER, INFO)
    assert_array_equal(PAID.gradients, before)


@pytest.mark.parametrize("choice", ["all", "accepted", "states"])
def test_choices_are_checked(choice):
    assert check_learn_from(choice) == choice


@pytest.mark.parametrize("choice", ["some", "", None, 3])
def test_other_choices_are_refused(choice):
    with pytest.raises(ConfigurationError, match="learn_from must be one of all, accepted, states"):
        check_learn_from(choice)
