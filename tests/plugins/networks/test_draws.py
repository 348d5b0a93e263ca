"""Draws of hidden parameters: their distribution, and that smaller draws begin larger ones."""

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import qmc

from surrokit.errors import ConfigurationError
from surrokit_networks.draws import data_rows, normal_rows

KINDS = ["gaussian", "orthogonal", "quasi-random"]


def draw(kind, n, dim, seed=0):
    return normal_rows(kind, n, dim, np.random.default_rng(seed))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "dim"), [(1, 1), (5, 3), (17, 4), (20, 1), (3, 40)])
def test_shapes(kind, n, dim):
    rows = draw(kind, n, dim)
    assert rows.shape == (n, dim)
    assert rows.dtype == np.float64
    assert np.isfinite(rows).all()
    assert draw(kind, 0, dim).shape == (0, dim)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dim", [1, 3, 8])
def test_a_larger_draw_begins_with_the_smaller(kind, dim):
    largest = draw(kind, 40, dim)
    for n in (1, 2, 7, 8, 9, 33):
        np.testing.assert_allclose(draw(kind, n, dim), largest[:n], rtol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_each_generator_has_its_own_rows_and_moves_on(kind):
    assert not np.array_equal(draw(kind, 6, 3, seed=1), draw(kind, 6, 3, seed=2))
    rng = np.random.default_rng(1)
    first = normal_rows(kind, 6, 3, rng)
    np.testing.assert_array_equal(first, draw(kind, 6, 3, seed=1))
    assert not np.array_equal(first, normal_rows(kind, 6, 3, rng))


@pytest.mark.parametrize("kind", KINDS)
def test_moments_are_normal(kind):
    # pooled over independent draws of a few rows, so that dependence inside a draw cannot hide
    rows = np.concatenate([draw(kind, 8, 5, seed) for seed in range(1500)])
    n = len(rows)
    for power, moment, variance in ((1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0)):
        error = (rows**power).mean(axis=0) - moment
        assert (np.abs(error) < 5.0 * np.sqrt(variance / n)).all()
    covariance = rows.T @ rows / n
    assert np.abs(covariance - np.eye(5)).max() < 5.0 * np.sqrt(2.0 / n)


@pytest.mark.parametrize("kind", KINDS)
def test_lengths_are_those_of_gaussian_rows(kind):
    squares = np.concatenate(
        [np.square(draw(kind, 12, 6, seed)).sum(axis=1) for seed in range(800)]
    )
    assert squares.mean() == pytest.approx(6.0, rel=0.02)
    assert squares.var() == pytest.approx(12.0, rel=0.06)


def test_rows_of_a_block_are_at_right_angles():
    dim = 6
    rows = draw("orthogonal", 3 * dim + 2, dim)
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    for start in (0, dim, 2 * dim, 3 * dim):
        block = units[start : start + dim]
        np.testing.assert_allclose(block @ block.T, np.eye(len(block)), atol=1e-13)
    assert np.abs(units[:dim] @ units[dim : 2 * dim].T).max() > 0.1


def test_directions_of_a_block_are_uniform():
    # without the sign fixed, the first row of Q would always point to one side
    first = np.array([draw("orthogonal", 4, 4, seed)[:, 0] for seed in range(400)])
    positive = (first > 0).mean(axis=0)
    assert (np.abs(positive - 0.5) < 5.0 * 0.5 / np.sqrt(400)).all()


def test_quasi_random_rows_fill_the_cube_more_evenly():
    for n in (64, 100):
        gaussian, quasi = (
            np.median(
                [qmc.discrepancy(ndtr(draw(kind, n, 3, seed)), method="CD") for seed in range(5)]
            )
            for kind in ("gaussian", "quasi-random")
        )
        assert quasi < 0.2 * gaussian


def test_quasi_random_rows_of_many_dimensions():
    rows = draw("quasi-random", 300, 1200)
    assert np.isfinite(rows).all()
    assert rows.std() == pytest.approx(1.0, abs=0.01)


def test_too_many_dimensions_are_refused():
    with pytest.raises(ConfigurationError, match="at most 21201 dimensions, got 30000"):
        draw("quasi-random", 2, 30000)


def test_unknown_kinds_are_refused():
    with pytest.raises(ConfigurationError, match="'orthogonal' or 'quasi-random', got 'sobol'"):
        draw("sobol", 2, 2)


TRAINING = np.random.default_rng(8).standard_normal((30, 3)) * [1.0, 2.0, 0.0] + [0.0, 5.0, -1.0]


def test_data_rows_are_training_rows_none_twice():
    rows = data_rows(TRAINING, 20, np.random.default_rng(0))
    matches = (rows[:, None, :] == TRAINING).all(axis=2)
    assert (matches.sum(axis=1) == 1).all()
    assert matches.any(axis=0).sum() == 20


@pytest.mark.parametrize("n", [0, 1, 29, 30, 31, 75])
def test_a_larger_draw_of_data_rows_begins_with_the_smaller(n):
    largest = data_rows(TRAINING, 100, np.random.default_rng(3))
    np.testing.assert_array_equal(data_rows(TRAINING, n, np.random.default_rng(3)), largest[:n])


def test_data_rows_beyond_the_data_lie_around_them():
    before = TRAINING.copy()
    rows = data_rows(TRAINING, 3000, np.random.default_rng(1))
    np.testing.assert_array_equal(TRAINING, before)
    assert len(np.unique(rows, axis=0)) == 3000
    assert (np.sort(rows[:30], axis=0) == np.sort(TRAINING, axis=0)).all()
    bandwidth = 30 ** (-1 / 7)
    spread = np.sqrt(1 + bandwidth**2) * TRAINING.std(axis=0)
    np.testing.assert_allclose(rows[30:].mean(axis=0), TRAINING.mean(axis=0), atol=0.2)
    np.testing.assert_allclose(rows[30:, :2].std(axis=0), spread[:2], rtol=0.05)
    assert rows[30:, 2].std() == pytest.approx(bandwidth, rel=0.05)  # it never moved


def test_data_rows_of_a_single_position():
    rows = data_rows(np.array([[1.0, 2.0]]), 4, np.random.default_rng(1))
    np.testing.assert_array_equal(rows[0], [1.0, 2.0])
    assert np.isfinite(rows).all()
    assert len(np.unique(rows, axis=0)) == 4
