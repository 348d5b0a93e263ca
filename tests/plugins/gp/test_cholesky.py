"""Factors, the jitter that they need, and what is solved with them."""

import numpy as np
import pytest

from surrokit.errors import SurrogateFitError
from surrokit_gp.kernel.cholesky import JITTERS, factorise, inverse_of, solve


@pytest.fixture
def matrix(rng):
    root = rng.standard_normal((6, 6))
    return root @ root.T + np.eye(6)


def test_a_sound_matrix_needs_no_jitter(matrix):
    before = matrix.copy()
    factor, jitter = factorise(matrix, 1.0)
    assert jitter == 0.0
    np.testing.assert_allclose(factor @ factor.T, matrix, rtol=1e-12)
    np.testing.assert_array_equal(factor, np.tril(factor))
    np.testing.assert_array_equal(matrix, before)


def test_the_least_jitter_that_suffices_is_taken():
    size = 5
    singular = 4.0 * np.ones((size, size))
    factor, jitter = factorise(singular, 4.0)
    assert jitter == JITTERS[1]
    np.testing.assert_allclose(factor @ factor.T, singular + 4.0 * jitter * np.eye(size))


def test_jitter_is_relative():
    singular = np.ones((5, 5))
    assert factorise(1e12 * singular, 1e12)[1] == factorise(1e-12 * singular, 1e-12)[1] > 0.0


def test_a_pivot_that_is_rounding_is_not_taken():
    nearly = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-15]])
    assert np.linalg.cholesky(nearly).shape == (2, 2)
    assert factorise(nearly, 1.0)[1] > 0.0


def test_a_matrix_beyond_all_jitter():
    with pytest.raises(
        SurrogateFitError,
        match="2 x 2 kernel matrix has no Cholesky factor even with 1e-06 of its scale added to "
        "its diagonal; use more noise, shorter length scales or whiten=True",
    ):
        factorise(np.array([[1.0, 2.0], [2.0, 1.0]]), 1.0)


def test_a_matrix_that_is_not_finite():
    with pytest.raises(SurrogateFitError, match="no Cholesky factor"):
        factorise(np.full((2, 2), np.nan), 1.0)


def test_nothing_has_a_factor():
    factor, jitter = factorise(np.empty((0, 0)), 1.0)
    assert factor.shape == (0, 0)
    assert jitter == 0.0
    assert solve(factor, np.empty((0, 3))).shape == (0, 3)


def test_solving_and_inverting(matrix, rng):
    factor, _ = factorise(matrix, 1.0)
    right = rng.standard_normal((6, 2))
    once = solve(factor, right)
    np.testing.assert_allclose(factor @ once, right, atol=1e-12)
    twice = solve(factor, once, transposed=True)
    np.testing.assert_allclose(matrix @ twice, right, atol=1e-12)
    np.testing.assert_allclose(inverse_of(factor), np.linalg.inv(matrix), atol=1e-12)


def test_a_zero_pivot_has_no_inverse():
    with pytest.raises(np.linalg.LinAlgError, match="zero pivot"):
        inverse_of(np.zeros((2, 2)))
