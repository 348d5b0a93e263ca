"""Coordinates in which curved masses are straight."""

import attrs
import numpy as np
import pytest

import surrokit as sk
from surrokit.errors import SurrogateFitError
from surrokit.interfaces import Evaluations, LearningProblem
from surrokit.surrogate.whitening import Whitening
from surrokit.targets.bounds import between_of, transform_of
from surrokit_gp import quadratic
from surrokit_gp.bend import Bend
from surrokit_gp.coordinates import follow_bent_quadratic
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


def no_polynomial(monkeypatch):
    """Let curved coordinates be looked for as those of any curved mass are."""
    monkeypatch.setattr(quadratic, "follow_bent_quadratic", lambda *_: None)


def test_a_process_learns_a_banana_as_a_quadratic(monkeypatch, differences):
    """From 60 values; without straight coordinates the same values leave a nat."""
    no_polynomial(monkeypatch)
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


@pytest.mark.parametrize("searched", [True, False])
def test_curved_coordinates_in_which_nothing_can_be_fitted_are_left_out(monkeypatch, searched):
    fit = QuadraticProcess.fit

    def fit_straight(*args, bend=None, **how):
        if bend is not None:
            raise SurrogateFitError("no curved coordinates")
        return fit(*args, **how)

    monkeypatch.setattr(QuadraticProcess, "fit", fit_straight)
    if searched:
        no_polynomial(monkeypatch)
    error, fitted = errors_of(60, np.random.default_rng(5))
    assert fitted.bend.changes_nothing
    assert np.isfinite(error)


def thin(q):
    """A ridge fifty times as long as wide, along a parabola."""
    across = q[:, 1] - np.square(q[:, 0]) + 0.5 * q[:, 2]
    return np.square(q[:, 0] - 1.0) + 100.0 * np.square(across) + np.square(q[:, 2])


def test_far_values_give_the_coordinates_of_a_thin_curved_ridge(rng):
    n = 16  # of 14 coefficients
    positions = 3.0 * rng.standard_normal((n, 3))
    bend, whitening = follow_bent_quadratic(positions, thin(positions))
    away = rng.standard_normal((50, 3))
    z = whitening.apply(bend.apply(away))
    np.testing.assert_allclose(0.5 * np.square(z).sum(axis=1), thin(away), rtol=1e-6)
    assert follow_bent_quadratic(positions[1:], thin(positions)[1:]) is None
    no_quadratic, saddle = np.sin(5.0 * positions).sum(axis=1), positions[:, 0] * positions[:, 1]
    of_one = positions[:, 0] ** 4
    for values in (no_quadratic, saddle, of_one, 0.0 * saddle, 1.5e308 * np.sign(saddle)):
        assert follow_bent_quadratic(positions, values) is None
    assert follow_bent_quadratic(positions[:, :1], positions[:, 0] ** 4) is None
    same = positions * [1.0, 0.0, 1.0]
    assert follow_bent_quadratic(same, thin(same)) is None


@pytest.mark.parametrize("units", [None, {"x": (0.0, 2.0), "y": (0.0, 5.0)}])
def test_numbers_between_bounds_are_straightened_themselves(units, differences):
    """On the line no polynomial is near to U, which is one of the numbers."""
    target = sk.potential(
        log_density=lambda x, y: -np.square(1.0 - x) - 100.0 * np.square(y - x * x),
        parameters={"x": (-1, 4), "y": (-1, 7)},
        plausible=units,
    )
    positions = np.random.default_rng(1).standard_normal((30, 2))
    rows = Evaluations(positions=positions, values=target.value(positions))
    learners = [
        QuadraticGaussianProcess().learner(
            LearningProblem(dim=2, capabilities=frozenset(), between=between),
            np.random.default_rng(1),
        )
        for between in (between_of(target), None)
    ]
    for learner in learners:
        learner.observe(rows)
    fitted, other = (each.fit() for each in learners)
    assert fitted.bend.between is not None
    x = np.linspace(-0.9, 2.6, 200)
    at = transform_of(target).to_unbounded(np.column_stack([x, x**2 + 0.03 * np.sin(40.0 * x)]))
    assert np.std(fitted.value(at) - target.value(at)) < 0.1
    assert not np.std(other.value(at) - target.value(at)) < 1.0
    np.testing.assert_allclose(
        fitted.gradient(at[::40]), differences(fitted.value, at[::40]), rtol=1e-4, atol=1e-4
    )
    straight = fitted.straight
    r = straight.apply(at)
    np.testing.assert_allclose(straight.undo(r), at)
    np.testing.assert_allclose(straight.potential.value(r) - straight.volume(at), fitted.value(at))
    # beyond bounds there is no density, and positions stop
    r[:, 0] += 10.0
    assert np.isposinf(straight.potential.value(r)).all()
    assert np.isfinite(straight.undo(r)).all()
    assert straight.potential.straight is None
    assert np.isfinite(fitted.draw(np.random.default_rng(1))).all()
    again = learners[1].restore(learners[0].state())
    assert again._curved[0].between is None
    again = learners[0].restore(learners[0].state())
    np.testing.assert_array_equal(again.fit().value(at), fitted.value(at))


def test_a_quadratic_that_bounds_cut_off_is_no_curved_mass(rng):
    """Chains on the line move freely, and those on the numbers themselves end at bounds."""
    target = sk.potential(
        log_density=lambda x, y: -0.5 * (x * x + y * y + x * y),
        parameters={"x": (0, 10), "y": (0, 10)},
    )
    at = rng.standard_normal((40, 2)) - [1.0, 1.0]
    assert follow_bent_quadratic(at, target.value(at), between_of(target)) is None


def test_the_covariance_of_numbers_between_bounds_is_that_of_positions():
    target = sk.potential(lambda q: 0.0, parameters={"x": (-5, 5), "y": (-5, 5)})
    bend = attrs.evolve(Bend.none(2), shift=np.array([0.0, 1e-9]), between=between_of(target))
    whitening = Whitening(mean=np.zeros(2), factor=np.diag([0.1, 0.2]))
    # 10 phi(0) wide at 0, from 1000 draws
    expected = np.square([0.1, 0.2]) / np.square(10.0 / np.sqrt(2.0 * np.pi))
    found = np.diag(bend.covariance(whitening))
    np.testing.assert_allclose(found, expected, rtol=5 * np.sqrt(2 / 1000))
