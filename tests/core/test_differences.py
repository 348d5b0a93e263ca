"""Gradients made of differences of values: what they are, and what they cost."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import ConfigurationError
from surrokit.model.model import calls_per_gradient
from surrokit.targets.differences import LEAST_GRADIENTS, MOST_DIM, Differences, suits_differences
from surrokit.testing import check_potential
from surrokit.testing.targets import Banana, Gaussian

LEARNT = {"sampler": "sub-chain", "surrogate": "additive", "seed": 1, "progress": False}


class Values:
    """Values alone of a target."""

    dim, capabilities = 2, frozenset()

    def __init__(self, target=None):
        self.target = target or Banana()

    def value(self, positions):
        return self.target.value(positions)


def by_differences(value):
    return sk.potential(value, gradient="differences", dim=2)


def test_differences_are_the_gradient_and_count_as_their_values():
    positions = Banana().sample(np.random.default_rng(0), 50)
    recording = RecordingPotential(Differences(Values()), keep=False)
    values, gradients = recording.value_and_gradient(positions)
    exact, slopes = Banana().value_and_gradient(positions)
    assert_allclose(values, exact)
    assert_allclose(gradients, slopes, rtol=1e-5, atol=1e-6)
    assert {kind: n for kind, n in recording.calls.items() if n} == {"value": 50 * (2 * 2 + 1)}
    assert calls_per_gradient(recording) == 5
    assert calls_per_gradient(RecordingPotential(Gaussian(), keep=False)) == 1


def test_what_the_potential_offers_besides_is_passed_on():
    matrix = np.array([[1.0, 2.0], [0.0, 1.0], [3.0, -1.0]])
    target = sk.forward_potential(lambda q: matrix @ q, data=[1.0, 2.0, 3.0], noise_sd=0.5, dim=2)
    results = check_potential(lambda: Differences(target))
    assert [result.message for result in results if result.outcome == "failed"] == []
    assert "check_energy" in {result.name.partition("[")[0] for result in results}


def fails_beyond(q):
    if abs(q[0]) > 1.0:
        raise ValueError("no solution")
    return 0.5 * q @ q


def test_beside_what_fails_differences_are_those_to_the_other_side():
    recording = RecordingPotential(by_differences(fails_beyond), keep=False)
    positions = np.array([[1.0, 2.0], [-1.0, 0.0], [0.5, 0.0]])
    values, gradients = recording.value_and_gradient(positions)
    beyond = recording.value_and_gradient(np.array([[3.0, 2.0]]))
    assert_allclose(values, 0.5 * np.square(positions).sum(axis=1))
    assert_allclose(gradients, positions, atol=2e-4)  # one side is half a step off
    assert_allclose(gradients[2], positions[2], atol=1e-8)
    assert np.isinf(beyond[0]).all()
    assert np.isnan(beyond[1]).all()


@pytest.mark.parametrize(("outside", "first"), [(np.inf, 1.0), (np.nan, np.nan)])
def test_at_the_border_of_the_support_too_and_between_two_that_fail_there_is_none(outside, first):
    inside = (lambda x: x <= 1.0) if outside == np.inf else (lambda x: x == 1.0)
    target = by_differences(lambda q: 0.5 * q @ q if inside(q[0]) else outside)
    gradients = target.value_and_gradient(np.array([[1.0, 2.0]]))[1]
    assert_allclose(gradients, [[first, 2.0]], atol=2e-4)


def test_names_and_bounds_are_those_of_the_target():
    target = sk.potential(
        lambda q: q[0] - np.log(q[0]), gradient="differences", parameters={"rate": (0, None)}
    )
    run = sk.sample(target, sampler="hmc", warmup=100, draws=300, seed=2, progress=False)
    assert run.labels == ["rate"]
    assert (run["rate"] > 0).all()
    assert abs(run["rate"].mean() - 2.0) < 0.3  # Gamma(2, 1)
    assert {kind for kind, n in run.calls.items() if n} == {"value"}


def test_where_there_is_nothing_to_make_of_differences():
    with pytest.raises(ConfigurationError, match="nothing to make of differences; leave gradient="):
        Differences(Gaussian())
    with pytest.raises(ConfigurationError, match="gradient"):
        sk.potential(lambda q: q @ q, gradient="numbers", dim=2)


def test_they_are_taken_by_themselves_for_values_alone_few_dimensions_and_enough_calls():
    assert suits_differences(Values())
    assert not suits_differences(Gaussian())
    assert suits_differences(sk.potential(lambda q: q @ q, dim=MOST_DIM))
    assert not suits_differences(sk.potential(lambda q: q @ q, dim=MOST_DIM + 1))
    few = LEAST_GRADIENTS * 5
    assert suits_differences(Values(), few)
    assert not suits_differences(Values(), few - 1)


@pytest.mark.parametrize(
    ("explorer", "by_gradients"),
    [("rounds", True), (("rounds", {"batch": 30}), False)],
)
@pytest.mark.long
def test_rounds_that_are_left_to_themselves_take_differences(explorer, by_gradients):
    schedule = sk.Safety(repairs=0)
    settings = {**LEARNT, "explorer": explorer, "schedule": schedule, "warmup": 60, "draws": 5}
    run = sk.sample(Values(Gaussian()), **settings)
    assert (run.modes is not None) == by_gradients


@pytest.mark.statistical
@pytest.mark.long
def test_values_alone_are_enough():
    """Each mean within five standard errors: a false alarm in a million."""
    run = sk.sample(Values(Gaussian()), seed=1, progress=False)
    assert "by differences of values" in run.choice
    assert run.verdict.sound, run.verdict
    error = np.sqrt(np.diag(Gaussian().covariance) / run.ess())
    assert (np.abs(run.draws.mean(axis=(0, 1)) - Gaussian().mean) < 5 * error).all()


@pytest.mark.statistical
@pytest.mark.long
def test_values_that_take_no_time_are_saved_all_the_same():
    """Each mean within five standard errors: a false alarm in a million.

    By seconds alone plain HMC would be better than a surrogate, for ten times as many values.
    """
    sd, slope = 1e4, -0.015  # as of an intercept and a slope: 0.998 correlated
    covariance = ((sd**2, slope * sd**2), (slope * sd**2, (slope * sd) ** 2 + 100.0))
    valley = Gaussian(mean=(-6e4, 1300.0), covariance=covariance)
    target = sk.potential(valley.value, dim=2, batched=True)
    run = sk.sample(target, seed=2, draws=200, progress=False)
    assert run.verdict.sound, run.verdict
    error = np.sqrt(np.diag(valley.covariance) / run.ess())
    assert (np.abs(run.draws.mean(axis=(0, 1)) - valley.mean) < 5 * error).all()
    assert run.acceptance.mean() > 0.9
    assert run.calls["value"] < 2500


# --- to one side ---


def test_differences_to_one_side_are_corrected_by_curvatures():
    curvatures = np.array([4.0, 0.25])
    target = by_differences(lambda q: 0.5 * curvatures @ q**2)
    positions = np.array([[1.0, 2.0], [-0.5, 3.0]])
    recording = RecordingPotential(target, keep=True)
    found = recording.one_sided(curvatures).value_and_gradient(positions)[1]
    assert_allclose(found, positions * curvatures, rtol=1e-7)
    plain = RecordingPotential(target, keep=True).one_sided(None).value_and_gradient(positions)[1]
    assert not np.allclose(plain, positions * curvatures, rtol=1e-7, atol=0.0)
    assert_allclose(plain, positions * curvatures, rtol=1e-4)
    assert recording.n_calls == 2 * (2 + 1)
    assert_allclose(recording.drain().gradients, found)


def test_to_one_side_differences_turn_back_from_what_fails():
    recording = RecordingPotential(by_differences(fails_beyond), keep=False)
    positions = np.array([[1.0, 2.0], [-1.0, 0.0]])
    values, gradients = recording.one_sided(np.ones(2)).value_and_gradient(positions)
    assert_allclose(values, [2.5, 0.5])
    assert_allclose(gradients, positions, atol=1e-6)
    assert recording.n_calls == 2 * 3 + 1


class Dear(Gaussian):
    """A potential of one's own whose gradients pay for five calls."""

    calls_per_gradient = 5


def test_an_own_potential_with_dear_gradients_needs_no_one_sided_ones():
    run = sk.sample(Dear(), explorer="rounds", warmup=50, draws=20, **LEARNT)
    assert run.draws.shape == (4, 20, 2)
