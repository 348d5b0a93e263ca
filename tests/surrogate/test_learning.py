"""Which rows a surrogate learns from, one from a function, and how good a fit is elsewhere."""

from __future__ import annotations

import math

import attrs
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import surrokit as sk
from surrokit.capabilities import GRADIENT
from surrokit.errors import SurrogateFitError
from surrokit.interfaces import (
    ChainState,
    Evaluations,
    LearningProblem,
    StepInfo,
)
from surrokit.surrogate.quality import FitQuality, fit_quality
from surrokit.surrogate.training import training_rows

PROBLEM = LearningProblem(dim=2, capabilities=frozenset())
ROWS = sk.Evaluations(positions=[[1, 2], [3, 4], [5, 6]], values=[1.0, np.inf, np.nan])


def echo(evaluations, rng):
    return evaluations, rng.random()


def learner(seed=1, **options):
    return sk.batch_surrogate(echo, **options).learner(PROBLEM, np.random.default_rng(seed))


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
    more = sk.Evaluations(positions=[[7, 8]], values=[2.0])
    for each in (learning, again):
        each.observe(more)
    (rows, number), (rows_again, number_again) = learning.fit(), again.fit()
    assert number == number_again == learning.fit()[1]
    assert_array_equal(rows.positions, [[1, 2], [7, 8]])  # all that is finite, in order
    assert_array_equal(rows.values, rows_again.values)
    other = learner(seed=2)
    other.observe(ROWS)
    assert other.fit()[1] != number


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


def test_rows_are_the_states_or_the_proposals_that_were_taken():
    rows = training_rows("accepted", PAID, AFTER, INFO)
    assert_array_equal(rows.positions, [[1.0], [8.0]])
    assert_array_equal(rows.values, [10.0, 80.0])
    nobody = attrs.evolve(INFO, accepted=np.zeros(3, dtype=bool))
    assert len(training_rows("accepted", PAID, AFTER, nobody)) == 0
    before = np.array(PAID.gradients)
    rows = training_rows("states", PAID, AFTER, INFO)
    assert_array_equal(PAID.gradients, before)
    assert_array_equal(rows.positions, AFTER.positions)
    assert_array_equal(rows.values, AFTER.values)
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


@attrs.frozen
class Bowl:
    """|q|^2 / 2 + slope . q + level, with a gradient or without."""

    slope: tuple[float, ...] = (0.0, 0.0)
    level: float = 0.0
    capabilities: frozenset[str] = frozenset({GRADIENT})

    @property
    def dim(self):
        return len(self.slope)

    def value(self, positions):
        return 0.5 * (positions**2).sum(axis=1) + positions @ np.array(self.slope) + self.level

    def value_and_gradient(self, positions):
        return self.value(positions), positions + np.array(self.slope)


def exact(n=50, gradients=True):
    positions = np.random.default_rng(3).standard_normal((n, 2))
    values, slopes = Bowl().value_and_gradient(positions)
    return Evaluations(positions=positions, values=values, gradients=slopes if gradients else None)


def test_a_perfect_surrogate_has_no_error():
    quality = fit_quality(Bowl(), exact())
    assert quality == FitQuality(variance=0.0, gradient_error=0.0, n_points=50)
    assert quality.acceptance == 1.0
    # nor is a constant one; without a scale for errors of gradients any is large
    quality = fit_quality(Bowl(slope=(3.0, -4.0), level=9.0), exact())
    assert quality.variance == pytest.approx(np.var(exact().positions @ [3.0, -4.0]))
    flat = Evaluations(positions=np.eye(2), values=np.zeros(2), gradients=np.zeros((2, 2)))
    assert fit_quality(Bowl(), flat).gradient_error > 1e100


def test_the_error_of_gradients_by_hand():
    rows = Evaluations(
        positions=[[3.0, 0.0], [0.0, 4.0]], values=[4.5, 8.0], gradients=[[3.0, 0.0], [0.0, 4.0]]
    )
    # Errors (1, 2) in both rows; exact lengths 3 and 4.
    quality = fit_quality(Bowl(slope=(1.0, 2.0)), rows)
    assert quality.gradient_error == pytest.approx(math.sqrt(10.0 / 25.0))
    # L^T turns errors into (2, 6), exact ones into (6, 0) and (0, 12).
    quality = fit_quality(Bowl(slope=(1.0, 2.0)), rows, np.diag([2.0, 3.0]))
    assert quality.gradient_error == pytest.approx(math.sqrt(80.0 / 180.0))
    lower = np.array([[1.0, 0.0], [2.0, 1.0]])
    # L^T (1, 2) = (5, 2); L^T (3, 0) = (3, 0); L^T (0, 4) = (8, 4)
    quality = fit_quality(Bowl(slope=(1.0, 2.0)), rows, lower)
    assert quality.gradient_error == pytest.approx(math.sqrt(58.0 / 89.0))


def test_rows_without_gradient_count_for_values_only():
    rows = exact()
    gradients = np.array(rows.gradients)
    gradients[10:] = np.nan
    gradients[5, 1] = np.nan
    part = attrs.evolve(rows, gradients=gradients)
    surrogate = Bowl(slope=(1.0, 2.0))
    known = [0, 1, 2, 3, 4, 6, 7, 8, 9]
    expected = fit_quality(surrogate, rows.take(np.array(known)))
    found = fit_quality(surrogate, part)
    assert found.gradient_error == pytest.approx(expected.gradient_error)
    assert found.variance == fit_quality(surrogate, rows).variance
    assert found.n_points == 50


@pytest.mark.parametrize(
    ("surrogate", "rows"),
    [
        (Bowl(), exact(gradients=False)),
        (Bowl(), attrs.evolve(exact(), gradients=np.full((50, 2), np.nan))),
        (Bowl(capabilities=frozenset()), exact()),
    ],
    ids=["no gradients", "none paid for", "a surrogate without"],
)
def test_where_no_gradient_is_known(surrogate, rows):
    quality = fit_quality(surrogate, rows)
    assert quality.gradient_error is None
    assert quality.variance == 0.0


@pytest.mark.parametrize("n", [0, 1])
def test_fewer_than_two_rows_have_no_variance(n):
    assert fit_quality(Bowl(), exact(n)) is None
    one = attrs.evolve(exact(2), values=[1.0, np.inf])
    assert fit_quality(Bowl(), one) is None
    bare = Evaluations(positions=PAID.positions, values=PAID.values)
    rows = training_rows("accepted", bare, AFTER, INFO)
    assert (rows.gradients, rows.outputs, rows.jacobians) == (None, None, None)


@pytest.mark.statistical
@pytest.mark.parametrize("variance", [0.01, 0.3, 2.0, 10.0])
def test_predicted_acceptance_is_that_of_normal_errors(variance):
    # Mean of min(1, exp(r)), r ~ N(-v, 2 v). Five standard errors: false alarms below 1e-6.
    rng = np.random.default_rng(1)
    ratios = rng.normal(-variance, math.sqrt(2.0 * variance), 400_000)
    accepted = np.minimum(1.0, np.exp(ratios))
    error = accepted.std() / math.sqrt(len(accepted))
    quality = FitQuality(variance=variance, gradient_error=None, n_points=9)
    assert quality.acceptance == pytest.approx(accepted.mean(), abs=5.0 * error)
