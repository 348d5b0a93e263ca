"""Kernel matrices, their factors, the jitter that these need, and what is solved with them."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from surrokit.errors import SurrogateFitError
from surrokit_gp.kernels import JITTERS, factorise, inverse_of, solve, unit_matrix


@pytest.fixture
def matrix(rng):
    root = rng.standard_normal((6, 6))
    return root @ root.T + np.eye(6)


def test_kernel_is_that_of_scikit_learn_with_large_offsets(rng):
    left, right = rng.standard_normal((6, 3)) + 1e3, rng.standard_normal((5, 3)) + 1e3
    np.testing.assert_allclose(unit_matrix(left, right), RBF(1.0)(left, right), rtol=1e-9)
    assert (np.diag(unit_matrix(left, left)) == 1.0).all()


def test_a_sound_matrix_needs_no_jitter(matrix):
    before = matrix.copy()
    factor, jitter = factorise(matrix, 1.0)
    assert jitter == 0.0
    np.testing.assert_allclose(factor @ factor.T, matrix, rtol=1e-12)
    np.testing.assert_array_equal(factor, np.tril(factor))
    np.testing.assert_array_equal(matrix, before)


@pytest.mark.parametrize("scale", [1e12, 1e-12])
def test_the_least_jitter_that_suffices_is_taken_relative_to_the_scale(scale):
    singular = scale * np.ones((5, 5))
    factor, jitter = factorise(singular, scale)
    assert jitter == JITTERS[1]
    np.testing.assert_allclose(factor @ factor.T, singular + scale * jitter * np.eye(5))


def test_a_pivot_that_is_rounding_is_not_taken():
    nearly = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-15]])
    assert np.linalg.cholesky(nearly).shape == (2, 2)
    assert factorise(nearly, 1.0)[1] > 0.0


@pytest.mark.parametrize("entry", [2.0, np.nan])
def test_a_matrix_beyond_all_jitter(entry):
    with pytest.raises(
        SurrogateFitError,
        match=r"2 x 2 kernel matrix has no Cholesky factor even with 1e-06 of .* use more noise",
    ):
        factorise(np.array([[1.0, entry], [entry, 1.0]]), 1.0)


def test_solving_and_inverting(matrix, rng):
    factor, _ = factorise(matrix, 1.0)
    right = rng.standard_normal((6, 2))
    once = solve(factor, right)
    np.testing.assert_allclose(factor @ once, right, atol=1e-12)
    twice = solve(factor, once, transposed=True)
    np.testing.assert_allclose(matrix @ twice, right, atol=1e-12)
    np.testing.assert_allclose(inverse_of(factor), np.linalg.inv(matrix), atol=1e-12)
