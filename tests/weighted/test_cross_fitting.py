"""Cross-fitting: each surrogate is corrected by payments that are new to it, and answers hold."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from known_rounds import bias_in_errors, chains, fewest_hits, positions
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from surrokit.interfaces import OuterSample, SurrogateSample
from surrokit.weighted.answer import Answer
from surrokit.weighted.correction import correct
from surrokit.weighted.round import Round
from surrokit.weighted.rounds import FOLDS, Payments, choose, cross_fit, is_worth_it, parts_of

SHIFT = 0.5
"""Mean of the target; V is standard normal."""


@attrs.frozen(eq=False)
class Shifted:
    """The potential of normal draws, with errors that are known at some positions alone."""

    mean: float
    exact_at: np.ndarray = attrs.field(factory=lambda: np.empty((0, 1)))

    def value(self, q):
        found = 0.5 * np.square(q[:, 0] - self.mean)
        known = (q[:, None] == self.exact_at[None]).all(axis=2).any(axis=1)
        return np.where(known, 0.5 * np.square(q[:, 0] - SHIFT), found)


V, U = Shifted(0.0), Shifted(SHIFT)


def paid_for(rng, n=40, draws=400, outer=False):
    """Return draws of V, and payments of which half are farther out if so wanted."""
    found = chains(rng, chains=8, draws=draws)
    far = None
    if outer:  # draws of twice the variance, and their density over that of V
        away = np.sqrt(2.0) * rng.standard_normal((400, 1))
        far = OuterSample(positions=away, chances=lambda v: np.sqrt(0.5) * np.exp(0.5 * v))
    sample = SurrogateSample(positions=found, values=0.5 * np.square(found[..., 0]), outer=far)
    return sample, choose(sample, V, n, rng)


def round_of(sample, payments):
    return Round(
        draws=sample.positions,
        paid=payments.positions,
        log_weights=payments.weigh(U.value(payments.positions)),
        log_evens=payments.log_evens,
        learnt=100,
    )


def learn(sample, payments, left_out):
    """Return a surrogate of all payments that are not left out: it takes them for unit normal
    draws of a mean that it estimates by their weights, half of the way from V."""
    kept = ~(payments.positions[:, None] == left_out[None]).all(axis=2).any(axis=1)
    weights = np.exp(payments.weigh(U.value(payments.positions)))[kept]
    return Shifted(0.5 * float(np.average(payments.positions[kept, 0], weights=weights)))


def crossed(rng, learn=learn, **options):
    """Return a round as it is, and as surrogates see it that learn from parts of it."""
    sample, payments = paid_for(rng, **options)
    found = round_of(sample, payments)
    surrogates = [learn(sample, payments, each) for each in parts_of(payments)]
    return found, cross_fit(sample, payments, surrogates)


def test_every_payment_is_in_one_part(rng):
    _, payments = paid_for(rng, n=43)
    parts = list(parts_of(payments))
    assert [len(each) for each in parts] == [9, 9, 9, 8, 8]
    found = np.concatenate(parts)
    assert_array_equal(np.sort(found, axis=0), np.sort(payments.positions, axis=0))
    # each of draws and of draws farther out
    sample, payments = paid_for(rng, n=40, outer=True)
    inner = set(sample.flat[:, 0])
    assert [sum(each in inner for each in part[:, 0]) for part in parts_of(payments)] == [4] * FOLDS


def test_surrogates_that_are_right_leave_nothing_to_correct(rng):
    """The answers are then those of V's draws, weighted as the target would."""
    sample, payments = paid_for(rng, outer=True)
    found = cross_fit(sample, payments, [U] * FOLDS).apply(round_of(sample, payments))
    x = sample.positions[..., 0]
    weights = np.exp(SHIFT * x) / np.exp(SHIFT * x).mean()
    assert_allclose(found.tilt, weights)
    told = correct(found, positions(found))
    assert_allclose(told.means, np.mean(weights * x))
    assert_allclose(told.of_correction, 0.0, atol=1e-20)
    assert_allclose(found.variance, 0.0, atol=1e-20)
    answer = Answer(rounds=(found,), calls=1.0)
    at = np.argsort(x.ravel())
    median = np.interp(0.5, np.cumsum(weights.ravel()[at]) / x.size, x.ravel()[at])
    assert_allclose(answer.quantile(0.5).value, median, atol=5e-3)


