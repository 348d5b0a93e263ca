"""Rounds: their weights, corrected means without bias, and whether they may be accepted.

Wrong variants are told from right ones. Bias is tested at 4.5 standard errors: 7e-6 false alarms
for each test.
"""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from known_rounds import bias_in_errors, chains, known, pay, positions, predicting, reweighted
from numpy.testing import assert_allclose, assert_array_equal

from surrokit.errors import ConfigurationError, ShapeError
from surrokit.weighted.correction import correct, correct_means, shares, sum_without
from surrokit.weighted.round import Round, effective
from surrokit.weighted.rounds import (
    FEWEST,
    LARGEST_K,
    complaint,
    disagreement,
    pareto_k,
    stay_rejected,
)


def of(logs):
    draws = np.arange(12.0).reshape(2, 6, 1)
    logs = np.array(logs)
    return Round(draws=draws, evaluated=draws[0, : len(logs)], log_weights=logs, learnt=10)


def test_weights_have_mean_one_and_are_worth_what_kish_says():
    found = of([-2000.0, -2000.0, -np.inf, -2000.0 + np.log(2.0)])
    assert_allclose(found.weights, [1.0, 1.0, 0.0, 2.0])
    assert_allclose(effective(found.log_weights), 16.0 / 6.0)
    assert_allclose(found.variance, 2.0 / 3.0)
    assert len(found) == 4
    assert np.isnan(of([3.0]).variance)


@pytest.mark.parametrize(
    "change",
    [
        {"draws": np.zeros((4, 3))},
        {"log_weights": np.zeros(3)},
        {"log_surrogate_weights": np.zeros(3)},
        {"evaluated": np.zeros((40, 2))},
        {
            "evaluated": np.zeros((0, 1)),
            "log_weights": np.zeros(0),
            "log_surrogate_weights": np.zeros(0),
        },
    ],
)
def test_shapes_that_do_not_fit_are_told(rng, change):
    with pytest.raises(ShapeError, match="and n positions, log weights and surrogate_weights"):
        attrs.evolve(reweighted(rng), **change)


@pytest.mark.parametrize("shape", [(4, 70), (3, 100), (4, 0)])
def test_hindsight_of_other_draws_is_told(rng, shape):
    for name in ("looked_at_weights", "predictive_variance", "density_ratio"):
        message = f"the {name} of a round must have a number for each position looked at"
        with pytest.raises(ShapeError, match=message):
            attrs.evolve(reweighted(rng), **{name: np.zeros(shape)})


@pytest.mark.parametrize("log", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["log_weights", "log_surrogate_weights"])
def test_a_log_weight_that_is_no_number_is_told(rng, name, log):
    with pytest.raises(ConfigurationError, match="log weights must be finite, or -inf"):
        attrs.evolve(reweighted(rng, n=1), **{name: np.array([log])})


def test_weights_and_evenings_are_over_what_was_paid_for(rng):
    """Positions of twice the surrogate's scale: both are means under another density."""
    draws, paid = rng.standard_normal((4, 5000, 1)), 2.0 * rng.standard_normal((20_000, 1))
    x = paid[:, 0]
    even = np.log(2.0) - 0.5 * np.square(x) + np.square(x) / 8.0
    found = Round(
        draws=draws,
        evaluated=paid,
        log_weights=even + 0.3 * x,
        log_surrogate_weights=even,
        learnt=10,
    )
    assert_allclose(np.average(np.square(x), weights=found.surrogate_weights), 1.0, atol=0.05)
    assert_allclose(np.average(x, weights=found.weights), 0.3, atol=0.05)
    assert_allclose(found.log_ratios, 0.3 * x)


# --- corrected means ---

LARGEST = 4.5


def jackknifed(found):
    return correct_means(found, positions(found))[0]


def plain(found):
    mean, paid = found.flat.mean(), found.evaluated[:, 0]
    return mean + (found.weights / len(found) - 1.0 / len(found)) @ (paid - mean)


