"""Riemannian HMC: what is given, what is tuned, what it costs, and that its draws are exact."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.errors import CapabilityError, ConfigurationError
from surrokit.interfaces import ChainState, Status, Tuning
from surrokit.kernel.kernel import Binding
from surrokit.testing import CountingPotential, Limited
from surrokit.testing.targets import Banana, Gaussian, Mixture
from surrokit_riemannian.rmhmc import MAX_STEPS
from surrokit_riemannian.softabs import OwnMetric

COVARIANCE = np.array([[1.3, 0.5], [0.5, 1.6]])
TUNING = Tuning(step_size=1.0)


def rmhmc(target=None, tuning=TUNING, **settings):
    sampler = sk.make("sampler", "rmhmc", **settings)
    return sampler if target is None else sampler.bind(target, tuning)


def tuned(tuning, **settings):
    return rmhmc(Gaussian(), tuning, **settings)


def state(sampler, target, n=20):
    q = target.sample(np.random.default_rng(0), n)
    return ChainState(positions=q, values=target.value(q), cache=sampler.cache(q))


# --- given or tuned ---


@pytest.mark.parametrize(
    ("settings", "free"),
    [
        ({}, {"step_size", "n_steps", "metric"}),
        ({"metric": "fisher"}, {"step_size", "n_steps"}),
        ({"metric": "hessian", "step_size": 0.1, "n_steps": 3}, set()),
        ({"step_size": 0.1, "n_steps": 3}, {"metric"}),
    ],
)
def test_what_is_not_given_is_tuned(settings, free):
    assert rmhmc(**settings).tunes == free


@pytest.mark.parametrize(("step", "steps"), [(0.5, 3), (0.2, 8), (3.0, 1), (1e-4, MAX_STEPS)])
def test_a_tuned_path_has_length_of_a_quarter_period(step, steps):
    sampler = tuned(Tuning(step_size=step))
    assert sampler.max_steps == steps
    if 1 < steps < MAX_STEPS:
        assert sampler.max_steps * step == pytest.approx(0.5 * math.pi, abs=0.5 * step)


def test_tuning_never_takes_a_step_beyond_two():
    """The implicit midpoint rule accepts at any step on a normal target."""
    assert tuned(Tuning(step_size=1e50)).step == 2.0
    assert tuned(Tuning(step_size=1e50), step_size=3.0).step == 3.0


def test_tuning_may_ask_for_shorter_paths_not_for_longer_ones():
    assert tuned(Tuning(step_size=0.1, n_steps=1)).max_steps == 1
    assert tuned(Tuning(step_size=0.5, n_steps=10)).max_steps == 3
    assert tuned(Tuning(step_size=0.1, n_steps=1), n_steps=4).max_steps == 4


def test_steps_are_a_fixed_number_unless_randomised():
    for randomize, kinds in ((False, {5}), (True, {1, 2, 3, 4, 5})):
        sampler = rmhmc(Gaussian(), step_size=0.2, n_steps=5, randomize=randomize)
        start, rng = state(sampler, Gaussian(), 2), np.random.default_rng(1)
        assert {int(sampler.propose(start, rng).n_steps[0]) for _ in range(60)} == kinds


def test_units_come_from_tuning_and_a_cache_in_others_is_made_anew():
    """By the path of the run: a binding says which cache a kernel is to be given."""
    target = CountingPotential(Mixture())
    moves = Binding(rmhmc(step_size=0.3, n_steps=1), target, 20)
    start = moves.look_up(state(moves, Mixture()))
    moves.learn(COVARIANCE)
    assert_allclose(moves.kernel.metric.covariance, COVARIANCE)
    target.positions.clear()
    renewed = moves.renew(start)
    assert target.positions["value_and_gradient"] == 20
    fresh = moves.kernel.cache(start.positions)
    for name, array in fresh.items():
        assert_array_equal(renewed.cache[name], array)
    assert any((start.cache[name] != array).any() for name, array in fresh.items())
    assert moves.renew(renewed) is renewed  # what is not stale is not paid for


def test_a_metric_without_units_keeps_its_caches():
    moves = Binding(rmhmc(metric="fisher", step_size=0.3, n_steps=1), Gaussian(), 20)
    start = moves.look_up(state(moves, Gaussian()))
    moves.learn(COVARIANCE)
    assert moves.renew(start) is start


# --- proposals ---


def test_log_correction_is_the_loss_of_kinetic_energy_with_its_log_determinant():
    target = Banana()
    sampler = rmhmc(target, metric="fisher", step_size=0.02, n_steps=10)
    start = state(sampler, target)
    proposal = sampler.propose(start, np.random.default_rng(3))
    assert (proposal.status == Status.OK).all()
    # energy is kept on a path of short steps, so what is lost of one kind is won of the other
    won = target.value(proposal.positions) - start.values
    assert np.abs(won).max() > 0.2
    assert_allclose(proposal.log_correction, won, atol=0.01)
    assert_allclose(proposal.log_path_ratio, proposal.log_correction - won, atol=1e-9)


# --- what is refused ---


def test_a_constant_metric_is_for_hmc():
    message = r"rmhmc needs a metric that changes with position, got DenseMetric.*sampler='hmc'"
    with pytest.raises(ConfigurationError, match=message):
        rmhmc(metric="dense")


def test_leapfrog_is_for_hmc():
    message = r"rmhmc needs an integrator for metrics that change with position, got Leapfrog"
    with pytest.raises(ConfigurationError, match=message):
        rmhmc(integrator="leapfrog")


def test_hmc_refuses_what_is_for_rmhmc():
    message = r"hmc needs a metric with one mass matrix for all positions, got SoftAbsMetric, .*"
    with pytest.raises(ConfigurationError, match=message + "sampler='rmhmc'"):
        sk.make("sampler", "hmc", metric="softabs")
    message = r"hmc needs an integrator for one mass matrix, got GeneralizedLeapfrog, .*"
    with pytest.raises(ConfigurationError, match=message + "sampler='rmhmc'"):
        sk.make("sampler", "hmc", integrator="generalized-leapfrog")


# --- what suits a potential ---


def test_without_hessians_an_open_metric_is_the_potential_s_own():
    sampler, own = rmhmc(), frozenset({"gradient", "metric", "metric-derivative"})
    assert sampler.suit(Banana().capabilities, ()) is sampler
    assert sampler.suit(own, ("metric",)) is sampler
    assert sampler.suit(frozenset({"gradient"}), ()) is sampler
    assert isinstance(sampler.suit(own, ()).metric, OwnMetric)


@pytest.mark.long
def test_a_run_on_a_forward_map_learns_the_potential_and_needs_no_metric_named():
    target = sk.forward_potential(
        lambda q: np.array([q[0], q[1] + q[0] ** 2, 0.5 * q[1]]),
        jacobian=lambda q: np.array([[1.0, 0.0], [2.0 * q[0], 1.0], [0.0, 0.5]]),
        data=np.array([0.5, 1.0, 0.2]),
        noise_sd=1.0,
        dim=2,
    )
    settings = {"sampler": "rmhmc", "warmup": 40, "draws": 5, "seed": 1, "progress": False}
    run = sk.sample(target, surrogate=("additive", {"learns": "potential"}), **settings)
    assert run.acceptance.mean() > 0.3
    with pytest.raises(CapabilityError, match="the sampler needs hessian"):
        sk.sample(target, surrogate="additive", **settings)


# --- who explores ---


def test_an_exact_rmhmc_is_too_dear_to_explore_by_default():
    settings = {"sampler": "rmhmc", "surrogate": "quadratic", "draws": 5, "warmup": 60, "seed": 0}
    run = sk.sample(Gaussian(), progress=False, **settings)
    assert run.calls["hessian"] == 0
    assert run.calls["gradient"] > 0
    values = Limited(Gaussian(), frozenset())
    run = sk.sample(values, progress=False, **settings)
    assert run.calls["gradient"] == 0
    run = sk.sample(
        Gaussian(), explorer=("sampler", {"sampler": "rmhmc"}), progress=False, **settings
    )
    assert run.calls["hessian"] > 0
