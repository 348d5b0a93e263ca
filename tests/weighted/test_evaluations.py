"""Evaluated draws have their stated density, and surrogates are corrected by new ones."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from known_rounds import bias_in_errors, chains, fewest_hits, positions
from numpy.testing import assert_allclose, assert_array_equal

from surrokit.capabilities import COVARIANCE
from surrokit.interfaces import OuterSample, SurrogateSample
from surrokit.testing.targets import Gaussian
from surrokit.weighted.answer import Answer
from surrokit.weighted.correction import correct
from surrokit.weighted.round import Round
from surrokit.weighted.rounds import (
    FOLDS,
    EvaluatedDraws,
    LookedAt,
    choose,
    cross_fit,
    is_worth_it,
    parts_of,
    predict_variances,
)


def sample_of(rng, outer=True):
    """Return draws about those of a potential, and draws of twice their scale."""
    positions = rng.standard_normal((4, 500, 2))
    away = 2.0 * rng.standard_normal((400, 2))
    far = OuterSample(
        positions=away, values=Gaussian().value(away), chances=lambda _, values: 1.0 + values
    )
    values = Gaussian().value(positions.reshape(-1, 2)).reshape(4, 500)
    return SurrogateSample(positions=positions, values=values, outer=far if outer else None)


def test_half_of_the_payments_lie_farther_out(rng):
    sample = sample_of(rng, outer=False)
    found = choose(sample, 28, rng)
    assert {tuple(each) for each in found.positions} <= set(map(tuple, sample.flat))
    assert_array_equal(found.log_surrogate_weights, 0.0)
    sample = sample_of(rng)
    found = choose(sample, 28, rng)
    assert len(found) == 28
    assert len({tuple(each) for each in found.positions} & set(map(tuple, sample.flat))) == 14
    assert_allclose(found.values, Gaussian().value(found.positions))
    assert_allclose(found.log_surrogate_weights, -np.log(0.5 + 0.5 * (1.0 + found.values)))


def test_weights_are_zero_where_the_target_is():
    far = OuterSample(
        positions=np.zeros((1, 1)), values=np.zeros(1), chances=lambda _, values: values
    )
    values = np.array([1.0, 2.0, np.inf])
    found = EvaluatedDraws(positions=np.zeros((3, 1)), values=values, share=0.5, outer=far)
    got = found.weigh(np.array([0.5, np.inf, np.inf]))
    assert_array_equal(got, [0.5, -np.inf, -np.inf])


class Tilted(Gaussian):
    """The potential of normal draws about 0.5 in the first number."""

    def value(self, positions):
        return super().value(positions) - 0.5 * positions[:, 0]


def test_surrogates_that_know_as_much_have_no_hindsight(rng):
    sample = sample_of(rng)
    evaluations = choose(sample, 28, rng)
    surrogates = [Tilted()] * FOLDS
    density_ratios = cross_fit(sample, evaluations, surrogates).density_ratios
    assert_allclose(
        predict_variances(sample, evaluations, Tilted(), density_ratios), 0.0, atol=1e-25
    )
    assert_allclose(predict_variances(sample, evaluations, Gaussian()), 0.0, atol=1e-25)
    one = predict_variances(sample, evaluations, Tilted())
    plain = np.broadcast_to(LookedAt.of(sample).weights, density_ratios[1:].shape)
    some = np.concatenate([density_ratios[:1], plain])
    found = predict_variances(sample, evaluations, Tilted(), some)
    assert_allclose(found, one * (FOLDS - 1) / FOLDS)


class Expecting(Gaussian):
    """A process about 0.3 above the surrogate's own potential, with a variance of 0.2."""

    capabilities = frozenset({COVARIANCE})

    def value(self, positions):
        return super().value(positions) + 0.3

    def variance(self, positions):
        return np.full(len(positions), 0.2)


def test_a_process_expects_a_mass_by_its_variance(rng):
    looked_at = LookedAt.of(sample_of(rng))
    assert_allclose(looked_at.log_mass(Expecting()), 0.1 - 0.3)
    assert np.isnan(looked_at.log_mass(Gaussian()))


