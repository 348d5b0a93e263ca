"""Payments: as likely as told, and none twice."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.interfaces import OuterSample, SurrogateSample
from surrokit.testing.targets import Gaussian
from surrokit.weighted.round import Round, thin_as
from surrokit.weighted.rounds import FOLDS, Payments, _thin, choose, cross_fit, look_back


def sample_of(rng, outer=True):
    """Return draws about those of a potential, and draws of twice their scale."""
    positions = rng.standard_normal((4, 500, 2))
    far = OuterSample(
        positions=2.0 * rng.standard_normal((400, 2)), chances=lambda values: 1.0 + values
    )
    values = Gaussian().value(positions.reshape(-1, 2)).reshape(4, 500)
    return SurrogateSample(positions=positions, values=values, outer=far if outer else None)


def test_half_of_the_payments_lie_farther_out(rng):
    sample = sample_of(rng, outer=False)
    found = choose(sample, Gaussian(), 28, rng)
    assert {tuple(each) for each in found.positions} <= set(map(tuple, sample.flat))
    assert_array_equal(found.log_evens, 0.0)
    sample = sample_of(rng)
    found = choose(sample, Gaussian(), 28, rng)
    assert len(found) == 28
    assert len({tuple(each) for each in found.positions} & set(map(tuple, sample.flat))) == 14
    assert_allclose(found.values, Gaussian().value(found.positions))
    assert_allclose(found.log_evens, -np.log(0.5 + 0.5 * (1.0 + found.values)))


def test_weights_are_zero_where_the_target_is():
    far = OuterSample(positions=np.zeros((1, 1)), chances=lambda values: values)
    values = np.array([1.0, 2.0, np.inf])
    found = Payments(positions=np.zeros((3, 1)), values=values, share=0.5, outer=far)
    got = found.weigh(np.array([0.5, np.inf, np.inf]))
    assert_array_equal(got, [0.5, -np.inf, -np.inf])


class Tilted(Gaussian):
    """The potential of normal draws about 0.5 in the first number."""

    def value(self, positions):
        return super().value(positions) - 0.5 * positions[:, 0]


def test_surrogates_that_know_as_much_have_no_hindsight(rng):
    sample = sample_of(rng)
    payments = choose(sample, Gaussian(), 28, rng)
    surrogates = [Tilted()] * FOLDS
    tilts = cross_fit(sample, payments, surrogates).tilts
    assert_allclose(look_back(sample, payments, Tilted(), tilts), 0.0, atol=1e-25)
    assert_allclose(look_back(sample, payments, Gaussian()), 0.0, atol=1e-25)
    one = look_back(sample, payments, Tilted())
    some = np.concatenate([tilts[:1], np.ones_like(tilts[1:])])
    found = look_back(sample, payments, Tilted(), some)
    assert_allclose(found, one * (FOLDS - 1) / FOLDS)


def test_hindsight_is_what_payments_vary_by(rng):
    """Payments of a mixture: the mean of (w - e)^2 f^2 over two million of them, to four standard
    errors, is that of hindsight times f^2 over the draws; chances have mean one under V."""
    positions = rng.standard_normal((8, 1500, 2))
    values = Gaussian().value(positions.reshape(-1, 2)).reshape(8, 1500)
    # of a normal of twice the variance, by V: its density over that of the surrogate
    far = OuterSample(positions=np.zeros((1, 2)), chances=lambda values: 0.5 * np.exp(0.5 * values))
    sample = SurrogateSample(positions=positions, values=values, outer=far)
    payments = Payments(positions=positions[0], values=values[0], share=0.5, outer=far)
    found = look_back(sample, payments, Tilted())
    assert found.shape == (8, 1500)
    foretold = np.mean(found * np.square(positions[..., 0]))

    n = 1_000_000
    paid = (
        rng.standard_normal((2 * n, 2)) * np.where(np.arange(2 * n) < n, 1.0, np.sqrt(2))[:, None]
    )
    even = 1.0 / (0.5 + 0.5 * far.chances(Gaussian().value(paid)))
    weights = even * np.exp(0.5 * paid[:, 0] - 0.125)
    exact = np.square((weights - even) * paid[:, 0])
    error = np.std(found * np.square(positions[..., 0])) / np.sqrt(found.size)
    assert foretold == pytest.approx(exact.mean(), abs=4.0 * error)


def test_a_later_surrogate_looks_at_a_part_of_many_draws(rng, monkeypatch):
    monkeypatch.setattr("surrokit.weighted.rounds.LOOKED_AT", 700)
    sample = sample_of(rng)
    found = look_back(sample, choose(sample, Gaussian(), 28, rng), Tilted())
    assert found.shape == (4, 167)
    exact = np.exp(0.5 * sample.positions[:, ::3, 0])
    even = np.exp(choose(sample, Gaussian(), 28, rng).log_evens_at(sample.values[:, ::3]))
    assert_allclose(found, even * np.square(exact / exact.mean() - 1.0))


@pytest.mark.parametrize(("draws", "most"), [(1, 1), (7, 8), (10, 9), (23, 40), (500, 4000)])
def test_a_round_knows_which_draws_were_looked_at(rng, monkeypatch, draws, most):
    monkeypatch.setattr("surrokit.weighted.rounds.LOOKED_AT", most)
    positions = rng.standard_normal((4, draws, 2))
    values = Gaussian().value(positions.reshape(-1, 2)).reshape(4, draws)
    sample = SurrogateSample(positions=positions, values=values)
    payments = Payments(positions=positions[0], values=values[0])
    hindsight = look_back(sample, payments, Tilted())
    assert hindsight.size <= max(most, 4)
    found = Round(
        draws=positions,
        paid=positions[0],
        log_weights=np.zeros(draws),
        learnt=1,
        hindsight=hindsight,
    )
    ratios = np.exp(0.5 * thin_as(found.hindsight, positions)[..., 0])
    assert_allclose(hindsight, np.square(ratios / ratios.mean() - 1.0), atol=1e-12)


def test_thinned_draws_are_different_however_many(rng):
    for n in (1, 28, 100, 399, 400):
        assert len(np.unique(_thin(400, n, rng))) == n


@pytest.mark.statistical
def test_every_draw_is_as_likely_to_be_paid_for(rng):
    """Sums of 20,000 indicators: each within five standard errors, a false alarm below 1e-4."""
    times = np.bincount(np.concatenate([_thin(60, 7, rng) for _ in range(20_000)]), minlength=60)
    errors = np.sqrt(7 / 60 * (1 - 7 / 60) / 20_000)
    assert (np.abs(times / 20_000 - 7 / 60) < 5.0 * errors).all()


def test_many_payments_among_few_draws_are_all_different():
    run = sk.sample(
        "gaussian",
        sampler="sub-chain",
        surrogate="additive",
        explorer="rounds",
        correction=("weights", {"least": 400, "effective": 4000}),
        max_calls=1000,
        seed=1,
        progress=False,
    )
    assert len(run.answer.rounds) == 2
    for each in run.answer.rounds:
        assert len(each) >= 400
        assert len(np.unique(each.paid, axis=0)) == len(each)
    assert run.draws[..., 0].size == sum(map(len, run.answer.rounds))
