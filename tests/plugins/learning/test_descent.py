"""The way down to a surrogate's mode, where its draws do not get there."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.interfaces import Evaluations
from surrokit.mode.descent import descend
from surrokit.mode.search import find_mode
from surrokit.testing.targets import Banana, Gaussian
from surrokit_learning.surrogate_draws import design_below, mode_of

SDS, SLOPE = np.array([1e4, 10.0]), -0.015  # as of an intercept and a slope: 0.998 correlated
VALLEY = Gaussian(
    mean=(-6e4, 1300.0),
    covariance=(
        (SDS[0] ** 2, SLOPE * SDS[0] ** 2),
        (SLOPE * SDS[0] ** 2, (SLOPE * SDS[0]) ** 2 + SDS[1] ** 2),
    ),
)


def seen(*positions):
    at = np.array(positions)
    return Evaluations(positions=at, values=VALLEY.value(at))


def test_points_lie_about_a_mode_that_is_lower():
    design = design_below(VALLEY, seen([0.0, 400.0]), 400, np.random.default_rng(1))
    assert design is not None
    assert_allclose(design.positions.mean(axis=0), VALLEY.mean, rtol=0.02)
    assert_allclose(np.cov(design.positions.T), VALLEY.covariance, rtol=0.1)


def test_there_are_none_where_the_best_point_is_as_low():
    near = np.add(VALLEY.mean, [100.0, -1.5])
    assert design_below(VALLEY, seen([0.0, 400.0], near), 20, np.random.default_rng(1)) is None


def test_there_are_none_without_second_derivatives():
    plain = sk.potential(lambda q: 0.5 * q @ q, lambda q: q, dim=2)
    assert design_below(plain, seen([0.0, 400.0]), 20, np.random.default_rng(1)) is None


def test_the_mode_of_a_surrogate_is_found_by_its_gradients_even_if_these_are_differences():
    start = np.array([-3.0, 8.0])
    bent = sk.potential(lambda q: Banana().value(q[None])[0], "differences", dim=2)
    found = descend(bent, start)
    assert found.converged
    assert_array_equal(mode_of(bent, start), found.position)
    assert not np.array_equal(mode_of(bent, start), find_mode(bent, start).position)
