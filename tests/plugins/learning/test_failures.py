"""Points of an exploration are chosen away from where the target fails, where that is frequent."""

from __future__ import annotations

import numpy as np
import pytest

from surrokit_learning.survey import promising

RNG = np.random.default_rng(1)
POINTS = 3.0 * RNG.standard_normal((100, 2))
BAD = POINTS[:, 0] > 0.0
NEXT = np.array([[-2.0, 0.0], [2.0, 0.0], [-1.0, 2.0], [3.0, -2.0]])


def test_points_that_would_fail_are_left_out_unless_all_would():
    assert promising(POINTS[~BAD], POINTS[BAD], NEXT).tolist() == [True, False, True, False]
    assert promising(POINTS[~BAD], POINTS[BAD], NEXT[[1, 3]]).all()
    flat = POINTS * [1.0, 0.0]  # a coordinate without width is no obstacle
    assert promising(flat[~BAD], flat[BAD], NEXT).tolist() == [True, False, True, False]


@pytest.mark.parametrize("far", [1e200, 1.7e308])
def test_points_that_overflow_are_no_obstacle(far):
    good = np.random.default_rng(0).normal(size=(40, 2))
    good[0] = far, -far
    failed = np.vstack([good[1:] + 50.0, [[np.inf, np.nan]]])
    fine = promising(good, failed, np.array([[0.0, 0.0], [np.nan, 0.0], [np.inf, far]]))
    assert fine.shape == (3,)


@pytest.mark.parametrize(("n_good", "n_failed"), [(40, 19), (181, 20), (40, 0), (0, 30)])
def test_few_failures_change_nothing(n_good, n_failed):
    points = RNG.standard_normal((300, 2))
    assert promising(points[:n_good], points[n_good : n_good + n_failed], NEXT).all()
