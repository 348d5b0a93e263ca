"""Proposition 1: the solution that takes in rows, against solutions of all rows at once."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from surrokit_networks.greville import CHECK_EVERY, DRIFT, TOLERANCE, Greville
from surrokit_networks.least_squares import NormalEquations
from surrokit_networks.nodes import Nodes

K, TIGHT = 9, 1e-8


def rows_of(n=40, seed=0):
    """Rows, of which some depend on those before, or are all zero."""
    rng = np.random.default_rng(seed)
    rows, targets = rng.standard_normal((n, K)), rng.standard_normal(n)
    rows[3] = rows[1]
    rows[5] = rows[0] - 2.0 * rows[2]
    rows[6] = 0.0
    return rows, targets


def batch(rows, targets, n_free=0, ridge=0.0):
    """The solution of least norm by NumPy's own decompositions."""
    k = rows.shape[1]
    if ridge:
        bottom = np.hstack([np.zeros((k - n_free, n_free)), np.sqrt(ridge) * np.eye(k - n_free)])
        rows, targets = np.vstack([rows, bottom]), np.concatenate([targets, np.zeros(len(bottom))])
        return np.linalg.lstsq(rows, targets, rcond=1e-10)[0]
    if not n_free:
        return np.linalg.pinv(rows, rcond=1e-10) @ targets
    free = rows[:, :n_free]
    away = np.eye(len(rows)) - free @ np.linalg.pinv(free)
    held = np.linalg.pinv(away @ rows[:, n_free:], rcond=1e-10) @ (away @ targets)
    return np.concatenate([np.linalg.pinv(free) @ (targets - rows[:, n_free:] @ held), held])


def shown(rows, targets, block=1, first=1, kind=Greville, **settings):
    engine = kind.of_rows(rows[:first], targets[:first], **settings)
    for i in range(first, len(rows), block):
        engine.update(rows[i : i + block], targets[i : i + block])
    return engine


@pytest.mark.parametrize("block", [1, 7])
@pytest.mark.parametrize("n", [1, 5, 8, 30])
@pytest.mark.parametrize(("n_free", "ridge"), [(0, 0.0), (0, 0.3), (3, 0.0), (3, 0.3)])
def test_every_step_is_the_batch_solution(n, n_free, ridge, block):
    rows, targets = rows_of()
    n = max(n, 5 if n_free else 1)  # free columns must be independent
    engine = Greville.of_rows(rows[:n], targets[:n], n_free=n_free, ridge=ridge)
    for i in range(n, len(rows), block):
        expected = batch(rows[:i], targets[:i], n_free, ridge)
        assert_allclose(engine.solution, expected, rtol=TIGHT, atol=TIGHT)
        left = np.square(rows[:i] @ expected - targets[:i]).sum()
        assert engine.squared_error == pytest.approx(left, abs=1e-9)
        engine.update(rows[i : i + block], targets[i : i + block])
    assert engine.phi is None
    assert engine.repairs == 0


@pytest.mark.parametrize("block", [1, 3])
def test_matrices_are_those_of_the_proposition(block):
    """Phi = I - A^+ A and Theta = A^+ (A^+)^T, while A is rank-deficient and afterwards."""
    rows, targets = rows_of(19)
    engine = Greville.of_rows(rows[:1], targets[:1])
    for i in range(1, len(rows), block):
        engine.update(rows[i : i + block], targets[i : i + block])
        inverse = np.linalg.pinv(rows[: i + block], rcond=1e-10)
        assert_allclose(engine.theta, inverse @ inverse.T, atol=TIGHT)
        phi = np.eye(K) - inverse @ rows[: i + block]
        found = np.zeros((K, K)) if engine.phi is None else engine.phi
        assert_allclose(found, phi, atol=TIGHT)
        assert engine.degrees == np.linalg.matrix_rank(rows[: i + block])


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("block", [1, 4])
def test_the_test_for_zero_is_relative(scale, block):
    """Rows in other units bring the same rank; a test of |c| alone would fail at one end."""
    rows, targets = rows_of()
    engine = shown(scale * rows, targets, block)
    assert engine.phi is None
    assert_allclose(scale * engine.solution, batch(rows, targets), rtol=TIGHT)


class Unrepaired(Greville):
    """Lets rounding errors be."""

    def check(self):
        return False

    def _solve_again(self, drift=np.inf):
        return False


