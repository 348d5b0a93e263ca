"""The process about a quadratic: its parts, and it as a surrogate."""

import numpy as np
import pytest

from surrokit.interfaces import Evaluations, LearningProblem
from surrokit.surrogate.whitening import Whitening
from surrokit_gp.quadratic import (
    Heights,
    QuadraticPrior,
    QuadraticProcess,
    flat_from,
    log_posterior,
)
from surrokit_gp.quadratic_surrogate import (
    QuadraticGaussianProcess,
    Walled,
    refocus,
    walk,
)

DIM = 3
FACTOR = np.array([[0.5, 0.0, 0.0], [0.4, 0.2, 0.0], [-2.0, 1.0, 3.0]])
MIDDLE = np.array([3.0, -1.0, 20.0])


def normal(positions):
    return 0.5 * np.square(np.linalg.solve(FACTOR, (positions - MIDDLE).T)).sum(axis=0)


def bent(z):
    return 0.5 * np.square(z).sum(axis=1) + np.sin(z[:, 0]) * z[:, 1] + 0.3 * z[:, 0]


def points(n, seed=1, scale=1.5):
    return scale * np.random.default_rng(seed).standard_normal((n, DIM))


def process_of(n=25, function=bent):
    z = points(n)
    return QuadraticProcess.fit(z, function(z), QuadraticPrior.usual(DIM))


def numerical(function, z, step=1e-5):
    moves = step * np.eye(DIM)
    return np.stack([(function(z + m) - function(z - m)) / (2.0 * step) for m in moves], axis=1)


def fit(positions, values, seed=4):
    problem = LearningProblem(dim=positions.shape[1], capabilities=frozenset())
    learner = QuadraticGaussianProcess().learner(problem, np.random.default_rng(seed))
    learner.observe(Evaluations(positions=positions, values=values))
    return learner.fit()


def test_heights_are_kept_where_density_is_and_flattened_above():
    top = flat_from(DIM)
    heights = Heights.of(np.array([5.0, 5.0 + top, 5.0 + 2.0 * top, 1e300, 7.0]), DIM)
    assert heights.least == 5.0
    np.testing.assert_allclose(heights.values[[0, 1, 4]], [0.0, top, 2.0])
    np.testing.assert_allclose(heights.values[2], top * (1.0 + np.log(2.0)))
    assert top < heights.values[3] < 1e5
    assert heights.variance[1] == heights.variance[0] < heights.variance[2] < heights.variance[3]


def test_slope_of_the_search_is_that_of_its_objective(differences):
    z = points(20)
    heights = Heights.of(bent(z), DIM)
    logs = QuadraticPrior.usual(DIM).logs + 0.1 * np.arange(2 + DIM)
    slope = differences(
        lambda rows: np.array([log_posterior(r, z, heights)[0] for r in rows]), logs[None]
    )
    np.testing.assert_allclose(log_posterior(logs, z, heights)[1], slope[0], rtol=1e-4)


def test_a_process_meets_its_points_and_is_sure_there():
    process = process_of()
    np.testing.assert_allclose(process.mean.value(process.z), bent(process.z), atol=0.02)
    assert process.variance(process.z).max() < 1e-3
    away = 10.0 + points(5)
    assert process.variance(away).min() > 0.5
    np.testing.assert_allclose(process.variance(away), np.diag(process.covariance(away)), rtol=1e-6)


def test_a_quadratic_needs_fewer_values_than_it_has_coefficients():
    # 10 coefficients; one that knew nothing would be off by the sd of U, about 1.2
    errors = process_of(9, lambda z: 0.5 * np.square(z @ np.diag([1.1, 0.9, 1.0])).sum(axis=1))
    away = points(200, seed=5, scale=1.0)
    truth = 0.5 * np.square(away @ np.diag([1.1, 0.9, 1.0])).sum(axis=1)
    assert np.std(errors.mean.value(away) - truth) < 0.3