def test_surrogates_that_have_learnt_nothing_change_nothing(rng):
    sample, payments = paid_for(rng, outer=True)
    found = round_of(sample, payments)
    others = cross_fit(sample, payments, [V] * FOLDS)
    assert_allclose(others.tilts, 1.0)
    assert_allclose(others.log_evens, found.log_evens)
    assert not others.improves(found)
    before, after = (correct(each, positions(found)) for each in (found, others.apply(found)))
    for one, other in zip(attrs.astuple(before), attrs.astuple(after), strict=True):
        assert_allclose(one, other)


def test_densities_are_over_that_of_the_payments(rng):
    """Evens have mean one under the payments; five standard errors of two thousand of them."""
    _, others = crossed(rng, n=2000, draws=10_000, outer=True)
    evens = np.exp(others.log_evens)
    assert evens.mean() == pytest.approx(1.0, abs=5.0 * evens.std() / np.sqrt(len(evens)))
    assert_allclose(others.tilts.mean(axis=(1, 2)), 1.0)


def answers(learn, repeats=300, outer=False):
    """Return errors of means without and with cross-fitting, and intervals that hold of each."""
    plain, better, hits = [], [], []
    for seed in range(repeats):
        found, others = crossed(np.random.default_rng(seed), learn, outer=outer)
        told = [Answer(rounds=(each,), calls=1.0).mean() for each in (found, others.apply(found))]
        hits.append([low <= SHIFT <= high for low, high in (each.interval() for each in told)])
        plain.append(told[0].value[0] - SHIFT)
        better.append(told[1].value[0] - SHIFT)
    return np.array(plain), np.array(better), np.array(hits).sum(axis=0)


@pytest.mark.parametrize("outer", [False, True])
def test_answers_are_unbiased_and_better_and_their_intervals_hold(outer):
    """300 rounds: bias below four standard errors, intervals of 95 % fail at 1e-4. Surrogates that
    go half of the way leave half of what is to be corrected."""
    plain, better, hits = answers(learn, outer=outer)
    assert abs(bias_in_errors(better)) < 4.0
    assert better.std() < 0.75 * plain.std()
    assert (hits >= fewest_hits(300)).all()


def test_surrogates_that_know_the_payments_they_are_corrected_by_are_refused():
    """What a mutant of :func:`parts_of` would do: each knows U at its own part, and V elsewhere."""

    def cheat(sample, payments, left_out):
        return Shifted(0.0, exact_at=left_out)

    _, better, hits = answers(cheat, repeats=100)
    assert abs(bias_in_errors(better)) > 4.0
    assert hits[1] < fewest_hits(100)


def test_surrogates_gone_wild_are_not_used(rng):
    sample, payments = paid_for(rng)
    found = round_of(sample, payments)
    assert cross_fit(sample, payments, [U] * FOLDS).improves(found)
    assert not cross_fit(sample, payments, [Shifted(-SHIFT)] * FOLDS).improves(found)
    wild = [*[U] * (FOLDS - 1), Shifted(3.0)]
    assert not cross_fit(sample, payments, wild).improves(found)


def test_a_surrogate_may_be_infinite_at_draws_and_payments(rng):
    class Half(Shifted):
        def value(self, q):
            return np.where(q[:, 0] > 0.0, super().value(q), np.inf)

    sample, payments = paid_for(rng)
    found, surrogates = round_of(sample, payments), [Half(SHIFT), *[U] * (FOLDS - 1)]
    others = cross_fit(sample, payments, surrogates)
    told = Answer(rounds=(others.apply(found),), calls=1.0)
    assert np.isfinite(told.mean().value).all()
    assert np.isfinite(told.quantile(0.05).value).all()


def test_rounds_with_little_to_correct_are_left(rng):
    sample, payments = paid_for(rng)
    assert is_worth_it(round_of(sample, payments))
    even = Payments(positions=payments.positions, values=U.value(payments.positions))
    assert not is_worth_it(round_of(sample, even))
    few = Payments(positions=payments.positions[:9], values=payments.values[:9])
    assert not is_worth_it(round_of(sample, few))


def test_quantiles_go_by_tilts(rng):
    """With many payments and surrogates that are right the 5 % quantile is that of the target."""
    sample, payments = paid_for(rng, n=400, draws=20_000, outer=True)
    found = cross_fit(sample, payments, [U] * FOLDS).apply(round_of(sample, payments))
    told = Answer(rounds=(found,), calls=1.0).quantile(0.05)
    assert_allclose(told.value, SHIFT + norm.ppf(0.05), atol=5.0 * told.error[0])
    assert told.error[0] < 0.05
