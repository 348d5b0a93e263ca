"""The first points that a surrogate learns from."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr

from surrokit_learning.designs import normal_design


@pytest.mark.parametrize("n", [1, 7, 40])
def test_each_part_of_the_probability_has_one_draw(n):
    covariance = np.array([[4.0, 1.0], [1.0, 0.5]])
    design = normal_design(np.array([3.0, -1.0]), covariance, n, np.random.default_rng(0))
    normals = np.linalg.solve(np.linalg.cholesky(covariance), (design.positions - [3.0, -1.0]).T)
    parts = np.sort(np.floor(n * ndtr(normals)), axis=1)
    assert (parts == np.arange(n)).all()
    assert_allclose(design.potentials, 0.5 * np.square(normals).sum(axis=0))


def test_coordinates_are_shuffled_apart():
    draws = normal_design(np.zeros(5), np.eye(5), 2000, np.random.default_rng(1)).positions
    # four standard errors of a correlation
    assert_allclose(np.corrcoef(draws, rowvar=False), np.eye(5), atol=4 / np.sqrt(2000))
    assert_allclose(draws.std(axis=0), 1.0, rtol=0.02)
