"""What is done to rows before a regressor is fitted to them, and the whitening made of them."""

import numpy as np
import pytest

from surrokit.contracts.learner import Evaluations
from surrokit.errors import SurrogateFitError
from surrokit.surrogate.distinct import least_points
from surrokit.surrogate.whitening import Whitening
from surrokit_sklearn.fit.training_rows import TrainingRows


def rows_of(positions, values, gradients=None, tail="down-weighted", weighted=True):
    observed = Evaluations(positions=positions, values=values, gradients=gradients)
    return TrainingRows.of(observed, tail, weighted=weighted)


def test_rows_without_a_finite_value_are_left_out_and_the_others_sorted():
    positions = np.array([[3.0], [1.0], [2.0], [0.0], [np.inf]])
    rows = rows_of(positions, [3.0, 1.0, np.inf, 0.0, 5.0])
    np.testing.assert_array_equal(rows.evaluations.positions[:, 0], [0.0, 1.0, 3.0])
    np.testing.assert_array_equal(rows.evaluations.values, [0.0, 1.0, 3.0])


def test_of_copies_the_one_with_a_gradient_stays():
    positions = np.array([[2.0], [1.0], [2.0], [0.0], [2.0]])
    gradients = np.array([[np.nan], [1.0], [5.0], [np.nan], [np.nan]])
    rows = rows_of(positions, [2.0, 1.0, 2.0, 0.0, 2.0], gradients)
    np.testing.assert_array_equal(rows.copies, [1.0, 1.0, 3.0])
    np.testing.assert_array_equal(rows.evaluations.gradients[1:, 0], [1.0, 5.0])
    np.testing.assert_array_equal(rows.weights, rows.copies)


def test_far_tail_rows_count_less_and_then_nothing():
    positions = np.arange(7.0)[:, None]
    values = [0.0, 12.0, 24.0, 59.0, 61.0, 119.0, 121.0]  # 12 nats are typical
    weighted = rows_of(positions, values)
    expected = [1.0, 1.0, 1 / 16, (12 / 59) ** 4, (12 / 61) ** 4, (12 / 119) ** 4]
    np.testing.assert_allclose(weighted.trust, expected)
    assert len(rows_of(positions, values, weighted=False)) == 4
    np.testing.assert_array_equal(rows_of(positions, values, tail="full").trust, np.ones(7))


def test_positions_that_ran_away_on_a_plateau_are_left_out():
    near = np.random.default_rng(0).standard_normal((50, 2))
    near[:, 1] = 4.0  # never moved
    for away in ([1e303, 4.0], [1e5, 4.0], [0.0, -1e303]):
        positions = np.vstack([near, [away]])
        rows = rows_of(positions, np.zeros(51))
        assert len(rows) == 50 if away[0] else 51
    stuck = near.copy()
    stuck[:40, 0] = 1.0  # moved in less than half of the rows
    assert len(rows_of(np.vstack([stuck, [[1e9, 4.0]]]), np.r_[np.arange(50) / 50, 0.0])) == 50


def test_the_fewest_rows():
    assert least_points(4) == 6
    assert len(rows_of(np.eye(3)[:, :1] + np.arange(3.0)[:, None], np.arange(3.0))) == 3


def test_rows_can_be_taken():
    rows = rows_of(np.arange(5.0)[:, None], np.arange(5.0))
    part = rows.take(np.array([4, 1]))
    np.testing.assert_array_equal(part.evaluations.values, [4.0, 1.0])
    assert (len(part), part.dim) == (2, 1)


def test_whitened_positions_have_mean_zero_and_unit_covariance():
    rng = np.random.default_rng(0)
    positions = rng.standard_normal((200, 3)) @ rng.standard_normal((3, 3)) * [1.0, 1e6, 1e-6] + 5
    weights = rng.uniform(0.1, 1.0, 200)
    whitening = Whitening.of(positions, weights)
    whitened = whitening.apply(positions)
    np.testing.assert_allclose(weights @ whitened, 0.0, atol=1e-6)
    covariance = (whitened.T * weights) @ whitened / weights.sum()
    np.testing.assert_allclose(covariance, np.eye(3), atol=1e-6)
    slopes = rng.standard_normal((4, 3))
    np.testing.assert_allclose(whitening.pull(slopes) @ whitening.factor, slopes, rtol=1e-6)


@pytest.mark.parametrize("n_points", [3, 8, 15])
def test_few_points_are_whitened_with_care(n_points):
    rng = np.random.default_rng(1)
    positions = rng.standard_normal((n_points, 10))
    fresh = Whitening.of(positions, np.ones(n_points)).apply(rng.standard_normal((500, 10)))
    scales = np.sqrt(np.linalg.eigvalsh(fresh.T @ fresh / 500))
    assert scales[-1] < 8.0


def test_degenerate_positions():
    line = np.random.default_rng(2).standard_normal((50, 1))
    still = np.hstack([line, 2.0 * line, np.full((50, 1), 7.0)])
    assert np.isfinite(Whitening.of(still, np.ones(50)).apply(still)).all()
    assert np.isfinite(Whitening.of(np.ones((5, 2)), np.ones(5)).apply(np.zeros((1, 2)))).all()


def test_overflowing_positions_are_refused():
    positions = np.array([[1e200], [-1e200], [3e200]])
    with pytest.raises(
        SurrogateFitError, match=r"numbers as large as 3e\+200 overflow; rescale the parameters"
    ):
        Whitening.of(positions, np.ones(3))


def test_identity_changes_nothing():
    positions = np.random.default_rng(3).standard_normal((4, 2))
    np.testing.assert_array_equal(Whitening.identity(2).apply(positions), positions)
