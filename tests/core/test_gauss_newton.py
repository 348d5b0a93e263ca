"""The derivative and the products of Gauss-Newton matrices, with curvatures of every kind."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from surrokit.targets.differences import (
    KnownDerivatives,
    gauss_newton,
    gauss_newton_form_gradient,
    gauss_newton_product,
    gauss_newton_trace_gradient,
)

N, M, DIM = 5, 3, 2


class Diagonal:
    """C = diag(1 + x^2 (1 + q_0^2)) of outputs x, and R = (1 + |q|^2) I."""

    capabilities = frozenset({"curvatures", "curvature-derivatives"})

    def curvatures(self, outputs, positions):
        c = 1 + outputs**2 * (1 + positions[:, :1] ** 2)
        size = 1 + np.square(positions).sum(axis=1)
        return c, size[:, None, None] * np.eye(DIM)

    def curvature_gradients(self, outputs, positions, first, second):
        by_outputs = 2 * first * outputs * (1 + positions[:, :1] ** 2)
        by_positions = 2 * positions * np.trace(second, axis1=1, axis2=2)[:, None]
        by_positions[:, 0] += 2 * positions[:, 0] * (first * outputs**2).sum(axis=1)
        return by_outputs, by_positions


class Full(Diagonal):
    """C = I + x x^T, and R as before."""

    def curvatures(self, outputs, positions):
        outer = outputs[:, :, None] * outputs[:, None, :]
        return np.eye(M) + outer, super().curvatures(outputs, positions)[1]

    def curvature_gradients(self, outputs, positions, first, second):
        by_positions = 2 * positions * np.trace(second, axis1=1, axis2=2)[:, None]
        return 2 * np.einsum("nij,nj->ni", first, outputs), by_positions


def derivatives(q):
    """Three outputs of two numbers: q_0 q_1, q_0^3 and sin q_1."""
    x, y = q.T
    outputs = np.column_stack([x * y, x**3, np.sin(y)])
    jacobian, bent = np.zeros((len(q), M, DIM)), np.zeros((len(q), M, DIM, DIM))
    jacobian[:, 0], jacobian[:, 1, 0], jacobian[:, 2, 1] = q[:, ::-1], 3 * x**2, np.cos(y)
    bent[:, 0, 0, 1] = bent[:, 0, 1, 0] = 1
    bent[:, 1, 0, 0], bent[:, 2, 1, 1] = 6 * x, -np.sin(y)
    return KnownDerivatives(
        outputs=outputs,
        known_jacobian=jacobian,
        product=lambda w: np.einsum("nmi,nmik->nk", w, bent),
    )


@pytest.fixture(params=[Diagonal(), Full()], ids=["diagonal", "full"])
def energy(request):
    return request.param


@pytest.fixture
def q(rng):
    return rng.standard_normal((N, DIM))


def metric(energy, q):
    at = derivatives(q)
    return gauss_newton(energy, at.outputs, at.jacobian(), q)


def test_the_trace_agrees_with_differences(energy, q, rng, differences):
    half = rng.standard_normal((N, DIM, DIM))
    a = half + half.transpose(0, 2, 1)
    expected = differences(lambda x: (a * metric(energy, x)).sum(axis=(1, 2)), q)
    found = gauss_newton_trace_gradient(energy, derivatives(q), q, a)
    assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_the_form_is_the_trace_of_an_outer_product(energy, q, rng):
    u = rng.standard_normal((N, DIM))
    found = gauss_newton_form_gradient(energy, derivatives(q), q, u)
    outer = u[:, :, None] * u[:, None, :]
    assert_allclose(found, gauss_newton_trace_gradient(energy, derivatives(q), q, outer))


def test_products_are_those_of_the_matrix(energy, q, rng):
    u = rng.standard_normal((N, DIM))
    expected = np.einsum("nij,nj->ni", metric(energy, q), u)
    assert_allclose(gauss_newton_product(energy, derivatives(q), q, u), expected)
