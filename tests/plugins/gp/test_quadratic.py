"""The process about a quadratic: its parts, and it as a surrogate."""

import numpy as np
import pytest

from surrokit.interfaces import Evaluations, LearningProblem
from surrokit.surrogate.whitening import Whitening
from surrokit_gp import quadratic
from surrokit_gp.coordinates import about_lowest, flat_from, follow_quadratic, refocus
from surrokit_gp.quadratic import QuadraticGaussianProcess, QuadraticProcess, flattened, scales_of
from surrokit_gp.rows import TrainingRows
from surrokit_gp.trend import features

DIM = 3
FACTOR = np.array([[0.5, 0.0, 0.0], [0.4, 0.2, 0.0], [-2.0, 1.0, 3.0]])
MIDDLE = np.array([3.0, -1.0, 20.0])
TASK = Whitening(mean=MIDDLE, factor=FACTOR)


def normal(positions):
    return 0.5 * np.square(TASK.apply(positions)).sum(axis=1)


def bent(positions):
    z = TASK.apply(positions)
    return 0.5 * np.square(z).sum(axis=1) + np.sin(z[:, 0]) * z[:, 1] + 0.3 * z[:, 0]


def points(n, seed=1, scale=1.5):
    return TASK.undo(scale * np.random.default_rng(seed).standard_normal((n, DIM)))


def process_of(positions, values, **settings):
    rows = TrainingRows.of(Evaluations(positions=positions, values=values), "full")
    return QuadraticProcess.fit(rows, TASK, **settings)


def fit(positions, values, seed=4, noise_sd=None):
    problem = LearningProblem(dim=positions.shape[1], capabilities=frozenset())
    learner = QuadraticGaussianProcess().learner(problem, np.random.default_rng(seed))
    learner.observe(Evaluations(positions=positions, values=values, noise_sd=noise_sd))
    return learner.fit()


def test_values_are_kept_where_density_is_and_flattened_above():
    top, given = flat_from(DIM), np.array([0.0, 2.0, 1.0, 2.0, 0.0])
    values = 5.0 + top * given
    values[4] = 1e300
    evaluations = Evaluations(positions=points(5), values=values)
    rows = TrainingRows.of(evaluations, "full")
    order = np.argsort(rows.values, kind="stable")
    found = flattened(rows, np.full(5, 5.0))
    flat, noise = found.values[order], found.tail_sd[order]
    np.testing.assert_allclose(flat[:2], [5.0, 5.0 + top])
    np.testing.assert_allclose(flat[2], 5.0 + top * (1.0 + np.log(2.0)))
    assert flat[3] < flat[4] < 1e5
    assert noise[0] == noise[1] == 0.0 < noise[2] < noise[4]
    # a trend that foresees them leaves nothing to explain
    np.testing.assert_allclose(flattened(rows, rows.values).values, rows.values)


def test_the_quadratic_has_a_kernel_that_knows_no_direction(rng):
    _, sd = scales_of(np.append(np.zeros(DIM + 2), [np.log(2.0), 0.0]))
    a, b = rng.standard_normal((4, DIM)), rng.standard_normal((5, DIM))
    found = features("quadratic", a) * sd**2 @ features("quadratic", b).T
    np.testing.assert_allclose(found, 4.0 * np.square(1.0 + a @ b.T / DIM))
    _, alone = scales_of(np.append(np.zeros(DIM + 2), [np.log(2.0), np.log(0.1)]))
    products = np.isclose(features("quadratic", np.eye(DIM)), 0.0).all(axis=0)
    np.testing.assert_allclose(alone, np.where(products, 0.1, 1.0) * sd)


def test_a_process_meets_its_points_and_is_sure_there():
    positions = points(25)
    fitted = process_of(positions, bent(positions))
    np.testing.assert_allclose(fitted.value(positions), bent(positions), atol=0.02)
    assert fitted.variance(positions).max() < 1e-3
    away = TASK.undo(10.0 + TASK.apply(points(5)))
    assert fitted.variance(away).min() > 0.5
    assert not fitted.is_beyond(positions[:5]).any()
    assert fitted.is_beyond(away).all()


