"""The ten-line plugin."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import surrokit as sk
from surrokit.errors import SurrogateFitError
from surrokit.interfaces import LearningProblem

PROBLEM = LearningProblem(dim=2, capabilities=frozenset())
ROWS = sk.Evaluations(positions=[[1, 2], [3, 4], [5, 6]], values=[1.0, np.inf, np.nan])


def echo(evaluations, rng):
    return evaluations, rng.random()


def learner(seed=1, **options):
    return sk.batch_surrogate(echo, **options).learner(PROBLEM, np.random.default_rng(seed))


def test_a_fit_sees_everything_finite_in_order():
    learning = learner()
    learning.observe(ROWS)
    learning.observe(sk.Evaluations(positions=[[7, 8]], values=[2.0]))
    rows, _ = learning.fit()
    assert_array_equal(rows.positions, [[1, 2], [7, 8]])


def test_every_fit_receives_the_same_random_state():
    learning = learner()
    learning.observe(ROWS)
    assert learning.fit()[1] == learning.fit()[1]


def test_learners_of_other_generators_differ():
    draws = []
    for seed in (1, 2):
        learning = learner(seed)
        learning.observe(ROWS)
        draws.append(learning.fit()[1])
    assert draws[0] != draws[1]


@pytest.mark.parametrize("rows", [None, ROWS.take(slice(1, 3)), sk.Evaluations.empty(2)])
def test_without_a_finite_row_there_is_no_fit(rows):
    learning = learner()
    if rows is not None:
        learning.observe(rows)
    with pytest.raises(SurrogateFitError, match="at least one finite evaluation, got none"):
        learning.fit()


def test_needs_are_used():
    learning = learner(needs={"gradient"}, uses={"outputs"}, provides={"gradient", "variance"})
    assert learning.needs == {"gradient"}
    assert learning.uses == {"gradient", "outputs"}
    assert learning.provides == {"gradient", "variance"}


def test_a_learner_can_be_written_down_and_taken_up_again():
    learning = learner()
    learning.observe(ROWS)
    again = learner(seed=9).restore(learning.state())
    (rows, number), (rows_again, number_again) = learning.fit(), again.fit()
    assert number == number_again
    assert_array_equal(rows.values, rows_again.values)


def test_a_learner_that_saw_nothing_can_be_written_down():
    again = learner().restore(learner().state())
    with pytest.raises(SurrogateFitError):
        again.fit()