def test_hindsight_is_what_payments_vary_by(rng):
    """Evaluations of a mixture: the mean of (w - e)^2 f^2 over two million of them, to four
    standard errors, is that of the predictive variance times f^2 over the draws; chances have
    mean one under V."""
    positions = rng.standard_normal((8, 1500, 2))
    values = Gaussian().value(positions.reshape(-1, 2)).reshape(8, 1500)
    # of a normal of twice the variance, by V: its density over that of the surrogate
    away = np.sqrt(2.0) * rng.standard_normal((4000, 2))
    far = OuterSample(
        positions=away,
        values=Gaussian().value(away),
        chances=lambda _, values: 0.5 * np.exp(0.5 * values),
    )
    sample = SurrogateSample(positions=positions, values=values, outer=far)
    evaluations = EvaluatedDraws(positions=positions[0], values=values[0], share=0.5, outer=far)
    found = predict_variances(sample, evaluations, Tilted())
    assert found.shape == (8, 2000)
    found = found * np.square(LookedAt.of(sample).positions[..., 0])
    predicted = found.mean()

    n = 1_000_000
    paid = (
        rng.standard_normal((2 * n, 2)) * np.where(np.arange(2 * n) < n, 1.0, np.sqrt(2))[:, None]
    )
    even = 1.0 / (0.5 + 0.5 * far.chances(paid, Gaussian().value(paid)))
    weights = even * np.exp(0.5 * paid[:, 0] - 0.125)
    exact = np.square((weights - even) * paid[:, 0])
    error = np.std(found) / np.sqrt(found.size)
    assert predicted == pytest.approx(exact.mean(), abs=4.0 * error)


@pytest.mark.parametrize(("draws", "most"), [(1, 1), (7, 8), (10, 9), (23, 40), (500, 4000)])
def test_a_round_knows_which_draws_were_looked_at(rng, monkeypatch, draws, most):
    monkeypatch.setattr("surrokit.weighted.rounds.LOOKED_AT", most)
    positions = rng.standard_normal((4, draws, 2))
    values = Gaussian().value(positions.reshape(-1, 2)).reshape(4, draws)
    sample = SurrogateSample(positions=positions, values=values)
    evaluations = EvaluatedDraws(positions=positions[0], values=values[0])
    predictive_variance = predict_variances(sample, evaluations, Tilted())
    assert predictive_variance.size <= max(most, 4)
    found = Round(
        draws=positions,
        evaluated=positions[0],
        log_weights=np.zeros(draws),
        learnt=1,
        looked_at=LookedAt.of(sample).positions,
        predictive_variance=predictive_variance,
    )
    ratios = np.exp(0.5 * found.looked_at[..., 0])
    assert_allclose(predictive_variance, np.square(ratios / ratios.mean() - 1.0), atol=1e-12)


@pytest.mark.parametrize("n", [1, 28, 399, 400])
def test_payments_are_different_draws_however_many(rng, n):
    positions = np.arange(400.0).reshape(4, 100, 1)
    sample = SurrogateSample(positions=positions, values=np.zeros((4, 100)))
    assert len(np.unique(choose(sample, n, rng).positions)) == n


@pytest.mark.statistical
def test_every_draw_is_as_likely_to_be_paid_for(rng):
    """Sums of 20,000 indicators: each within five standard errors, a false alarm below 1e-4."""
    sample = SurrogateSample(positions=np.arange(60.0).reshape(4, 15, 1), values=np.zeros((4, 15)))
    paid = [choose(sample, 7, rng).positions[:, 0] for _ in range(20_000)]
    times = np.bincount(np.concatenate(paid).astype(int), minlength=60)
    errors = np.sqrt(7 / 60 * (1 - 7 / 60) / 20_000)
    assert (np.abs(times / 20_000 - 7 / 60) < 5.0 * errors).all()


# --- cross-fitting ---

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
    """Return draws of V, and evaluations of which half are farther out if so wanted."""
    found = chains(rng, chains=8, draws=draws)
    far = None
    if outer:  # draws of twice the variance, and their density over that of V
        away = np.sqrt(2.0) * rng.standard_normal((400, 1))
        far = OuterSample(
            positions=away,
            values=0.5 * np.square(away[:, 0]),
            chances=lambda _, v: np.sqrt(0.5) * np.exp(0.5 * v),
        )
    sample = SurrogateSample(positions=found, values=0.5 * np.square(found[..., 0]), outer=far)
    return sample, choose(sample, n, rng)


