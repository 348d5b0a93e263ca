"""The polynomial under a network."""

import numpy as np
import pytest

from surrokit_networks.trend import (
    LEAST_CURVATURE,
    Polynomial,
    TrendColumns,
    matrix_of_gradients,
    n_coefficients,
    with_least_curvature,
)


@pytest.mark.parametrize("dim", [1, 2, 5])
@pytest.mark.parametrize("degree", [0, 1, 2])
def test_as_many_columns_as_monomials(dim, degree):
    trend = TrendColumns(dim=dim, degree=degree)
    monomials = (0, dim, dim + dim * (dim + 1) // 2)[degree]
    assert len(trend) == n_coefficients(dim, degree) == monomials
    assert trend.directions.shape == (monomials, dim)
    values, slopes = trend.features_and_slopes(np.ones((3, dim)))
    assert values.shape == slopes.shape == (3, monomials)


@pytest.mark.parametrize("dim", [1, 2, 5])
@pytest.mark.parametrize("degree", [1, 2])
def test_columns_are_functions_along_directions(dim, degree, differences):
    trend = TrendColumns(dim=dim, degree=degree)
    z = np.random.default_rng(0).standard_normal((6, dim))
    values, slopes = trend.features_and_slopes(z)
    along = z @ trend.directions.T
    expected = np.concatenate([along[:, :dim], 0.5 * along[:, dim:] ** 2], axis=1)
    np.testing.assert_allclose(values, expected, rtol=1e-12)
    gradients = differences(lambda each: trend.features_and_slopes(each)[0], z)
    np.testing.assert_allclose(slopes[:, :, None] * trend.directions, gradients, atol=1e-8)


def random_trend(dim, n_outputs=2):
    rng = np.random.default_rng(1)
    half = rng.standard_normal((n_outputs, dim, dim))
    return rng.standard_normal((dim, n_outputs)), half + half.transpose(0, 2, 1)


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_coefficients_of_monomials_are_a_slope_and_a_matrix(dim):
    trend = TrendColumns(dim=dim, degree=2)
    coefficients = np.random.default_rng(1).standard_normal((len(trend), 2))
    slope, matrices = trend.slope_and_matrix(coefficients)
    # their squares are those of slope and matrix
    squares = (slope**2).sum(axis=0) + (matrices**2).sum(axis=(1, 2))
    np.testing.assert_allclose((coefficients**2).sum(axis=0), squares)
    np.testing.assert_array_equal(matrices, matrices.transpose(0, 2, 1))
    z = np.random.default_rng(2).standard_normal((6, dim))
    features = trend.by_monomials(trend.features_and_slopes(z)[0].T.copy()).T
    expected = z @ slope + 0.5 * np.einsum("ni,mij,nj->nm", z, matrices, z)
    np.testing.assert_allclose(features @ coefficients, expected, atol=1e-10)


@pytest.mark.parametrize("degree", [0, 1])
def test_a_lower_degree_has_no_matrix(degree):
    trend = TrendColumns(dim=3, degree=degree)
    coefficients = np.arange(2.0 * len(trend)).reshape(-1, 2)
    slope, matrices = trend.slope_and_matrix(coefficients)
    np.testing.assert_array_equal(slope, coefficients if degree else np.zeros((3, 2)))
    np.testing.assert_array_equal(matrices, np.zeros((2, 3, 3)))


def test_rows_below_the_trend_are_left_as_they_are():
    trend = TrendColumns(dim=3, degree=2)
    sums = np.random.default_rng(3).standard_normal((len(trend) + 4, 2))
    before = sums.copy()
    changed = trend.by_monomials(sums)
    np.testing.assert_array_equal(changed[len(trend) :], before[len(trend) :])
    np.testing.assert_array_equal(changed[:6], before[:6])


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("bent", [False, True])
def test_a_fitted_polynomial_and_its_derivatives(n_outputs, bent, differences):
    slope, matrices = random_trend(4, n_outputs)
    rng, matrices = np.random.default_rng(5), matrices if bent else None
    constant = rng.standard_normal(n_outputs)
    polynomial = Polynomial(constant=constant, linear=slope, matrices=matrices)
    z, u, b = *rng.standard_normal((2, 6, 4)), rng.standard_normal((6, n_outputs))
    w = rng.standard_normal((6, n_outputs, 4))
    full = np.zeros((n_outputs, 4, 4)) if matrices is None else matrices
    expected = constant + z @ slope + 0.5 * np.einsum("ni,mij,nj->nm", z, full, z)
    np.testing.assert_allclose(polynomial.value(z), expected, rtol=1e-9, atol=1e-12)
    jacobian = differences(polynomial.value, z)
    np.testing.assert_allclose(polynomial.slopes(z).transpose(0, 2, 1), jacobian, atol=1e-8)
    pulled = np.einsum("nm,nmd->nd", b, jacobian)
    np.testing.assert_allclose(polynomial.pull_back(z, b), pulled, atol=1e-8)
    pushed = np.einsum("nmd,nd->nm", jacobian, u)
    np.testing.assert_allclose(polynomial.push(z, u), pushed, atol=1e-8)
    form = np.einsum("nm,mij,nj->ni", b, full, u)
    np.testing.assert_allclose(polynomial.hessian_form(b, u), form, atol=1e-12)
    product = np.einsum("nmi,mij->nj", w, full)
    np.testing.assert_allclose(polynomial.hessian_product(w), product, atol=1e-12)


def test_curvatures_are_raised_to_the_least():
    rng = np.random.default_rng(6)
    vectors, _ = np.linalg.qr(rng.standard_normal((4, 4)))
    matrix = (vectors * [-3.0, 0.05, 0.5, 2.0]) @ vectors.T
    raised = with_least_curvature(matrix)
    np.testing.assert_allclose(np.linalg.eigvalsh(raised), [0.1, 0.1, 0.5, 2.0], atol=1e-12)
    # In the other directions nothing changes.
    np.testing.assert_allclose(raised @ vectors[:, 2:], matrix @ vectors[:, 2:], atol=1e-12)
    assert with_least_curvature(raised + 1e-9 * np.eye(4)) is None
    assert with_least_curvature(matrix, least=0.01) is not None
    assert with_least_curvature(np.eye(3)) is None
    assert LEAST_CURVATURE == 0.1


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
