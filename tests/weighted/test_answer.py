"""Answers of several rounds: intervals that hold, and wrong variants whose do not."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from known_rounds import bias_in_errors, chains, fewest_hits, pay, positions, predicting, reweighted
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from surrokit.weighted.answer import Answer, Figures
from surrokit.weighted.correction import correct
from surrokit.weighted.round import Distribution, Estimate, Round, combine_degrees

REPEATS = 100
LACKS = np.log(40.0)
"""By how much a surrogate is too high in a tail, in nats."""


def ask(rng, density_ratio, dim=2):
    rounds = (
        reweighted(rng, 28, density_ratio, 100, dim=dim),
        reweighted(rng, 44, density_ratio, 130, dim=dim),
    )
    return Answer(rounds=rounds, calls=172.0)


def holds(estimate, truth):
    low, high = estimate.interval()
    return ((low <= truth) & (truth <= high)).sum()


def truths(density_ratio):
    quantiles = {f"q{100 * p:02.0f}": density_ratio + norm.ppf(p) for p in (0.05, 0.5, 0.95)}
    return {"mean": density_ratio, "sd": 1.0, **quantiles}


@pytest.mark.statistical
@pytest.mark.parametrize("density_ratio", [pytest.param(0.05, marks=pytest.mark.long), 0.3])
def test_intervals_hold(rng, density_ratio):
    """Each of five kinds, of two numbers a hundred times, makes a false alarm at 1e-4."""
    truth, hits = truths(density_ratio), dict.fromkeys(truths(density_ratio), 0)
    for _ in range(REPEATS):
        for name, estimate in Figures.of(ask(rng, density_ratio)).named.items():
            hits[name] += holds(estimate, truth[name])
    assert min(hits.values()) >= fewest_hits(2 * REPEATS), hits


def pays_beside_a_tail(rng):
    """Return a round whose target has 40 times what the surrogate has beyond 3, where fewer than
    one of 25 rounds pays, and the round in predictive_variance."""
    found = pay(rng, chains(rng, draws=1000), 28, lambda z: np.where(z[:, 0] > 3.0, LACKS, 0.0))
    ratios = np.exp(np.where(found.draws[..., 0] > 3.0, LACKS, 0.0))
    late = np.square(ratios / ratios.mean() - 1.0)
    return found, predicting(found, late)


@pytest.mark.statistical
def test_hindsight_keeps_errors_from_being_too_small_where_no_payment_met_a_tail(rng):
    """A hundred intervals of means fail at 1e-4; without predictive variance it rejects them."""
    missing = np.expm1(LACKS)
    truth = missing * norm.pdf(3.0) / (1.0 + missing * norm.sf(3.0))
    right, blind = 0, 0
    for _ in range(REPEATS):
        plain, late = pays_beside_a_tail(rng)
        right += holds(Answer(rounds=(late,), calls=0.0).mean(), truth)
        blind += holds(Answer(rounds=(plain,), calls=0.0).mean(), truth)
    assert right >= fewest_hits(REPEATS) > blind


def test_what_answers_are_worth_is_not_nothing_where_a_correction_of_variance_is_too_large(rng):
    draws = chains(rng, draws=1000)
    paid = np.append(draws[0, :39], [[6.0]], axis=0)
    found = Round(
        draws=draws, evaluated=paid, log_weights=np.append(np.zeros(39), -5.0), learnt=100
    )
    sixths = Answer(rounds=(found,), calls=0.0).expectation(lambda x: x**6)
    plain = np.square(found.flat**6).mean() - np.square((found.flat**6).mean())
    assert sixths.effective[0] == pytest.approx(0.25 * plain / sixths.error[0] ** 2, rel=0.01)


@pytest.mark.statistical
def test_error_bars_without_the_chains_part_do_not_hold(rng):
    """Chains are slow and weights good: the mutant is refused at the same 1e-4, ours holds."""
    right, mutant = 0, 0
    for _ in range(60):
        found = reweighted(rng, 40, 0.02, draws=200, phi=0.9)
        ours = Answer(rounds=(found,), calls=0.0).mean()
        alone = attrs.evolve(ours, error=np.sqrt(correct(found, positions(found)).of_correction))
        right, mutant = right + holds(ours, 0.02), mutant + holds(alone, 0.02)
    assert right >= fewest_hits(60) > mutant


@pytest.mark.statistical
@pytest.mark.long
def test_rounds_combined_by_noisy_precisions_have_bias(rng):
    """Both are looked at over 400 answers of five rounds with skewed weights, at 4.5 errors."""
    draws = chains(rng, draws=500)
    mean = np.exp(0.8 * draws).mean()
    truth = (np.exp(0.8 * draws) * draws).mean() / mean
    ours, noisy = [], []
    for _ in range(400):
        rounds = [pay(rng, draws, 20, lambda z: 0.8 * z[:, 0]) for _ in range(5)]
        found = [correct(each, positions(each)) for each in rounds]
        means = np.array([each.means[0] for each in found])
        precisions = [1.0 / (each.of_correction[0] + each.of_chains[0]) for each in found]
        ours.append(Answer(rounds=tuple(rounds), calls=0.0).counts @ means - truth)
        noisy.append(np.average(means, weights=precisions) - truth)
    assert abs(bias_in_errors(ours)) < 4.5
    assert bias_in_errors(noisy) < -4.5  # large weights are where tails are seen


def test_counts_do_not_depend_on_weights(rng):
    answer = ask(rng, 0.3)
    assert_allclose(
        answer.counts, np.array([28 * 100**2, 44 * 130**2]) / (28 * 100**2 + 44 * 130**2)
    )
    first = attrs.evolve(answer.rounds[0], log_weights=10.0 * answer.rounds[0].log_weights)
    other = attrs.evolve(answer, rounds=(first, answer.rounds[1]))
    assert_array_equal(other.counts, answer.counts)
    # a round whose surrogate has learnt nothing counts
    rounds = tuple(attrs.evolve(each, learnt=0) for each in answer.rounds)
    assert_allclose(Answer(rounds=rounds, calls=0.0).counts, [28 / 72, 44 / 72])


def test_the_answer_is_that_of_its_rounds(rng):
    answer = ask(rng, 0.3)
    parts = [correct(each, positions(each)) for each in answer.rounds]
    got = answer.mean()
    assert_allclose(got.value, answer.counts @ np.stack([each.means for each in parts]))
    variances = [each.of_correction + each.of_chains for each in parts]
    assert_allclose(np.square(got.error), np.square(answer.counts) @ np.stack(variances))
    assert got.calls == 172.0


def test_draws_and_weights_are_those_paid_for(rng):
    answer = ask(rng, 0.3)
    assert answer.draws.shape == (72, 2)
    assert_allclose(np.exp(answer.log_weights).mean(), 1.0)
    first, n = answer.rounds[0], 28
    assert_allclose(np.exp(answer.log_weights[:n]).sum() / 72, answer.counts[0])
    assert_allclose(np.diff(answer.log_weights[:n]), np.diff(first.log_weights), atol=1e-10)


def test_functions_may_be_any(rng):
    answer = ask(rng, 0.1)
    got = answer.expectation(lambda z: np.stack([z[:, 0], 0.0 * z[:, 0] + 3.0], axis=1))
    assert_allclose(got.value[0], answer.mean().value[0])
    assert (got.value[1], got.error[1], got.effective[1]) == (3.0, 0.0, np.inf)
    assert got.interval()[0][1] == got.interval()[1][1] == 3.0


def test_a_number_that_never_changes_is_known(rng):
    draws = np.concatenate([chains(rng), np.full((4, 100, 1), 2.0)], axis=2)
    found = pay(rng, draws, 40, lambda z: 0.1 * z[:, 0])
    for name, estimate in Figures.of(Answer(rounds=(found,), calls=0.0)).named.items():
        assert_allclose(estimate.value[1], 0.0 if name == "sd" else 2.0, atol=1e-12)
        assert name == "sd" or estimate.error[1] == 0.0


def test_one_paid_draw_leaves_the_error_infinite(rng):
    found = Answer(rounds=(reweighted(rng, n=1),), calls=0.0)
    low, high = found.mean().interval()
    assert (low, high) == (-np.inf, np.inf)
    assert np.isinf(found.quantile(0.5).error).all()


def test_quantiles_do_not_depend_on_scales(rng):
    answer = ask(rng, 0.3)
    rounds = tuple(
        attrs.evolve(
            each,
            **{n: np.exp(3.0 * getattr(each, n)) for n in ("draws", "looked_at", "evaluated")},
        )
        for each in answer.rounds
    )
    other = attrs.evolve(answer, rounds=rounds).quantile(0.95)
    here = answer.quantile(0.95)
    assert_allclose(np.log(other.value) / 3.0, here.value, atol=0.02)
    assert_allclose(other.degrees, here.degrees)


def test_a_quantile_at_the_end_of_the_draws_has_no_error_to_go_by(rng):
    draws = chains(rng)
    paid = draws.ravel()[np.append(np.argmin(draws), np.arange(200, 240)), None]
    logs = np.append(3.0, np.zeros(40))
    found = Round(draws=draws, evaluated=paid, log_weights=logs, learnt=100)
    assert np.isinf(Answer(rounds=(found,), calls=0.0).quantile(0.05).error[0])


def test_distribution_functions_are_monotone_and_exact():
    points = np.array([[3.0, 1.0], [1.0, 1.0], [2.0, 1.0], [4.0, 1.0]])
    found = Distribution.of(points, np.array([0.5, 0.4, -0.2, 0.3]))
    assert_array_equal(found.points[0], [1.0, 2.0, 3.0, 4.0])
    assert (np.diff(found.below) >= 0.0).all()
    assert_allclose(found.invert(np.array([0.85, 0.3])), [4.0, 1.0])
    assert_array_equal(found.invert(np.array([-1.0, 2.0])), [1.0, 1.0])


def test_an_estimate_tells_its_error(rng):
    answer = ask(rng, 0.1)
    assert "effective draws" in repr(answer.mean())
    one = answer.mean()
    scalar = attrs.evolve(one, **{n: getattr(one, n)[0] for n in ("value", "error", "effective")})
    assert " +- " in repr(scalar)
    # of Student's law
    names = ("value", "error", "effective", "degrees")
    two = Estimate(**dict.fromkeys(names, np.array(2.0)), calls=0)
    assert_allclose(two.interval(), [2.0 - 2.0 * 4.302652730, 2.0 + 2.0 * 4.302652730])


def test_degrees_are_those_of_the_part_that_is_known_badly():
    parts, degrees = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0]]), np.full((2, 3), 5.0)
    got = combine_degrees(parts, degrees, np.array([1.0, 4.0, 2.0]))
    assert_allclose(got, [5.0, 40.0, np.inf])
