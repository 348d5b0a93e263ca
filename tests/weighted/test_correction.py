"""Corrected means: without bias, and wrong variants that are told from them.

Bias is tested at 4.5 standard errors: 7e-6 false alarms for each test.
"""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from known_rounds import bias_in_errors, chains, known, pay, positions, tilted
from numpy.testing import assert_allclose, assert_array_equal

from surrokit.weighted.correction import correct, correct_means, shares, sum_without
from surrokit.weighted.round import Round

LARGEST = 4.5


def jackknifed(found):
    return correct_means(found, positions(found))[0]


def plain(found):
    mean, paid = found.flat.mean(), found.paid[:, 0]
    return mean + (found.weights / len(found) - 1.0 / len(found)) @ (paid - mean)


def not_normalised(found):
    weights, mean = np.exp(found.log_weights + 0.1), found.flat.mean()
    return mean + np.mean((weights - 1.0) * (found.paid[:, 0] - mean))


ESTIMATES = (jackknifed, plain, not_normalised)


@pytest.mark.statistical
def test_corrected_means_have_no_bias_as_those_without_jackknife_or_normalising_have(rng):
    rounds = [tilted(rng, n=12, tilt=0.5) for _ in range(4000)]
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
    found = tilted(rng, n=9, tilt=2.0)
    w, f = found.weights, found.paid[:, 0] - found.flat.mean()
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
    paid = found.paid
    assert_allclose(got.means, paid[np.argmax(weights)] - paid.mean(axis=0) + found.flat.mean())


def test_sums_without_one_keep_their_digits():
    assert_allclose(sum_without(np.array([1.0, 1e-20, 3e-20])), [4e-20, 1.0, 1.0], rtol=1e-12)


def test_paid_draws_outside_a_tail_leave_its_error_large(rng):
    draws = chains(rng, draws=400)
    flat = draws.reshape(-1)
    inside = flat[rng.choice(np.flatnonzero(flat < 1.5), 40, replace=False), None]
    found = Round(draws=draws, paid=inside, log_weights=0.3 * inside[:, 0], learnt=100)
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
    evens = np.append(np.zeros(39), -5.0)
    logs = evens + np.append(0.003 * rng.standard_normal(39), -24.0)
    found = Round(draws=draws, paid=paid, log_weights=logs, log_evens=evens, learnt=100)
    squares = positions(found).squared()
    gone = found.evenings[-1] * squares.paid[-1, 0] / 40.0
    assert np.sqrt(correct(found, squares).of_correction[0]) < 1.5 * gone


def test_hindsight_of_many_draws_has_more_degrees_than_few_payments(rng):
    found = pay(rng, chains(rng, draws=400), 28, lambda z: np.zeros(len(z)))
    late = attrs.evolve(found, hindsight=np.full((4, 400), 0.5))
    plain, told = (correct(each, positions(each)) for each in (found, late))
    assert told.of_correction == pytest.approx(0.5 * found.flat.var(axis=0) / 28)
    assert told.degrees[0] > 500.0 > 28.0 > plain.degrees[0]
    one_draw = np.zeros((4, 400))
    one_draw[0, 0] = 1e4
    assert correct(attrs.evolve(found, hindsight=one_draw), positions(found)).degrees[0] < 3.0


def test_hindsight_below_what_payments_say_changes_nothing(rng):
    found = tilted(rng)
    late = attrs.evolve(found, hindsight=np.full((4, 50), 1e-6))
    for name in ("means", "of_chains", "of_correction", "degrees"):
        one, other = (getattr(correct(each, positions(each)), name) for each in (found, late))
        assert_array_equal(one, other)


def test_a_rare_event_that_only_positions_paid_for_have_seen_is_not_constant(rng):
    draws = chains(rng)
    paid = np.append(draws.ravel()[:39], 9.0)[:, None]
    found = Round(draws=draws, paid=paid, log_weights=np.zeros(40), learnt=100)
    found = attrs.evolve(found, log_evens=np.append(np.zeros(39), -3.0))
    assert correct(found, known(found, lambda x: (x > 8.0).astype(float))).of_correction[0] > 0.0
