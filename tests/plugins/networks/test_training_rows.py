"""What is done to rows before a network is fitted to them, and the whitening made of them."""

import numpy as np
import pytest

from surrokit.errors import SurrogateFitError
from surrokit_networks.training_rows import TrainingRows, least_points
from surrokit_networks.whitening import Whitening


def test_rows_that_are_not_finite_are_dropped():
    positions = np.arange(16.0).reshape(8, 2)
    positions[7, 0] = np.nan
    values = np.array([1.0, np.inf, 2.0, np.nan, 3.0, 4.0, -np.inf, 5.0])
    rows = TrainingRows.of(positions, values, "full")
    np.testing.assert_array_equal(rows.values, [1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(rows.positions, positions[[0, 2, 4, 5]])


def test_duplicates_become_one_row_that_counts_as_often():
    positions = np.array([[3.0], [1.0], [3.0], [2.0], [3.0]])
    values = np.array([9.0, 1.0, 9.0, 4.0, 8.0])
    rows = TrainingRows.of(positions, values, "full")
    np.testing.assert_array_equal(rows.positions[:, 0], [3.0, 1.0, 2.0, 3.0])
    np.testing.assert_array_equal(rows.values, [9.0, 1.0, 4.0, 8.0])
    np.testing.assert_array_equal(rows.copies, [2.0, 1.0, 1.0, 1.0])


def test_far_tail_rows_count_less_and_less():
    positions = np.arange(5.0)[:, None]
    values = np.array([0.0, 12.0, 24.0, 120.0, 1e9])
    rows = TrainingRows.of(positions, values, "down-weighted")
    np.testing.assert_allclose(rows.trust, [1.0, 1.0, 1 / 16, 1e-4, (12e-9) ** 4])
    np.testing.assert_array_equal(TrainingRows.of(positions, values, "full").trust, np.ones(5))


def test_too_few_points():
    with pytest.raises(
        SurrogateFitError,
        match=r"in 4 dimensions needs at least 6 distinct points with a finite value, got 1 "
        r"\(3 rows were observed, 1 of them not finite\); explore for longer",
    ):
        TrainingRows.of(np.ones((3, 4)), np.array([1.0, 1.0, np.inf]), "full")
    assert least_points(4) == 6


def test_whitened_positions_have_mean_zero_and_unit_covariance():
    rng = np.random.default_rng(0)
    positions = rng.standard_normal((200, 3)) @ rng.standard_normal((3, 3)) * [1.0, 1e6, 1e-6] + 5
    weights = rng.uniform(0.1, 1.0, 200)
    whitened = Whitening.of(positions, weights).apply(positions)
    np.testing.assert_allclose(weights @ whitened, 0.0, atol=1e-6)
    covariance = (whitened.T * weights) @ whitened / weights.sum()
    np.testing.assert_allclose(covariance, np.eye(3), atol=1e-6)


@pytest.mark.parametrize("n_points", [3, 8, 15])
def test_few_points_are_whitened_with_care(n_points):
    rng = np.random.default_rng(1)
    positions = rng.standard_normal((n_points, 10))
    fresh = Whitening.of(positions, np.ones(n_points)).apply(rng.standard_normal((500, 10)))
    scales = np.sqrt(np.linalg.eigvalsh(fresh.T @ fresh / 500))
    assert scales[-1] < 8.0


def test_degenerate_positions():
    rng = np.random.default_rng(2)
    line = rng.standard_normal((50, 1))
    still = np.hstack([line, 2.0 * line, np.full((50, 1), 7.0)])
    whitening = Whitening.of(still, np.ones(50))
    assert np.isfinite(whitening.apply(still)).all()
    assert np.isfinite(Whitening.of(np.ones((5, 2)), np.ones(5)).apply(np.zeros((1, 2)))).all()


def test_overflowing_positions_are_refused():
    positions = np.array([[1e200], [-1e200], [3e200]])
    with (
        np.errstate(all="ignore"),
        pytest.raises(SurrogateFitError, match="covariance of the training positions is not"),
    ):
        Whitening.of(positions, np.ones(3))


def test_identity_changes_nothing():
    positions = np.random.default_rng(3).standard_normal((4, 2))
    np.testing.assert_array_equal(Whitening.identity(2).apply(positions), positions)