def test_errors_left_out_are_those_of_processes_without_each_point():
    z = points(15)
    heights, prior = Heights.of(bent(z), DIM), QuadraticPrior.usual(DIM)
    errors = QuadraticProcess.of(prior, z, heights).left_out()
    for k in (0, 7):
        others = np.delete(np.arange(len(z)), k)
        few = Heights(
            values=heights.values[others], variance=heights.variance[others], least=heights.least
        )
        without = QuadraticProcess.of(prior, z[others], few)
        error = heights.least + heights.values[k] - without.mean.value(z[k : k + 1])[0]
        assert errors[k] == pytest.approx(error, rel=1e-3, abs=1e-5)


@pytest.mark.parametrize("wide", [False, True])
def test_walls_have_the_gradients_of_their_values(wide):
    walled = Walled.of(process_of(), wide=wide)
    z = np.concatenate([points(5), 3.0 * points(5, seed=2), 40.0 + points(2)])
    values, gradients = walled.value_and_gradient(z)
    np.testing.assert_allclose(values, walled.value(z))
    np.testing.assert_allclose(gradients, numerical(walled.value, z), rtol=1e-4, atol=1e-4)
    assert not walled.is_beyond(walled.process.z[:5]).any()
    assert walled.is_beyond(z[-2:]).all()


def test_chains_on_a_process_draw_from_it():
    standard = process_of(60, lambda z: 0.5 * np.square(z).sum(axis=1))
    walled, rng = Walled.of(standard), np.random.default_rng(3)
    for temperature in (1.0, 2.0):
        draws = np.concatenate(
            [walk(walled, temperature, points(64, seed=k), rng) for k in range(8)]
        )
        # 4096 draws, correlated: five errors of 2000 independent ones
        np.testing.assert_allclose(draws.var(axis=0), temperature, rtol=5 * np.sqrt(2 / 2000))
        np.testing.assert_allclose(draws.mean(axis=0), 0.0, atol=5 * np.sqrt(temperature / 2000))


def test_coordinates_follow_draws_within_limits():
    whitening = Whitening.identity(DIM)
    draws = points(20_000, scale=1.0) * np.array([1.5, 0.5, 100.0]) + 1.0
    found = refocus(whitening, draws)
    np.testing.assert_allclose(found.mean, draws.mean(axis=0))
    np.testing.assert_allclose(
        np.sqrt(np.diag(found.factor @ found.factor.T)), [1.5, 0.5, 2.0], rtol=0.05
    )
    hot = refocus(whitening, draws, temperature=4.0, centre=np.zeros(DIM), shrink=0.5)
    np.testing.assert_allclose(hot.mean, 0.0)
    np.testing.assert_allclose(
        np.sqrt(np.diag(hot.factor @ hot.factor.T)), [0.375, 0.15, 1.0], rtol=0.05
    )


def test_a_normal_density_is_learnt_in_any_coordinates():
    positions = MIDDLE + points(30) @ FACTOR.T
    fitted = fit(positions, normal(positions))
    away = MIDDLE + points(200, seed=9, scale=1.0) @ FACTOR.T
    # not better, as the noise of values and the doubts about far ones are part of it
    assert np.std(fitted.value(away) - normal(away)) < 0.05
    assert fitted.walled.radius >= 2.0 * 4.6  # one draw in ten thousand lies beyond 4.6
    assert fitted.quality.acceptance > 0.9
    assert fitted.n_gradients == 0


def test_values_whose_squares_overflow_are_no_obstacle():
    positions = MIDDLE + points(30) @ FACTOR.T
    values = normal(positions)
    values[:3] = [1e300, 1e180, 1e60]
    away = MIDDLE + points(200, seed=9, scale=1.0) @ FACTOR.T
    assert np.std(fit(positions, values).value(away) - normal(away)) < 0.5


def test_it_is_conditioned_on_the_lowest_points():
    learner = QuadraticGaussianProcess(max_points=20).learner(
        LearningProblem(dim=DIM, capabilities=frozenset()), np.random.default_rng(1)
    )
    positions = points(50)
    learner.observe(Evaluations(positions=positions, values=bent(positions)))
    fitted = learner.fit()
    assert fitted.n_points == 20
    highest = fitted.whitening.undo(fitted.walled.process.z)
    assert bent(highest).max() == pytest.approx(np.sort(bent(positions))[19])
