"""Proposition 1: the solution that takes in rows, against solutions of all rows at once."""

import numpy as np
import pytest

from surrokit_networks.activations import SOFTPLUS
from surrokit_networks.greville import CHECK_EVERY, DRIFT, TOLERANCE, Greville, RowSums
from surrokit_networks.nodes import Nodes

K = 9
TIGHT = 1e-8


def rows_of(n=40, k=K, seed=0):
    """Rows, of which some depend on those before, or are all zero."""
    rng = np.random.default_rng(seed)
    rows, targets = rng.standard_normal((n, k)), rng.standard_normal(n)
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


def whole(triangle):
    """The symmetric matrix of which only the lower triangle is kept."""
    return np.tril(triangle) + np.tril(triangle, -1).T


def softplus_rows(n, s, dim=6, seed=0, mean=0.0, spread=1.0):
    rng = np.random.default_rng(seed)
    nodes = Nodes.additive(
        directions=rng.standard_normal((s, dim)) / np.sqrt(dim),
        biases=rng.standard_normal(s),
        activation=SOFTPLUS,
    )
    positions = mean + spread * rng.standard_normal((n, dim))
    return nodes.features(positions), np.sin(positions).sum(axis=1)


@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("block", [1, 2, 7])
def test_every_step_from_no_rows_is_the_batch_solution(ridge, block):
    rows, targets = rows_of()
    engine = Greville.empty(K, ridge=ridge)
    for i in range(0, len(rows), block):
        engine.update(rows[i : i + block], targets[i : i + block])
        n = i + block
        expected = batch(rows[:n], targets[:n], ridge=ridge)
        np.testing.assert_allclose(engine.solution, expected, rtol=TIGHT, atol=TIGHT)
    assert engine.phi is None
    assert engine.repairs == 0


@pytest.mark.parametrize("block", [1, 5])
@pytest.mark.parametrize("n", [5, 8, 30])
@pytest.mark.parametrize(("n_free", "ridge"), [(0, 0.0), (3, 0.0), (3, 0.3)])
def test_every_step_from_some_rows_is_the_batch_solution(n, n_free, ridge, block):
    rows, targets = rows_of()
    engine = Greville.of_rows(rows[:n], targets[:n], n_free=n_free, ridge=ridge)
    for i in range(n, len(rows), block):
        np.testing.assert_allclose(
            engine.solution, batch(rows[:i], targets[:i], n_free, ridge), rtol=TIGHT, atol=TIGHT
        )
        engine.update(rows[i : i + block], targets[i : i + block])


@pytest.mark.parametrize("block", [1, 3])
def test_matrices_are_those_of_the_proposition(block):
    """Phi = I - A^+ A and Theta = A^+ (A^+)^T, while A is rank-deficient and afterwards."""
    rows, targets = rows_of(18)
    engine = Greville.empty(K)
    for i in range(0, len(rows), block):
        engine.update(rows[i : i + block], targets[i : i + block])
        inverse = np.linalg.pinv(rows[: i + block], rcond=1e-10)
        np.testing.assert_allclose(whole(engine.theta), inverse @ inverse.T, atol=TIGHT)
        phi = np.eye(K) - inverse @ rows[: i + block]
        found = np.zeros((K, K)) if engine.phi is None else whole(engine.phi)
        np.testing.assert_allclose(found, phi, atol=TIGHT)
        assert engine.degrees == np.linalg.matrix_rank(rows[: i + block])


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("block", [1, 4])
def test_the_test_for_zero_is_relative(scale, block):
    """Rows in other units bring the same rank; a test of |c| alone would fail at one end."""
    rows, targets = rows_of()
    engine = Greville.empty(K)
    for i in range(0, len(rows), block):
        engine.update(scale * rows[i : i + block], targets[i : i + block])
    assert engine.phi is None
    np.testing.assert_allclose(scale * engine.solution, batch(rows, targets), rtol=TIGHT)


class Unrepaired(Greville):
    """Lets rounding errors be."""

    def check(self):
        return False

    def _solve_again(self, drift=np.inf):
        return False


def test_a_tolerance_below_the_rounding_error_is_useless():
    """The negative control of the tolerance: rounding taken for new directions ruins the fit."""
    rows, targets = softplus_rows(150, 60, dim=2)  # far fewer than 60 directions to be told apart
    errors = {}
    for tolerance in (TOLERANCE, 1e-16):
        engine = Unrepaired.empty(60, tolerance=tolerance)
        for i in range(len(rows)):
            engine.update(rows[i : i + 1], targets[i : i + 1])
        errors[tolerance] = np.linalg.norm(rows @ engine.solution - targets)
    assert errors[TOLERANCE] < 0.05 * np.linalg.norm(targets)
    assert errors[1e-16] > 10.0 * errors[TOLERANCE]


