"""Coordinates in which curved masses are straight."""

import numpy as np
import pytest

from surrokit.errors import SurrogateFitError
from surrokit.interfaces import Evaluations, LearningProblem
from surrokit.surrogate.whitening import Whitening
from surrokit_gp import quadratic
from surrokit_gp.bend import Bend
from surrokit_gp.quadratic import QuadraticGaussianProcess, QuadraticProcess

DIM = 5
TURN = np.linalg.qr(np.random.default_rng(3).standard_normal((2, 2)))[0]


def banana(q, scale=1.0):
    away = q[:, 1] - 0.5 * (np.square(q[:, 0]) - 4.0)
    others = np.column_stack([0.5 * q[:, 0], away, q[:, 2:]])
    return 0.5 * np.square(others).sum(axis=1) / scale


def draws_of_banana(n, rng):
    q = rng.standard_normal((n, DIM))
    q[:, 0] *= 2.0
    q[:, 1] += 0.5 * (np.square(q[:, 0]) - 4.0)
    return q


def test_draws_of_a_banana_are_straightened(rng):
    q = draws_of_banana(600, rng)
    bend = Bend.of(q)
    r = bend.apply(q)
    assert np.abs(np.corrcoef(np.square(q[:, 0]), r[:, 1])[0, 1]) < 0.2
    assert np.corrcoef(np.square(q[:, 0]), q[:, 1])[0, 1] > 0.9
    np.testing.assert_allclose(bend.undo(r), q, atol=1e-9)
    whitening = Whitening.of(r, np.ones(len(r)))
    np.testing.assert_allclose(bend.covariance(whitening), np.cov(q.T), rtol=0.3, atol=0.5)


def test_a_bend_keeps_volumes_and_pulls_gradients_back(rng, differences):
    q = draws_of_banana(600, rng)
    q[:, :2] = q[:, :2] @ TURN
    bend = Bend.of(q)
    assert bend.direction @ bend.shift == pytest.approx(0.0, abs=1e-9)
    few, slope = q[:4], np.arange(1.0, DIM + 1.0)
    found = bend.pull(few, np.tile(slope, (4, 1)))
    np.testing.assert_allclose(found, differences(lambda x: bend.apply(x) @ slope, few), atol=1e-5)


@pytest.mark.parametrize("dim", [1, 2, 10])
def test_normal_draws_stay_as_they_are(dim):
    rng = np.random.default_rng(dim)
    for _ in range(20):
        q = rng.standard_normal((500, dim)) @ rng.standard_normal((dim, dim))
        assert Bend.of(q).changes_nothing
    assert Bend.of(np.zeros((10, dim))).changes_nothing


def errors_of(values, rng):
    """The standard deviation of U - V at draws of a banana, from values spread about it."""
    q = draws_of_banana(values, rng)
    q += 0.5 * rng.standard_normal(q.shape)
    problem = LearningProblem(dim=DIM, capabilities=frozenset())
    learner = QuadraticGaussianProcess().learner(problem, np.random.default_rng(1))
    learner.observe(Evaluations(positions=q, values=banana(q)))
    fitted = learner.fit()
    at = draws_of_banana(500, rng)
    return np.std(fitted.value(at) - banana(at)), fitted


def test_a_process_learns_a_banana_as_a_quadratic(monkeypatch, differences):
    """From 60 values; without straight coordinates the same values leave a nat."""
    error, fitted = errors_of(60, np.random.default_rng(5))
    assert not fitted.bend.changes_nothing
    assert error < 0.1
    at = draws_of_banana(3, np.random.default_rng(6))
    expected = differences(fitted.value, at)
    np.testing.assert_allclose(fitted.gradient(at), expected, rtol=1e-4, atol=1e-4)
    straight = fitted.straight
    np.testing.assert_allclose(straight.undo(straight.apply(at)), at)
    np.testing.assert_allclose(straight.potential.value(straight.apply(at)), fitted.value(at))
    monkeypatch.setattr(quadratic, "straighten", lambda *_: None)
    error, fitted = errors_of(60, np.random.default_rng(5))
    assert not fitted.bend.changes_nothing  # but by its values, not by its draws
    assert error < 0.2
    monkeypatch.setattr(quadratic, "_bend_by_values", lambda *_: None)
    error, fitted = errors_of(60, np.random.default_rng(5))
    assert fitted.bend.changes_nothing
    assert fitted.straight is None
    assert error > 0.3


def test_curved_coordinates_in_which_nothing_can_be_fitted_are_left_out(monkeypatch):
    fit = QuadraticProcess.fit

    def fit_straight(*args, bend=None, **how):
        if bend is not None:
            raise SurrogateFitError("no curved coordinates")
        return fit(*args, **how)

    monkeypatch.setattr(QuadraticProcess, "fit", fit_straight)
    error, fitted = errors_of(60, np.random.default_rng(5))
    assert fitted.bend.changes_nothing
    assert np.isfinite(error)
