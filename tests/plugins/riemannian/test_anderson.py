"""Anderson acceleration and the fixed-point iteration around it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from surrokit.interfaces import Status
from surrokit_riemannian.implicit import Anderson, FixedPoint

RNG = np.random.default_rng(7)


def linear(n, dim, radius):
    """x = M x + b for each chain, M symmetric with spectral radius ``radius``."""
    basis = np.linalg.qr(RNG.standard_normal((n, dim, dim)))[0]
    values = radius * np.linspace(-1.0, 1.0, dim)
    matrix = (basis * values) @ basis.transpose(0, 2, 1)
    right = RNG.standard_normal((n, dim))
    solution = np.linalg.solve(np.eye(dim) - matrix, right[:, :, None])[:, :, 0]
    return matrix, right, solution


def residual_of(matrix, right, calls=None):
    def residual(points, rows):
        if calls is not None:
            calls.append(len(rows))
        found = right[rows] + np.einsum("nij,nj->ni", matrix[rows], points) - points
        return found, found

    return residual


@pytest.mark.parametrize(("radius", "passes"), [(0.9, 12), (1.5, 40)])
def test_equations_are_solved_fast_and_where_plain_passes_diverge(radius, passes):
    matrix, right, solution = linear(6, 3, radius)
    found, status = FixedPoint(tolerance=1e-9, max_iterations=passes).solve(
        residual_of(matrix, right), np.zeros((6, 3)), np.ones(6)
    )
    assert (status == Status.OK).all()
    assert_allclose(found, solution, atol=1e-6)


def test_chains_that_are_done_drop_out():
    matrix, right, solution = linear(4, 3, 0.8)
    start = np.zeros((4, 3))
    start[1] = solution[1]
    calls = []
    FixedPoint(tolerance=1e-10, max_iterations=30).solve(
        residual_of(matrix, right, calls), start, np.ones(4)
    )
    assert calls[:2] == [4, 3]


def test_statuses():
    def residual(points, rows):
        found = np.where(rows[:, None] == 0, 0.1, np.where(rows[:, None] == 1, np.nan, 0.0))
        return found, found

    _, status = FixedPoint(tolerance=1e-10, max_iterations=7).solve(
        residual, np.zeros((3, 1)), np.ones(3)
    )
    assert status.tolist() == [Status.NOT_CONVERGED, Status.NOT_FINITE, Status.OK]


def test_a_chain_gone_astray_returns_to_its_best_point():
    acceleration = Anderson(3)
    best, residual = np.array([[1.0, 2.0]]), np.array([[0.2, 0.0]])
    first = acceleration.next(best, residual, residual, np.array([0.04]))
    assert_allclose(first, [[1.2, 2.0]])
    far = np.array([[50.0, 0.0]])
    again = acceleration.next(first, far, far, np.array([2500.0]))
    assert_allclose(again, best + 0.5 * residual)