def not_normalised(found):
    weights, mean = np.exp(found.log_weights + 0.1), found.flat.mean()
    return mean + np.mean((weights - 1.0) * (found.evaluated[:, 0] - mean))


ESTIMATES = (jackknifed, plain, not_normalised)


@pytest.mark.statistical
def test_corrected_means_have_no_bias_as_those_without_jackknife_or_normalising_have(rng):
    rounds = [reweighted(rng, n=12, density_ratio=0.5) for _ in range(4000)]
    bias = {each: bias_in_errors([each(one) - 0.5 for one in rounds]) for each in ESTIMATES}
    assert abs(bias[jackknifed]) < LARGEST
    assert min(abs(bias[plain]), abs(bias[not_normalised])) > LARGEST


def test_shares_are_the_jackknife_written_out(rng):
    weights, values = rng.lognormal(size=9), rng.standard_normal(9)
    without = [np.average(np.delete(values, i), weights=np.delete(weights, i)) for i in range(9)]
    expected = 9 * np.average(values, weights=weights) - 8 * np.mean(without)
    assert_allclose(shares(weights) @ values, expected)
    assert_allclose(shares(weights).sum(), 1.0)


def test_the_variance_is_the_jackknifes_written_out(rng):
    found = reweighted(rng, n=9, density_ratio=2.0)
    w, f = found.weights, found.evaluated[:, 0] - found.flat.mean()
    moves = [
        np.average(np.delete(f, i), weights=np.delete(w, i)) - np.delete(f, i).mean()
        for i in range(9)
    ]
    assert correct(found, positions(found)).of_correction[0] >= 8 * np.var(moves) * (1 - 1e-9)
    half = attrs.evolve(found, log_weights=0.0 * found.log_weights)
    assert_allclose(correct(half, positions(found)).of_correction, 0.0, atol=1e-25)


@pytest.mark.parametrize("weights", [[0.0, 3.0, 0.0], [2.0]])
def test_with_all_weight_on_one_draw_the_error_is_unknown(rng, weights):
    weights = np.array(weights)
    assert_array_equal(shares(weights), weights / weights.sum())
    with np.errstate(divide="ignore"):
        found = pay(rng, chains(rng), len(weights), lambda z: np.log(weights))
    got = correct(found, positions(found))
    assert np.isinf(got.of_correction).all()
    paid = found.evaluated
    assert_allclose(got.means, paid[np.argmax(weights)] - paid.mean(axis=0) + found.flat.mean())


def test_sums_without_one_keep_their_digits():
    assert_allclose(sum_without(np.array([1.0, 1e-20, 3e-20])), [4e-20, 1.0, 1.0], rtol=1e-12)


def test_paid_draws_outside_a_tail_leave_its_error_large(rng):
    draws = chains(rng, draws=400)
    flat = draws.reshape(-1)
    inside = flat[rng.choice(np.flatnonzero(flat < 1.5), 40, replace=False), None]
    found = Round(draws=draws, evaluated=inside, log_weights=0.3 * inside[:, 0], learnt=100)
    above = known(found, lambda x: (x > 1.7).astype(float))
    blind = found.variance * above.draws.var() / 40  # as if weights had nothing to do with it
    told = correct(found, above, [positions(found)])
    truth = (
        np.var((np.exp(0.3 * flat - 0.045) - 1.0) * (above.flat[:, 0] - above.draws.mean())) / 40
    )
    assert told.of_correction[0] > 0.5 * truth > blind
    assert told.degrees[0] < 8.0


def test_one_payment_far_out_makes_no_trend(rng):
    """The surrogate has mass where the target has none, at one of 40 positions, which counts as a
    150th of a draw. A line through it alone would make the error five to twenty times as large."""
    draws = chains(rng, draws=1000)
    paid = np.append(draws.reshape(-1, 1)[::100][:39], [[5.0]], axis=0)
    surrogate_weights = np.append(np.zeros(39), -5.0)
    logs = surrogate_weights + np.append(0.003 * rng.standard_normal(39), -24.0)
    found = Round(
        draws=draws,
        evaluated=paid,
        log_weights=logs,
        log_surrogate_weights=surrogate_weights,
        learnt=100,
    )
    squares = positions(found).squared()
    gone = found.surrogate_weights[-1] * squares.evaluated[-1, 0] / 40.0
    assert np.sqrt(correct(found, squares).of_correction[0]) < 1.5 * gone


