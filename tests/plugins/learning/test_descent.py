"""The way down to a surrogate's mode, where its draws do not get there."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.contracts.learner import Evaluations
from surrokit.testing.targets.densities import Gaussian
from surrokit_learning.rounds.descent import design_below

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
