"""Where inducing points lie."""

import numpy as np
import pytest

from surrokit.errors import SurrogateFitError
from surrokit_gp.posterior.inducing import default_number, inducing_points, k_means


@pytest.fixture
def positions(rng):
    return rng.standard_normal((200, 3))


def test_drawn_points_are_distinct_training_points(positions, rng):
    points = inducing_points("data", positions, 30, rng)
    assert len(np.unique(points, axis=0)) == 30
    assert (points[:, None, :] == positions).all(axis=2).any(axis=1).all()


@pytest.mark.parametrize("kind", ["k-means++", "optimised"])
def test_spread_points_leave_less_distance_than_drawn_ones(kind, positions):
    def distance(points):
        away = positions[:, None, :] - points
        return np.square(away).sum(axis=2).min(axis=1).mean()

    drawn = inducing_points("data", positions, 20, np.random.default_rng(0))
    spread = inducing_points(kind, positions, 20, np.random.default_rng(0))
    assert distance(spread) < 0.7 * distance(drawn)
    assert len(np.unique(spread, axis=0)) == 20


def test_clusters_far_apart_are_all_found(rng):
    middles = 100.0 * rng.standard_normal((7, 2))
    positions = (middles[:, None, :] + rng.standard_normal((7, 20, 2))).reshape(-1, 2)
    centres = k_means(positions, 7, rng)
    means = positions.reshape(7, 20, 2).mean(axis=1)
    order = np.square(means[:, None, :] - centres).sum(axis=2).argmin(axis=1)
    np.testing.assert_allclose(centres[order], means, atol=1e-10)


def test_as_many_as_there_are_points(positions, rng):
    for kind in ("data", "k-means++"):
        points = inducing_points(kind, positions[:9], 9, rng)
        np.testing.assert_allclose(
            np.sort(points, axis=0), np.sort(positions[:9], axis=0), rtol=1e-12
        )


def test_one_is_the_mean(positions, rng):
    np.testing.assert_allclose(k_means(positions, 1, rng)[0], positions.mean(axis=0), atol=1e-12)


def test_more_than_there_are_points(positions, rng):
    with pytest.raises(
        SurrogateFitError,
        match="n_inducing=201 inducing points cannot be found among 200 distinct training points; "
        "explore for longer, set n_inducing to 200 or less, or leave it None",
    ):
        inducing_points("data", positions, 201, rng)


def test_the_default_number(positions, rng):
    assert [default_number(3, n) for n in (4, 8, 100, 3000)] == [4, 5, 50, 300]
    assert len(inducing_points("k-means++", positions, None, rng)) == 100