def round_of(sample, evaluations):
    looked_at = LookedAt.of(sample)
    return Round(
        draws=sample.positions,
        looked_at=looked_at.positions,
        looked_at_weights=looked_at.weights,
        evaluated=evaluations.positions,
        log_weights=evaluations.weigh(U.value(evaluations.positions)),
        log_surrogate_weights=evaluations.log_surrogate_weights,
        learnt=100,
    )


def learn(sample, evaluations, left_out):
    """Return a surrogate of all evaluations that are not left out: it takes them for unit normal
    draws of a mean that it estimates by their weights, half of the way from V."""
    kept = ~(evaluations.positions[:, None] == left_out[None]).all(axis=2).any(axis=1)
    weights = np.exp(evaluations.weigh(U.value(evaluations.positions)))[kept]
    return Shifted(0.5 * float(np.average(evaluations.positions[kept, 0], weights=weights)))


def crossed(rng, learn=learn, **options):
    """Return a round as it is, and as surrogates see it that learn from parts of it."""
    sample, evaluations = paid_for(rng, **options)
    found = round_of(sample, evaluations)
    surrogates = [learn(sample, evaluations, each) for each in parts_of(evaluations)]
    return found, cross_fit(sample, evaluations, surrogates)


def test_every_payment_is_in_one_part(rng):
    _, evaluations = paid_for(rng, n=43)
    parts = list(parts_of(evaluations))
    assert [len(each) for each in parts] == [9, 9, 9, 8, 8]
    found = np.concatenate(parts)
    assert_array_equal(np.sort(found, axis=0), np.sort(evaluations.positions, axis=0))
    # each of draws and of draws farther out
    sample, evaluations = paid_for(rng, n=40, outer=True)
    inner = set(sample.flat[:, 0])
    assert [sum(each in inner for each in part[:, 0]) for part in parts_of(evaluations)] == [
        4
    ] * FOLDS


def test_surrogates_that_are_right_leave_nothing_to_correct(rng):
    """The answers are then those of all draws that were looked at, weighted as the target would,
    and of what they say of V taken from its draws."""
    sample, evaluations = paid_for(rng, outer=True)
    found = cross_fit(sample, evaluations, [U] * FOLDS).apply(round_of(sample, evaluations))
    looked_at = LookedAt.of(sample)
    x = looked_at.positions[..., 0]
    weights = looked_at.weights * np.exp(SHIFT * x)
    weights /= weights.mean()
    assert_allclose(found.density_ratio, weights)
    told = correct(found, positions(found))
    plain = sample.positions.mean() - np.mean(looked_at.weights * x)
    assert_allclose(told.means, np.mean(weights * x) + plain)
    assert_allclose(told.of_correction, 0.0, atol=1e-20)
    assert_allclose(found.variance, 0.0, atol=1e-20)
    answer = Answer(rounds=(found,), calls=1.0)
    at = np.argsort(x.ravel())
    median = np.interp(0.5, np.cumsum(weights.ravel()[at]) / x.size, x.ravel()[at])
    assert_allclose(answer.quantile(0.5).value, median, atol=5e-3)


class Ending(Gaussian):
    """A normal potential in one dimension that turns up beyond 1.5, where it may know nothing."""

    dim, steep, reach = 1, 25.0, np.inf

    def value(self, positions):
        beyond = np.maximum(np.abs(positions[:, 0]) - 1.5, 0.0)
        return 0.5 * np.square(positions[:, 0]) + self.steep * np.square(beyond)

    def is_beyond(self, positions):
        return np.abs(positions[:, 0]) > self.reach


class Endless(Ending):
    steep = 0.0


class Unsure(Endless):
    reach = 2.2


@pytest.mark.parametrize(
    ("other", "outer", "right"),
    [(Endless, True, True), (Endless, False, False), (Unsure, True, False)],
)
def test_draws_farther_out_see_that_another_surrogate_goes_on(rng, other, outer, right):
    """Its mean square is one; by draws of V alone it is not, nor where it is not sure of its tails.

    The tolerance is eight standard errors."""
    grid = np.linspace(0.0, 8.0, 40_001)
    heights = Ending().value(grid[:, None])
    logs, wide = -heights - np.log(np.exp(-heights).sum()), -(grid**2) / 4.5
    x = grid[np.searchsorted(np.cumsum(np.exp(logs)), rng.random((8, 1500, 1)))]
    away = 1.5 * rng.standard_normal((4000, 1))
    farther = OuterSample(
        positions=away,
        values=Ending().value(away),
        chances=lambda _, v: np.exp(
            np.interp(v, heights, wide - np.log(np.exp(wide).sum()) - logs)
        ),
    )
    values = Ending().value(x.reshape(-1, 1)).reshape(8, -1)
    sample = SurrogateSample(positions=x, values=values, outer=farther if outer else None)
    looked_at = LookedAt.of(sample)
    squares = np.square(looked_at.positions[..., 0]) * looked_at.compare(other())[0]
    assert (abs(squares.mean() - 1.0) < 0.1) == right


