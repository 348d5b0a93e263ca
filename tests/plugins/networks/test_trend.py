"""The polynomial under a network."""

import numpy as np
import pytest

from surrokit_networks.trend import (
    LEAST_CURVATURE,
    Polynomial,
    TrendColumns,
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