def test_hindsight_of_many_draws_has_more_degrees_than_few_payments(rng):
    found = pay(rng, chains(rng, draws=400), 28, lambda z: np.zeros(len(z)))
    late = predicting(found, np.full((4, 400), 0.5))
    plain, told = (correct(each, positions(each)) for each in (found, late))
    assert told.of_correction == pytest.approx(0.5 * found.flat.var(axis=0) / 28)
    assert_array_equal(told.means, plain.means)
    assert told.degrees[0] > 500.0 > 28.0 > plain.degrees[0]
    one_draw = np.zeros((4, 400))
    one_draw[0, 0] = 1e4
    late = predicting(found, one_draw)
    assert correct(late, positions(late)).degrees[0] < 3.0


def test_hindsight_below_what_payments_say_changes_nothing(rng):
    found = reweighted(rng)
    late = predicting(found, np.full((4, 100), 1e-6))
    for name in ("means", "of_chains", "of_correction", "degrees"):
        one, other = (getattr(correct(each, positions(each)), name) for each in (found, late))
        assert_array_equal(one, other)


def test_a_rare_event_that_only_positions_paid_for_have_seen_is_not_constant(rng):
    draws = chains(rng)
    paid = np.append(draws.ravel()[:39], 9.0)[:, None]
    found = Round(draws=draws, evaluated=paid, log_weights=np.zeros(40), learnt=100)
    found = attrs.evolve(found, log_surrogate_weights=np.append(np.zeros(39), -3.0))
    assert correct(found, known(found, lambda x: (x > 8.0).astype(float))).of_correction[0] > 0.0


# --- whether weights may be accepted ---


def heavy(rng, n=200, k=1.5):
    return k * rng.exponential(size=n)  # of weights whose tail has Pareto's k


@pytest.mark.statistical
def test_k_is_that_of_the_largest_weights(rng):
    """At 1,000 weights the error of k is about 0.15; five times that is a false alarm."""
    logs = heavy(rng, 1000)
    assert abs(pareto_k(logs) - 1.5) < 0.75
    assert pareto_k(-logs) < 0.0  # bounded from above
    assert pareto_k(logs - 700.0) == pytest.approx(pareto_k(logs), rel=1e-6)


@pytest.mark.parametrize(
    ("logs", "k"),
    [
        (np.full(30, 5.0), -np.inf),
        (0.01 * np.arange(4.0), -np.inf),
        (np.append(np.zeros(20), np.full(20, -5.0)), -np.inf),
        (np.append(0.001 * np.arange(20), np.full(8, -7.0)), -np.inf),
        (np.full(30, -np.inf), np.inf),
        (np.append(np.zeros(3), 4.0), np.inf),
        (np.append(np.full(29, -np.inf), 0.0), np.inf),
    ],
    ids=[
        "same",
        "nearly the same",
        "many largest",
        "many near the largest",
        "all zero",
        "few",
        "one",
    ],
)
def test_k_at_its_ends(logs, k):
    assert pareto_k(logs) == k


@pytest.mark.statistical
def test_good_weights_are_believed(rng):
    """Of 100 rounds of log weights with standard deviation 0.3 few are not: 0.8 % were in 2,000."""
    found = (pay(rng, chains(rng), 60, lambda z: 0.3 * z[:, 0]) for _ in range(100))
    assert sum(complaint(each) is not None for each in found) <= 7


