"""Polynomials as mean functions."""

import numpy as np
import pytest

from surrokit_gp.trend import (
    Polynomial,
    choose_kind,
    convex,
    feature_gradients,
    features,
    least_points,
    n_coefficients,
)

DIM = 3
KINDS = {"zero": 0, "constant": 1, "linear": 4, "quadratic": 10}


@pytest.mark.parametrize(("kind", "number"), KINDS.items())
def test_features_and_their_slopes(kind, number, rng, differences):
    whitened = rng.standard_normal((6, DIM))
    assert n_coefficients(kind, DIM) == number
    assert features(kind, whitened).shape == (6, number)
    slopes = feature_gradients(kind, whitened)
    assert slopes.shape == (6, DIM, number)
    if number:
        expected = differences(lambda w: features(kind, w), whitened)
        np.testing.assert_allclose(slopes, expected.transpose(0, 2, 1), atol=1e-8)


@pytest.mark.parametrize(("kind", "number"), KINDS.items())
def test_a_polynomial_is_features_times_coefficients(kind, number, rng, differences):
    whitened, coefficients = rng.standard_normal((6, DIM)), rng.standard_normal(number)
    polynomial = Polynomial.of(coefficients, DIM)
    np.testing.assert_allclose(
        polynomial.value(whitened), features(kind, whitened) @ coefficients, atol=1e-12
    )
    np.testing.assert_allclose(
        polynomial.gradient(whitened), differences(polynomial.value, whitened), atol=1e-8
    )
    inverse = rng.standard_normal((DIM, DIM))
    moved = polynomial.in_coordinates(inverse)
    np.testing.assert_allclose(
        moved.value(whitened), polynomial.value(whitened @ inverse.T), atol=1e-12
    )
    both = (moved + polynomial).value(whitened)
    np.testing.assert_allclose(both, moved.value(whitened) + polynomial.value(whitened))


@pytest.mark.parametrize(
    ("matrix", "raised"),
    [
        ([[0.2, 0.0], [0.0, 1.0]], None),
        ([[1.0, 3.0], [3.0, 1.0]], [0.1, 4.0]),
        ([[-1e-9, 0.0], [0.0, 0.5e-9]], [1e-9, 1e-9]),  # a flat trend stays flat
    ],
)
def test_curvature_is_raised_only_where_it_is_too_small(matrix, raised):
    found = convex(np.array(matrix))
    if raised is None:
        assert found is None
    else:
        np.testing.assert_allclose(np.linalg.eigvalsh(found), raised)


@pytest.mark.parametrize(
    ("mean", "dim", "n_equations", "kind"),
    [
        ("auto", DIM, 2, "constant"),
        ("auto", DIM, 29, "constant"),
        ("auto", DIM, 30, "quadratic"),
        ("auto", 20, 209, "constant"),
        ("auto", 20, 210, "linear"),
        ("auto", 20, 692, "linear"),
        ("auto", 20, 693, "quadratic"),
        ("zero", 20, 10_000, "zero"),
    ],
)
def test_auto_asks_for_enough_equations(mean, dim, n_equations, kind):
    assert choose_kind(mean, dim, n_equations) == kind


def test_least_points():
    assert least_points("auto", DIM) == least_points("zero", DIM) == DIM + 2
    assert least_points("linear", DIM) == DIM + 2
    assert least_points("quadratic", DIM) == 11