@pytest.mark.parametrize("block", [1, 50])
def test_many_updates_from_rank_deficient_to_full_rank(block):
    rows, targets = softplus_rows(1000, 150, dim=10)
    fresh, _ = softplus_rows(1000, 150, dim=10)
    engine = Greville.empty(150)
    for i in range(0, len(rows), block):
        engine.update(rows[i : i + block], targets[i : i + block])
    assert engine.phi is None
    expected = fresh @ np.linalg.lstsq(rows, targets, rcond=None)[0]
    error = np.linalg.norm(fresh @ engine.solution - expected) / np.linalg.norm(expected)
    assert error < 1e-6


def drifted(ridge=0.0):
    """An engine whose Theta is a few per cent wrong, and the rows that it has taken in."""
    rows, targets = rows_of(40)
    engine = Greville.of_rows(rows[:20], targets[:20], ridge=ridge)
    engine.theta *= 1.05
    for i in range(20, 40):
        engine.update(rows[i : i + 1], targets[i : i + 1])
    return engine, rows, targets


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_drift_is_noticed_and_repaired(ridge):
    engine, rows, targets = drifted(ridge)
    expected = batch(rows, targets, ridge=ridge)
    assert np.abs(engine.solution - expected).max() > 1e-4
    assert engine.sums.residual(engine.solution)[1] > DRIFT
    assert engine.check()
    assert engine.repairs == 1
    np.testing.assert_allclose(engine.solution, expected, rtol=TIGHT)
    normal = rows.T @ rows + ridge * np.eye(K)
    np.testing.assert_allclose(whole(engine.theta) @ normal, np.eye(K), atol=TIGHT)
    hat = np.trace(rows @ np.linalg.solve(normal, rows.T))
    assert engine.degrees == pytest.approx(hat, rel=1e-6)
    assert not engine.check()


def test_drift_is_looked_for_every_so_often():
    engine, rows, targets = drifted()
    for _ in range(CHECK_EVERY // len(rows)):
        engine.update(rows, targets)
    assert engine.repairs >= 1
    np.testing.assert_allclose(engine.solution, batch(rows, targets), atol=1e-3)


def test_a_wrong_solution_alone_is_refined_without_a_factorisation():
    rows, targets = rows_of()
    engine = Greville.of_rows(rows, targets)
    engine.solution += 0.1
    assert not engine.check()
    assert engine.repairs == 0
    np.testing.assert_allclose(engine.solution, batch(rows, targets), rtol=TIGHT)


def test_rank_deficient_solutions_are_repaired_too():
    rows, targets = rows_of(7)
    engine = Greville.empty(K)
    engine.update(rows, targets)
    engine.theta *= 1.05
    engine.solution += 1.0
    assert engine.check()
    np.testing.assert_allclose(engine.solution, batch(rows, targets), atol=1e-6)
    more, sought = rows_of(30, seed=5)
    engine.update(more, sought)
    expected = batch(np.vstack([rows, more]), np.concatenate([targets, sought]))
    np.testing.assert_allclose(engine.solution, expected, rtol=1e-6)


@pytest.mark.parametrize("block", [1, 4])
def test_a_theta_that_is_no_longer_positive_is_replaced_at_once(block):
    rows, targets = rows_of()
    engine = Greville.of_rows(rows[:20], targets[:20])
    engine.theta *= -1.0
    engine.update(rows[20 : 20 + block], targets[20 : 20 + block])
    assert engine.repairs == 1
    n = 20 + block
    np.testing.assert_allclose(engine.solution, batch(rows[:n], targets[:n]), rtol=TIGHT)


@pytest.mark.parametrize("n", [6, 30])
def test_sums_give_the_same_solution_as_rows(n):
    rows, targets = rows_of()
    for n_free, ridge in ((0, 0.0), (3, 0.0), (3, 0.3)):
        sums = RowSums.empty(K, n_free=n_free, ridge=ridge)
        for row, target in zip(rows[:n], targets[:n], strict=True):
            sums.add(row[None], target[None])
        engine = Greville.of_sums(sums)
        expected = batch(rows[:n], targets[:n], n_free, ridge)
        np.testing.assert_allclose(engine.solution, expected, atol=1e-6)
        left = np.sum((rows[:n] @ expected - targets[:n]) ** 2)
        assert sums.squared_error(expected) == pytest.approx(left, abs=1e-9)


@pytest.mark.parametrize("n", [5, 30])
def test_restored_engines_go_on_bit_for_bit(n):
    rows, targets = rows_of()
    first = Greville.empty(K)
    first.update(rows[:n], targets[:n])
    second = Greville.restore(first.state())
    for engine in (first, second):
        engine.update(rows[n:], targets[n:])
    np.testing.assert_array_equal(first.solution, second.solution)
    np.testing.assert_array_equal(first.theta, second.theta)
