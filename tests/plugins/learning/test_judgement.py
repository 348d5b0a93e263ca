"""What rounds say of a surrogate, and when they have said enough."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from surrokit.interfaces import Evaluations
from surrokit_learning.draws import lowest_temperature
from surrokit_learning.judgement import (
    CLEAR,
    Judgement,
    Queue,
    acceptance_by,
    is_clear,
    predicted_acceptance,
    resample,
    spread,
)

# --- What rounds say of a surrogate, and when they have said enough ---


def judgement(missed=None, acceptance=0.9):
    return Judgement(acceptance=acceptance, spread=0.1, missed=missed)


def queue(predicted, n_outer, typical=3.0):
    predicted = np.asarray(predicted, dtype=float)
    return Queue(
        positions=np.zeros((len(predicted), 1)),
        expected=predicted,
        predicted=predicted,
        is_outer=np.arange(len(predicted)) < n_outer,
        typical=typical,
    )


def test_outer_points_tell_what_is_missed_and_nothing_of_the_acceptance():
    exact = np.array([2.0, 9.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    predicted = exact + np.array([2.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    found = Judgement.of(queue(predicted, 3), exact)
    assert found.missed == 1  # the second is too high as well, but little is at stake there
    assert found.acceptance == 1.0
    assert found.spread == 0.0


def test_a_constant_between_surrogate_and_target_changes_nothing():
    exact = np.array([2.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    predicted = exact + 2.0 * (np.arange(6) < 1)
    for constant in (-100.0, 100.0):
        assert Judgement.of(queue(predicted, 1), exact + constant).missed == 1


def test_failures_are_not_missed():
    exact = np.array([np.inf, 1.0, 1.0, np.inf, 1.0, 1.0])
    found = Judgement.of(queue(np.ones(6), 1), exact)
    assert found.missed == 0
    assert Judgement.of(queue(np.ones(3), 1), np.full(3, np.inf)).missed is None
    assert Judgement.of(queue(np.ones(6), 0), np.ones(6)).missed is None  # nobody has looked


@pytest.mark.parametrize(
    ("missed", "clear"),
    [([0] * CLEAR, True), ([0] * (CLEAR - 1), False), ([0, 1, 0], False), ([None, 0, 0], False)],
)
def test_rounds_in_a_row_must_miss_nothing(missed, clear):
    assert is_clear(list(map(judgement, missed)), once=False) == clear


@pytest.mark.parametrize(("missed", "clear"), [([], False), ([None], False), ([1, 0], True)])
def test_one_round_is_enough_where_the_target_is_convex(missed, clear):
    assert is_clear(list(map(judgement, missed)), once=True) == clear


def test_rounds_that_look_about_the_mass_count_together():
    first, *looked = [judgement(None, 0.1), judgement(0, 0.6), judgement(2, 0.9)]
    assert acceptance_by([]) is None
    assert acceptance_by([first]) == 0.1
    assert acceptance_by([first, *looked]) == pytest.approx(0.75)
    assert acceptance_by([*looked, first]) == 0.1


# --- What is predicted of independent draws, and what is drawn by importanc ---


@pytest.mark.parametrize("sd", [0.1, 0.5, 1.0])
def test_predicted_acceptance_is_that_of_independent_draws(sd):
    """For normal V - U it is 2 Phi(-sd / sqrt 2); 4000 draws tell it to 0.03 with six sigma."""
    differences = np.random.default_rng(1).normal(3.0, sd, 4000)
    assert predicted_acceptance(differences) == pytest.approx(
        2 * norm.cdf(-sd / np.sqrt(2)), abs=0.03
    )


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
    positions = np.zeros((200, 20))
    temperature = lowest_temperature(Evaluations(positions=positions, values=values))
    weights = np.exp(-values / temperature)
    assert weights.sum() ** 2 / np.square(weights).sum() == pytest.approx(30.0, rel=0.02)
    even = Evaluations(positions=positions, values=np.zeros(200))
    assert lowest_temperature(even) == 1.0
