"""Means of functions under the target, and draws of equal weight."""

from __future__ import annotations

import warnings

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.diagnostics import mean_error
from surrokit.errors import ConfigurationError, SamplingWarning, ShapeError
from surrokit.result.verdict import judge
from surrokit.testing.targets import Gaussian


def draw(**options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)
        return sk.sample(Gaussian(), seed=2, progress=False, **options)


@pytest.fixture(scope="module")
def exact():
    return draw(sampler="hmc", chains=3, warmup=100, draws=60)


@pytest.fixture(scope="module")
def weighted():
    few = {"chains": 8, "warmup": 60, "effective": 400}
    parts = {"sampler": "hmc", "surrogate": "quadratic", "explorer": "rounds"}
    return draw(**parts, correction=("weights", few), max_calls=150)


@pytest.fixture(scope="module")
def empty():
    return draw(sampler="hmc", chains=3, max_calls=2)


def test_exact_draws_are_averaged(exact):
    found = exact.expectation(lambda q: q[0] ** 2)
    squares = np.square(exact.draws[..., :1])
    assert found.value == pytest.approx(squares.mean())
    assert found.error == pytest.approx(mean_error(squares)[0])
    assert found.effective == pytest.approx(squares.var() / found.error**2)
    assert found.calls == exact.total_calls
    low, high = found.interval()
    assert high - found.value == pytest.approx(1.96 * found.error, rel=1e-3)
    assert found.value - low == pytest.approx(1.96 * found.error, rel=1e-3)


def test_weighted_draws_are_corrected(weighted):
    found = weighted.expectation(lambda q: q)
    assert_allclose(found.value, weighted.summary()["mean"])
    assert_allclose(found.error, weighted.summary()["mcse"])
    assert found.calls == weighted.total_calls
    assert np.ndim(weighted.expectation(lambda q: q[0]).value) == 0


@pytest.mark.parametrize("run", ["exact", "weighted"])
def test_batches_say_the_same(run, request):
    run = request.getfixturevalue(run)
    one = run.expectation(lambda q: np.sin(q))
    many = run.expectation(np.sin, batched=True)
    assert_allclose(many.value, one.value)
    assert_allclose(many.error, one.error)
    flat = run.expectation(lambda q: np.sin(q[:, 0]), batched=True)
    assert np.ndim(flat.value) == 0
    assert flat.value == pytest.approx(one.value[0])


def test_few_answers_are_told_of(weighted, monkeypatch):
    assert not judge(weighted).named("effective_draws")
    monkeypatch.setattr(sk.Run, "ess", lambda self: np.array([400.0, 50.0]))
    (finding,) = judge(weighted).named("effective_draws")
    assert finding.message.startswith("the answers about 'q[1]' are worth 50 independent draws")


def test_a_constant_is_known(exact, weighted):
    found = weighted.expectation(lambda q: 3.0)
    assert (found.value, found.error) == (3.0, 0.0)
    # plain draws cannot tell it from what they have never seen change
    found = exact.expectation(lambda q: 3.0)
    assert found.value == 3.0
    assert np.isnan(found.error)


@pytest.mark.parametrize(
    ("function", "batched", "message"),
    [
        (lambda q: np.nan, False, "returned NaN at some draws; give it a value there"),
        (lambda q: np.ones((2, 2)), False, "a number or a vector for each position"),
        (lambda q: np.ones(3), True, r"got an array of shape \(3,\) .* see batched="),
        (lambda q: "far", False, "must return a number, or a vector of one length"),
        (lambda q: [1.0] * (1 + (q[0] > 0)), False, "must return a number, or a vector of one"),
        (lambda q: None, False, "NaN|must return a number"),
    ],
)
def test_functions_that_return_something_else_are_refused(exact, function, batched, message):
    with pytest.raises(ShapeError, match=message):
        exact.expectation(function, batched=batched)


def test_without_draws_there_is_no_mean(empty):
    assert empty.draws.shape[1] == 0
    with pytest.raises(ConfigurationError, match="there are no draws to take a mean over"):
        empty.expectation(lambda q: q)
    with pytest.raises(ConfigurationError, match="there must be draws, got n=3 and 0 draws"):
        empty.resampled(3)


@pytest.mark.parametrize("n", [0, -1, 2.5, True, None])
def test_a_number_of_draws_is_whole(exact, n):
    with pytest.raises(ConfigurationError, match="n must be a whole number of at least 1"):
        exact.resampled(n)


def test_a_seed_is_a_whole_number(exact):
    with pytest.raises(ConfigurationError, match="seed must be a whole number of at least 0"):
        exact.resampled(10, rng="a")


@pytest.mark.parametrize("run", ["exact", "weighted"])
def test_draws_of_equal_weight_are_among_the_draws(run, request):
    run = request.getfixturevalue(run)
    found = run.resampled(20, 4)
    assert_array_equal(found, run.resampled(20, np.random.default_rng(4)))
    among = {tuple(q) for q in run.draws.reshape(-1, 2)}
    assert {tuple(q) for q in found} <= among


@pytest.mark.statistical
def test_draws_of_equal_weight_follow_the_weights(weighted):
    """The mean of 40,000, in each of two numbers within 4.5 errors: a false alarm at 2e-5."""
    answer = weighted.answer
    rounds = [
        attrs.evolve(each, log_weights=each.log_weights + each.evaluated[:, 0])
        for each in answer.rounds
    ]
    answer = attrs.evolve(answer, rounds=tuple(rounds))  # now the surrogate is no good
    weighted = attrs.evolve(weighted, weights=attrs.evolve(weighted.weights, answer=answer))
    flat, weights = weighted.draws.reshape(-1, 2), np.exp(weighted.log_weights).ravel()
    assert weights.std() > 0.1
    mean = weights @ flat / weights.sum()
    found = weighted.resampled(40_000, 1)
    error = np.sqrt(weights @ np.square(flat - mean) / weights.sum() / 40_000)
    assert (np.abs(found.mean(axis=0) - mean) < 4.5 * error).all()
    assert (np.abs(flat.mean(axis=0) - mean) > 4.5 * error).any()


def test_the_evidence_takes_exact_draws_or_weighted_answers(exact):
    with pytest.raises(ConfigurationError, match="this run has none; give it more calls"):
        attrs.evolve(exact, unchecked="draws of a surrogate").log_evidence()


@pytest.mark.statistical
def test_the_normalising_constant_of_a_normal_is_known(weighted):
    """One interval at 1e-4."""
    target = Gaussian()
    covariance = np.linalg.inv(target.hessian(np.zeros((1, 2)))[0])
    truth = np.log(2.0 * np.pi) + 0.5 * np.linalg.slogdet(covariance)[1]
    low, high = weighted.log_evidence().interval(1.0 - 1e-4)
    assert low < truth < high
    assert high - low < 0.5
