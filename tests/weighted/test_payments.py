"""Payments: as likely as told, and none twice."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.contracts.sampler import OuterSample, SurrogateSample
from surrokit.testing.targets.densities import Gaussian
from surrokit.weighted.payments import Payments, _thin, choose


def sample_of(rng, outer=True):
    """Return draws about those of a potential, and draws of twice their scale."""
    positions = rng.standard_normal((4, 500, 2))
    far = OuterSample(
        positions=2.0 * rng.standard_normal((400, 2)), chances=lambda values: 1.0 + values
    )
    values = Gaussian().value(positions.reshape(-1, 2)).reshape(4, 500)
    return SurrogateSample(positions=positions, values=values, outer=far if outer else None)


def test_half_of_the_payments_lie_farther_out(rng):
    sample = sample_of(rng)
    found = choose(sample, Gaussian(), 28, rng)
    assert len(found) == 28
    assert len({tuple(each) for each in found.positions} & set(map(tuple, sample.flat))) == 14
    assert_allclose(found.values, Gaussian().value(found.positions))
    assert_allclose(found.log_evens, -np.log(0.5 + 0.5 * (1.0 + found.values)))


def test_without_draws_farther_out_all_are_the_surrogates(rng):
    sample = sample_of(rng, outer=False)
    found = choose(sample, Gaussian(), 28, rng)
    assert {tuple(each) for each in found.positions} <= set(map(tuple, sample.flat))
    assert_allclose(found.values, Gaussian().value(found.positions))
    assert_array_equal(found.log_evens, 0.0)


def test_weights_are_zero_where_the_target_is():
    found = Payments(
        positions=np.zeros((3, 1)),
        values=np.array([1.0, 2.0, np.inf]),
        log_evens=np.array([0.5, 0.0, -np.inf]),
    )
    got = found.weigh(np.array([0.5, np.inf, np.inf]))
    assert_array_equal(got, [1.0, -np.inf, -np.inf])


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