@pytest.mark.parametrize(
    ("logs", "told"),
    [
        (lambda rng: heavy(rng, 200), f"above {LARGEST_K}"),
        # one draw in sixteen weighs as much as 25 others: a variance of 5.4, and no tail
        (lambda rng: np.tile(np.append(np.log(25.0), np.zeros(15)), 20), "variance of the weights"),
        (lambda rng: 0.6 * rng.standard_normal(FEWEST - 1), "only where they are even"),
        (lambda rng: np.full(30, -np.inf), "the target is zero at all draws of the surrogate"),
        (lambda rng: np.append(np.full(95, -np.inf), np.zeros(5)), "Pareto's k of the weights"),
    ],
    ids=["heavy", "wide", "few", "zero", "worth few"],
)
def test_bad_weights_are_not_believed(rng, logs, told):
    logs = logs(rng)
    assert told in complaint(pay(rng, chains(rng), len(logs), lambda z: logs))


def test_weights_that_are_enough_or_half_of_them_zero_are_believed(rng):
    assert complaint(reweighted(rng, n=FEWEST, density_ratio=0.01)) is None
    assert complaint(reweighted(rng, n=FEWEST - 9, density_ratio=0.01)) is None
    halves = pay(rng, chains(rng), 80, lambda z: np.where(z[:, 0] > 0, 0.0, -np.inf))
    assert complaint(halves) is None


def test_weights_that_are_worth_few_exact_draws_are_rejected(rng):
    """Half of them are next to nothing."""
    found = reweighted(rng, n=FEWEST, density_ratio=0.0)
    logs = np.where(np.arange(FEWEST) < FEWEST // 2, 0.0, -10.0)
    uneven = attrs.evolve(found, log_weights=logs + 0.1 * rng.standard_normal(FEWEST))
    assert "worth" in complaint(uneven)


class Bordered:
    """Has learnt from positions within a radius."""

    def __init__(self, radius):
        self.radius = radius

    def is_beyond(self, positions):
        return np.linalg.norm(positions, axis=1) > self.radius


def test_short_chains_are_refused_where_longer_ones_would_be(rng):
    together, shifts = rng.standard_normal((8, 200, 2)), np.linspace(-1.0, 1.0, 8)[:, None, None]
    assert not stay_rejected(together, None, 8.0)
    # R-hat 1.06 may become less than 1.02 in chains of eight times the length
    near = together + 0.5 * shifts
    assert not stay_rejected(near, None, 8.0)
    assert stay_rejected(near, None, 1.1)
    assert stay_rejected(together + 3.0 * shifts, None, 8.0)
    # of a normal density 0.011 is beyond 3, and 0.14 beyond 2
    assert not stay_rejected(together, Bordered(3.0), 8.0)
    assert stay_rejected(together, Bordered(2.0), 8.0)


@pytest.mark.statistical
def test_rounds_of_one_target_agree(rng):
    """A false alarm has probability 1e-3 each: two in fifty pairs have one of 1.2e-3."""
    pairs = [
        (reweighted(rng, dim=2, density_ratio=0.1), reweighted(rng, dim=2, density_ratio=0.1))
        for _ in range(50)
    ]
    assert sum(disagreement(*pair) is not None for pair in pairs) <= 1


def test_rounds_of_two_places_or_widths_disagree(rng):
    one = reweighted(rng, dim=2, density_ratio=0.1)
    other = attrs.evolve(one, draws=one.draws + np.array([0.0, 0.5]))
    assert "the mean of number 1" in disagreement(one, other)
    assert "standard errors apart" in disagreement(one, other)
    one = reweighted(rng, dim=2, density_ratio=0.0)
    wide = attrs.evolve(one, draws=one.draws * [2.0, 1.0])
    assert "mean square of number 0" in disagreement(one, wide)


def test_constants_agree_if_they_are_equal(rng):
    draws = np.concatenate([chains(rng), np.ones((4, 100, 1))], axis=2)
    one = pay(rng, draws, 40, lambda z: 0.0 * z[:, 0])
    assert disagreement(one, one) is None
    moved = np.array([0.0, 1e-3])
    other = attrs.evolve(one, draws=one.draws + moved, evaluated=one.evaluated + moved)
    assert "number 1 inf standard errors" in disagreement(one, other)
