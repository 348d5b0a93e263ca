"""What is predicted of independent draws, and what is drawn by importance."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from surrokit_learning.judgement import predicted_acceptance, resample, spread
from surrokit_learning.region import temperature_of


@pytest.mark.parametrize("sd", [0.1, 0.5, 1.0])
def test_predicted_acceptance_is_that_of_independent_draws(sd):
    """For normal V - U it is 2 Phi(-sd / sqrt 2); 4000 draws tell it to 0.03 with six sigma."""
    differences = np.random.default_rng(1).normal(3.0, sd, 4000)
    assert predicted_acceptance(differences) == pytest.approx(
        2 * norm.cdf(-sd / np.sqrt(2)), abs=0.03
    )


def test_predicted_acceptance_is_what_a_chain_of_independent_draws_shows():
    rng = np.random.default_rng(2)
    weights = np.exp(rng.normal(0.0, 0.8, 60_000))
    accepted, current = 0.0, weights[0]
    for proposed in weights[1:]:
        accepted += min(1.0, proposed / current)
        if rng.random() * current < proposed:
            current = proposed
    assert predicted_acceptance(np.log(weights[:5000])) == pytest.approx(accepted / 6e4, abs=0.03)


def test_acceptance_in_the_simple_cases():
    assert predicted_acceptance(np.array([2.0, 2.0, 2.0])) == pytest.approx(1.0)
    assert predicted_acceptance(np.array([-np.inf, -np.inf])) == 0.0
    assert np.isnan(predicted_acceptance(np.array([1.0])))
    # one draw of two is impossible: every proposal to it is rejected
    assert predicted_acceptance(np.array([0.0, -np.inf])) == 0.0


def test_rows_are_drawn_by_importance_without_repetition():
    rng = np.random.default_rng(3)
    differences = np.log([0.6, 0.3, 0.1])
    first = [resample(differences, 2, rng)[0] for _ in range(3000)]
    assert_allclose(np.bincount(first) / 3000, [0.6, 0.3, 0.1], atol=0.045)  # five sigma
    rows = resample(np.array([0.0, -np.inf, 1.0, -np.inf]), 4, rng)
    assert sorted(rows) == [0, 2]


def test_the_spread_is_a_standard_deviation_that_outliers_do_not_move():
    differences = np.random.default_rng(4).normal(0.0, 2.0, 2000)
    assert spread(differences) == pytest.approx(2.0, rel=0.1)
    differences[:20] = 1e9
    differences[20:30] = -np.inf
    assert spread(differences) == pytest.approx(2.0, rel=0.1)
    assert spread(np.array([-np.inf, 1.0])) == np.inf


def test_the_temperature_is_the_lowest_at_which_enough_points_count():
    values = np.random.default_rng(5).gamma(3.0, 40.0, 200)
    temperature = temperature_of(values, 30.0)
    weights = np.exp(-values / temperature)
    assert weights.sum() ** 2 / np.square(weights).sum() == pytest.approx(30.0, rel=0.02)
    assert temperature_of(np.zeros(50), 30.0) == 1.0
