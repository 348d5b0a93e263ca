"""The quadratic trend that gradients give in closed form."""

import numpy as np
import pytest

from surrokit_networks.trend import matrix_of_gradients


def symmetric(rng, dim):
    half = rng.standard_normal((dim, dim))
    return half + half.T


def at_ridge(whitened, gradients, weights, ridge):
    """The minimiser of sum w |g - M z|^2 + ridge |M - I|_F^2 over symmetric M, entry by entry."""
    n, dim = whitened.shape
    away = whitened - np.average(whitened, axis=0, weights=weights)
    left = gradients - np.average(gradients, axis=0, weights=weights) - away
    first, second = np.triu_indices(dim)
    columns, penalties = [], []
    for row, column in zip(first, second, strict=True):
        unit = np.zeros((dim, dim))
        unit[row, column] = unit[column, row] = 1.0
        columns.append((np.sqrt(weights)[:, None] * (away @ unit)).ravel())
        penalties.append(np.sqrt(ridge * np.sum(unit**2)))
    design = np.vstack([np.array(columns).T, np.diag(penalties)])
    targets = np.concatenate([(np.sqrt(weights)[:, None] * left).ravel(), np.zeros(len(first))])
    found = np.linalg.lstsq(design, targets, rcond=None)[0]
    change = np.zeros((dim, dim))
    change[first, second] = change[second, first] = found
    degrees = np.trace(design[: n * dim] @ np.linalg.pinv(design)[:, : n * dim]) + dim
    residual = np.sum((targets[: n * dim] - design[: n * dim] @ found) ** 2)
    return np.eye(dim) + change, residual, degrees


@pytest.mark.parametrize(("n", "dim"), [(4, 3), (9, 3), (5, 6)])
def test_the_matrix_is_the_best_of_the_ridges_tried(n, dim):
    rng = np.random.default_rng(n)
    whitened, weights = rng.standard_normal((n, dim)), rng.uniform(0.3, 1.0, n)
    gradients = whitened @ symmetric(rng, dim) + 0.2 * rng.standard_normal((n, dim))
    count = dim * weights.sum() ** 2 / np.sum(weights**2)

    def score(ridge):
        matrix, residual, degrees = at_ridge(whitened, gradients, weights, ridge)
        spare = count - 1.05 * degrees
        return (residual / spare**2 if spare > 0 else np.inf), matrix

    tried = [score(weights.sum() * ridge) for ridge in np.logspace(-4.0, 2.0, 25)]
    _, expected = min(tried, key=lambda pair: pair[0])
    found = matrix_of_gradients(whitened, gradients, weights)
    np.testing.assert_allclose(found, expected, atol=1e-8)
    np.testing.assert_allclose(found, found.T, atol=1e-12)


def test_gradients_of_a_quadratic_give_its_matrix():
    rng = np.random.default_rng(0)
    matrix, slope = symmetric(rng, 4), rng.standard_normal(4)
    whitened = rng.standard_normal((30, 4)) + 1.0
    found = matrix_of_gradients(whitened, whitened @ matrix + slope, np.ones(30))
    # Shrunk towards the identity by the least ridge tried.
    np.testing.assert_allclose(found, matrix, atol=1e-3 * np.abs(matrix).max())


def test_the_identity_comes_back_exactly():
    whitened = np.random.default_rng(1).standard_normal((3, 5))
    found = matrix_of_gradients(whitened, whitened + 2.0, np.ones(3))
    np.testing.assert_allclose(found, np.eye(5), atol=1e-12)


def test_noise_alone_leaves_the_identity():
    rng = np.random.default_rng(2)
    whitened = rng.standard_normal((12, 6))
    gradients = whitened + rng.standard_normal((12, 6))
    found = matrix_of_gradients(whitened, gradients, np.ones(12))
    assert np.linalg.norm(found - np.eye(6)) < 2.0


def test_what_one_point_cannot_tell_stays_the_identity():
    found = matrix_of_gradients(np.ones((1, 3)), np.full((1, 3), 9.0), np.ones(1))
    np.testing.assert_array_equal(found, np.eye(3))