def test_a_quadratic_needs_fewer_values_than_it_has_coefficients():
    # 10 coefficients; one that knew nothing would be off by the sd of U, about 1.2
    fitted = process_of(points(9), 1.1 * normal(points(9)))
    away = points(200, seed=5, scale=1.0)
    assert np.std(fitted.value(away) - 1.1 * normal(away)) < 0.3


def apart_of(seed):
    """Squares of U - V at draws of a logistic regression over what a process says of them."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((40, 4))
    rows *= np.where(rng.random(40) < 1.0 / (1.0 + np.exp(-rows.sum(axis=1))), 1.0, -1.0)[:, None]

    def exact(q):
        return np.logaddexp(0.0, -q @ rows.T).sum(axis=1) + np.square(q).sum(axis=1) / 50.0

    draws = np.zeros((200, 4))
    for _ in range(400):
        moved = draws + 0.3 * rng.standard_normal(draws.shape)
        accepted = np.log(rng.random(200)) < exact(draws) - exact(moved)
        draws[accepted] = moved[accepted]
    positions = draws.mean(axis=0) + 1.4 * (draws[:150] - draws.mean(axis=0))
    positions += 0.1 * rng.standard_normal(positions.shape)
    fitted = fit(
        positions, exact(positions) + 3.0 * rng.standard_normal(150), noise_sd=np.full(150, 3.0)
    )
    errors, apart = exact(draws) - fitted.value(draws), np.eye(200) - 1.0 / 200
    return np.square(apart @ errors).sum() / np.trace(apart @ fitted.covariance(draws) @ apart)


@pytest.mark.long
def test_a_process_of_noisy_values_knows_how_far_it_is_off(monkeypatch):
    """Its coordinates are those of its own draws, which is no reason to be sure of them.

    The mean ratio is 1.5, and 2.5 with the scales of exact values.
    """
    assert np.mean([apart_of(seed) for seed in range(6)]) < 2.0
    plain = quadratic.scale_table
    monkeypatch.setattr(quadratic, "scale_table", lambda dim, noise: plain(dim, 0.0 * noise))
    assert np.mean([apart_of(seed) for seed in range(6)]) > 2.0


@pytest.mark.parametrize("wide", [False, True])
def test_walls_have_the_gradients_of_their_values(wide, differences):
    fitted = process_of(points(25), bent(points(25)), wide=wide)
    positions = np.concatenate([points(5), points(5, seed=2, scale=4.5), points(2, scale=40.0)])
    values, gradients = fitted.value_and_gradient(positions)
    np.testing.assert_allclose(values, fitted.value(positions))
    expected = differences(fitted.value, positions)
    np.testing.assert_allclose(gradients, expected, rtol=1e-4, atol=1e-4)
    over = np.linalg.norm(TASK.apply(positions[-2:]), axis=1) - fitted.radius
    inside = fitted.process.value(fitted.whiten(positions[-2:]))
    np.testing.assert_allclose(values[-2:], inside + fitted.stiffness * np.square(over))


def test_chains_on_a_process_draw_from_it():
    fitted, rng = process_of(points(60), normal(points(60))), np.random.default_rng(3)
    for temperature in (1.0, 2.0):
        draws = TASK.apply(np.concatenate([fitted.draw(rng, temperature) for _ in range(8)]))
        # 4096 draws, correlated: five errors of 2000 independent ones
        np.testing.assert_allclose(draws.var(axis=0), temperature, rtol=5 * np.sqrt(2 / 2000))
        np.testing.assert_allclose(draws.mean(axis=0), 0.0, atol=5 * np.sqrt(temperature / 2000))


def test_low_values_that_any_quadratic_meets_do_not_make_one_of_the_others():
    rng = np.random.default_rng(1)
    low = np.column_stack([rng.uniform(-1.5, 1.5, 60), np.zeros(60)])
    low[:, 1] = np.square(low[:, 0]) + rng.standard_normal(60)
    positions = np.concatenate([low, rng.uniform(-3.0, 3.0, (18, 2))])
    curved = np.square(np.square(positions[:, 0]) - positions[:, 1]) + 0.01 * positions[:, 0]
    start = Whitening.identity(2)
    assert follow_quadratic(start, positions, curved) == (start, False)


def test_chains_that_begin_far_away_see_modes_that_others_do_not():
    def two(positions):
        z = TASK.apply(positions)
        wells = np.minimum(np.square(z[:, 0] + 2.5), np.square(z[:, 0] - 2.5) + 1.0)
        return 4.0 * wells + 0.5 * np.square(z[:, 1:]).sum(axis=1)

    positions = points(200, scale=2.0)
    fitted, rng = process_of(positions, two(positions)), np.random.default_rng(2)
    near, far = (TASK.apply(fitted.draw(rng, spread=each))[:, 0] > 0.0 for each in (0.1, 4.0))
    # four nats up, where chains on the first well do not come
    assert not near.any()
    assert far.any()


def test_coordinates_follow_draws_within_limits():
    rng, start = np.random.default_rng(1), Whitening.identity(DIM)
    draws = rng.standard_normal((20_000, DIM)) * np.array([1.5, 0.5, 100.0]) + 1.0
    found = refocus(start, draws)
    np.testing.assert_allclose(found.mean, draws.mean(axis=0))
    np.testing.assert_allclose(
        np.sqrt(np.diag(found.factor @ found.factor.T)), [1.5, 0.5, 2.0], rtol=0.05
    )
    hot = refocus(start, draws, temperature=4.0)
    np.testing.assert_allclose(
        np.sqrt(np.diag(hot.factor @ hot.factor.T)), [0.75, 0.3, 2.0], rtol=0.05
    )


def test_coordinates_turn_along_weak_correlations_where_values_are_likelier_so():
    dim = 5
    mix = np.eye(dim) + 0.25 * np.eye(dim, k=-1)
    mix[1:, 0] += 0.15
    z = 1.4 * np.random.default_rng(4).standard_normal((90, dim))
    fitted = fit(z @ mix.T, 3.0 * np.log(np.cosh(z)).sum(axis=1), seed=1)
    spread = fitted.whitening.inverse @ mix
    covariance = spread @ spread.T
    sds = np.sqrt(np.diag(covariance))
    assert np.abs(covariance / np.outer(sds, sds) - np.eye(dim)).max() < 0.2


def ridge(positions):
    return 0.5 * np.square(TASK.apply(positions) * [1.0, 100.0, 100.0]).sum(axis=1)


def test_few_dense_points_give_their_own_scale(rng):
    """Others count by their density; many dense ones all alike."""
    near, far = 0.1 * rng.standard_normal((6, 4)), 3.0 * rng.standard_normal((20, 4))
    few = np.concatenate([near, far])
    scales = np.diag(about_lowest(few, 50.0 * np.square(few).sum(axis=1)).factor)
    assert (scales < 1.0).all()
    many = rng.standard_normal((40, 4))
    found = about_lowest(many, np.zeros(40))
    assert np.allclose(found.mean, many.mean(axis=0))


def test_a_quadratic_through_far_values_gives_the_coordinates_of_a_thin_ridge():
    positions, n = points(12, scale=3.0), 12  # of ten coefficients
    found, known = follow_quadratic(TASK, positions, ridge(positions))
    assert known
    np.testing.assert_allclose(
        0.5 * np.square(found.apply(positions)).sum(axis=1), ridge(positions)
    )
    start = Whitening.identity(DIM)
    assert follow_quadratic(start, positions[: n - 1], ridge(positions)[: n - 1]) == (start, False)
    # values that are no quadratic, a saddle, and differences that overflow
    no_quadratic, saddle = np.sin(5.0 * positions).sum(axis=1), positions[:, 0] * positions[:, 1]
    for values in (no_quadratic, saddle, 1.5e308 * np.sign(saddle)):
        assert follow_quadratic(TASK, positions, values) == (TASK, False)


@pytest.mark.parametrize("highest", [None, 1e300])
def test_a_normal_density_is_learnt_in_any_coordinates(highest):
    positions, away = points(30), points(200, seed=9, scale=1.0)
    values = normal(positions)
    if highest is not None:  # whose squares overflow
        values[:3] = [highest, 1e180, 1e60]
    fitted = fit(positions, values)
    error = np.std(fitted.value(away) - normal(away))
    if highest is not None:
        assert error < 0.5
        return
    # not better, as the noise of values and the doubts about far ones are part of it
    assert error < 0.05
    assert fitted.radius >= 2.0 * 4.6  # one draw in ten thousand lies beyond 4.6
    assert fitted.quality.acceptance > 0.9
    assert fitted.n_points == 30
    assert repr(fitted).startswith("QuadraticProcess with a wall at ")