def test_surrogates_that_have_learnt_nothing_change_nothing(rng):
    sample, evaluations = paid_for(rng, outer=True)
    found = round_of(sample, evaluations)
    others = cross_fit(sample, evaluations, [V] * FOLDS)
    assert_allclose(others.density_ratios, [found.looked_at_weights] * FOLDS)
    assert_allclose(others.log_surrogate_weights, found.log_surrogate_weights)
    assert not others.improves(found)
    before, after = (correct(each, positions(found)) for each in (found, others.apply(found)))
    for one, other in zip(attrs.astuple(before), attrs.astuple(after), strict=True):
        assert_allclose(one, other)


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


@pytest.mark.parametrize("outer", [pytest.param(False, marks=pytest.mark.long), True])
def test_answers_are_unbiased_and_better_and_their_intervals_hold(outer):
    """300 rounds: bias below four standard errors, intervals of 95 % fail at 1e-4. Surrogates that
    go half of the way leave half of what is to be corrected."""
    plain, better, hits = answers(learn, outer=outer)
    assert abs(bias_in_errors(better)) < 4.0
    assert better.std() < 0.75 * plain.std()
    assert (hits >= fewest_hits(300)).all()


def test_surrogates_that_know_the_payments_they_are_corrected_by_are_refused():
    """What a mutant of :func:`parts_of` would do: each knows U at its own part, and V elsewhere."""

    def cheat(sample, evaluations, left_out):
        return Shifted(0.0, exact_at=left_out)

    _, better, hits = answers(cheat, repeats=100)
    assert abs(bias_in_errors(better)) > 4.0
    assert hits[1] < fewest_hits(100)


def test_surrogates_gone_wild_are_not_used(rng):
    sample, evaluations = paid_for(rng)
    found = round_of(sample, evaluations)
    assert cross_fit(sample, evaluations, [U] * FOLDS).improves(found)
    assert not cross_fit(sample, evaluations, [Shifted(-SHIFT)] * FOLDS).improves(found)
    wild = [*[U] * (FOLDS - 1), Shifted(3.0)]
    assert not cross_fit(sample, evaluations, wild).improves(found)


@pytest.mark.parametrize(
    ("mean", "n", "is_used"), [(0.5, 20, False), (0.25, 20, True), (0.5, 40, True)]
)
def test_a_small_round_takes_no_surrogates_that_change_much(rng, mean, n, is_used):
    """Ratios of densities have the variances .28 and .06; twenty draws see no tail of one."""
    sample, evaluations = paid_for(rng, n=n)
    others = cross_fit(sample, evaluations, [Shifted(mean)] * FOLDS)
    assert others.spread == pytest.approx(np.exp(mean**2) - 1.0, rel=0.2)
    assert others.improves(round_of(sample, evaluations)) == is_used


def test_a_surrogate_may_be_infinite_at_draws_and_payments(rng):
    class Half(Shifted):
        def value(self, q):
            return np.where(q[:, 0] > 0.0, super().value(q), np.inf)

    sample, evaluations = paid_for(rng)
    found, surrogates = round_of(sample, evaluations), [Half(SHIFT), *[U] * (FOLDS - 1)]
    others = cross_fit(sample, evaluations, surrogates)
    told = Answer(rounds=(others.apply(found),), calls=1.0)
    assert np.isfinite(told.mean().value).all()
    assert np.isfinite(told.quantile(0.05).value).all()


def test_rounds_with_little_to_correct_are_left(rng):
    sample, evaluations = paid_for(rng)
    assert is_worth_it(round_of(sample, evaluations))
    even = EvaluatedDraws(positions=evaluations.positions, values=U.value(evaluations.positions))
    assert not is_worth_it(round_of(sample, even))
    few = EvaluatedDraws(positions=evaluations.positions[:9], values=evaluations.values[:9])
    assert not is_worth_it(round_of(sample, few))
