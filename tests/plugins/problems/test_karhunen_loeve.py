from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from surrokit.errors import ConfigurationError
from surrokit_problems.elliptic_pde import LineModes, SquareModes

LENGTH = 0.2
POINTS, WEIGHTS = np.polynomial.legendre.leggauss(50)
POINTS, WEIGHTS = 0.5 * (POINTS + 1.0), 0.5 * WEIGHTS


def covariance(first, second, length=LENGTH):
    return np.exp(-0.5 * ((first[:, None] - second) / length) ** 2)


@pytest.fixture(scope="module")
def modes():
    return SquareModes.leading(20, LENGTH)


def test_eigenvalues_are_those_of_the_operator_on_the_square(modes):
    nodes, weights = np.polynomial.legendre.leggauss(18)
    nodes, weights = 0.5 * (nodes + 1.0), 0.5 * weights
    roots = np.sqrt(np.outer(weights, weights).ravel())
    line = covariance(nodes, nodes)
    dense = roots[:, None] * np.kron(line, line) * roots
    expected = np.linalg.eigvalsh(dense)[::-1][:20]
    assert_allclose(modes.eigenvalues, expected, rtol=1e-6)
    # the authors' discretisation gave these
    assert_allclose(modes.eigenvalues[[0, 19]], [0.194, 0.0046], atol=5e-4)
    assert_allclose(modes.eigenvalues.sum(), 0.971, atol=5e-4)


def test_eigenfunctions_are_orthonormal(modes):
    values = modes.on_grid(POINTS, POINTS).reshape(20, -1)
    weights = np.outer(WEIGHTS, WEIGHTS).ravel()
    assert_allclose((values * weights) @ values.T, np.eye(20), atol=1e-10)


def test_eigenfunctions_are_those_of_the_operator(modes):
    values = modes.on_grid(POINTS, POINTS)
    line = covariance(POINTS, POINTS) * WEIGHTS
    applied = line @ values @ line.T
    assert_allclose(applied, modes.eigenvalues[:, None, None] * values, atol=1e-10)


def test_order_and_sign_are_fixed(modes):
    assert modes.pairs[:7].tolist() == [[0, 0], [0, 1], [1, 0], [1, 1], [0, 2], [2, 0], [1, 2]]
    assert (np.diff(modes.eigenvalues) <= 0).all()
    assert (LineModes.of(LENGTH).at(np.zeros(1)) > 0).all()
    x = np.array([0.1, 0.4])
    first, second = SquareModes.leading(3, LENGTH).on_grid(x, x)[1:]
    assert_allclose(first, second.T, rtol=1e-14)


def test_fewer_modes_are_the_first_of_more(modes):
    few = SquareModes.leading(2, LENGTH)  # cuts a pair in half
    assert_allclose(few.on_grid(POINTS, POINTS), modes.on_grid(POINTS, POINTS)[:2], rtol=0)


@pytest.mark.parametrize("length", [0.05, 1.0])
def test_other_lengths(length):
    line = LineModes.of(length)
    values = line.at(POINTS)[:4]
    applied = values @ (covariance(POINTS, POINTS, length) * WEIGHTS).T
    assert_allclose(applied, line.eigenvalues[:4, None] * values, atol=1e-8)


@pytest.mark.parametrize("n_modes", [0, 10_000])
def test_modes_that_cannot_be_told_apart_are_refused(n_modes):
    message = r"modes must be between 1 and \d+ for the length 0.2, .*; got \d+"
    with pytest.raises(ConfigurationError, match=message):
        SquareModes.leading(n_modes, LENGTH)


@pytest.mark.parametrize("length", [0.0, -1.0, np.inf])
def test_the_length_must_be_positive(length):
    with pytest.raises(ConfigurationError, match="length must be positive and finite, got"):
        LineModes.of(length)