def softplus_rows(n, s, dim):
    rng = np.random.default_rng(0)
    directions, biases = rng.standard_normal((s, dim)) / np.sqrt(dim), rng.standard_normal(s)
    positions = rng.standard_normal((n, dim))
    rows = Nodes.additive(directions, biases, "softplus").features(positions)
    return rows, np.sin(positions).sum(axis=1)


def test_a_tolerance_below_the_rounding_error_is_useless():
    """The negative control of the tolerance: rounding taken for new directions ruins the fit."""
    rows, targets = softplus_rows(150, 60, dim=2)  # far fewer than 60 directions to be told apart
    errors = {}
    for tolerance in (TOLERANCE, 1e-16):
        engine = shown(rows, targets, kind=Unrepaired, tolerance=tolerance)
        errors[tolerance] = np.linalg.norm(rows @ engine.solution - targets)
    assert errors[TOLERANCE] < 0.05 * np.linalg.norm(targets)
    assert errors[1e-16] > 10.0 * errors[TOLERANCE]


@pytest.mark.parametrize("block", [1, 50])
def test_many_updates_from_rank_deficient_to_full_rank(block):
    rows, targets = softplus_rows(1000, 150, dim=10)
    engine = shown(rows, targets, block)
    assert engine.phi is None
    expected = rows @ np.linalg.lstsq(rows, targets, rcond=None)[0]
    error = np.linalg.norm(rows @ engine.solution - expected) / np.linalg.norm(expected)
    assert error < 1e-6


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_drift_is_noticed_and_repaired(ridge):
    rows, targets = rows_of(40)
    engine = Greville.of_rows(rows[:20], targets[:20], ridge=ridge)
    engine.theta *= 1.05
    engine.update(rows[20:], targets[20:])
    expected = batch(rows, targets, ridge=ridge)
    assert np.abs(engine.solution - expected).max() > 1e-4
    assert engine.residual(engine.solution)[1] > DRIFT
    assert engine.check()
    assert engine.repairs == 1
    assert_allclose(engine.solution, expected, rtol=TIGHT)
    normal = rows.T @ rows + ridge * np.eye(K)
    assert_allclose(engine.theta @ normal, np.eye(K), atol=TIGHT)
    hat = np.trace(rows @ np.linalg.solve(normal, rows.T))
    assert engine.degrees == pytest.approx(hat, rel=1e-6)
    assert not engine.check()
    engine.theta *= 0.3  # and looked for every so often
    engine.solution += 1.0
    for _ in range(CHECK_EVERY // len(rows) + 1):
        engine.update(rows, targets)
    assert engine.repairs >= 2


def test_rank_deficient_solutions_are_repaired_too():
    rows, targets = rows_of(7)
    engine = shown(rows, targets)
    engine.theta *= 1.05
    engine.solution += 1.0
    assert engine.check()
    assert_allclose(engine.solution, batch(rows, targets), atol=1e-6)
    more, sought = rows_of(30, seed=5)
    engine.update(more, sought)
    expected = batch(np.vstack([rows, more]), np.concatenate([targets, sought]))
    assert_allclose(engine.solution, expected, rtol=1e-6)


@pytest.mark.parametrize("block", [1, 4])
def test_a_theta_that_is_no_longer_positive_is_replaced_at_once(block):
    rows, targets = rows_of()
    engine = Greville.of_rows(rows[:20], targets[:20])
    engine.theta *= -1.0
    engine.update(rows[20 : 20 + block], targets[20 : 20 + block])
    assert engine.repairs == 1
    n = 20 + block
    assert_allclose(engine.solution, batch(rows[:n], targets[:n]), rtol=TIGHT)


@pytest.mark.parametrize("n", [6, 30])
@pytest.mark.parametrize(("n_free", "ridge"), [(0, 0.0), (3, 0.0), (3, 0.3)])
def test_sums_give_the_same_solution_as_rows(n, n_free, ridge):
    rows, targets = (each[:n] for each in rows_of())
    right, squares = (rows.T @ targets)[:, None], np.array([targets @ targets])
    sums = NormalEquations(gram=rows.T @ rows, right=right, squares=squares)
    engine = Greville.of_sums(sums, n_free=n_free, ridge=ridge)
    assert_allclose(engine.solution, batch(rows, targets, n_free, ridge), atol=1e-6)
