"""Hamiltonian Monte Carlo: what is given, what is tuned, and how long paths are."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.errors import ConfigurationError
from surrokit.interfaces import ChainState, Tuning
from surrokit_hmc.hmc import HMC, MAX_STEPS
from surrokit_hmc.leapfrog import Leapfrog
from surrokit_hmc.metrics import DenseMetric, IdentityMetric


class Normal:
    dim = 3
    capabilities = frozenset({"gradient", "gradient-alone"})

    def value(self, q):
        return 0.5 * np.square(q).sum(axis=1)

    def gradient(self, q):
        return q.copy()

    def value_and_gradient(self, q):
        return self.value(q), q.copy()


NORMAL = Normal()
TUNING = Tuning(step_size=1.0)


def hmc(**settings):
    return HMC(**{"integrator": Leapfrog(), "metric": IdentityMetric(), **settings})


def kernel(potential=NORMAL, **settings):
    return hmc(**settings).bind(potential, TUNING)


def state(sampler, n=5, seed=0):
    q = np.random.default_rng(seed).standard_normal((n, 3))
    return ChainState(positions=q, values=NORMAL.value(q), cache=sampler.cache(q))


# --- given or tuned ---


@pytest.mark.parametrize(
    ("settings", "free"),
    [
        ({"metric": DenseMetric()}, {"step_size", "n_steps", "metric", "heavy_warp"}),
        ({}, {"step_size", "n_steps"}),
        ({"step_size": 0.1}, {"n_steps"}),
        ({"n_steps": 3}, {"step_size"}),
        ({"step_size": 0.1, "n_steps": 3}, set()),
        ({"step_size": 0.1, "n_steps": 3, "metric": DenseMetric(np.eye(3))}, set()),
    ],
)
def test_what_is_not_given_is_tuned(settings, free):
    assert hmc(**settings).tunes == free


def test_what_is_tuned_is_used():
    covariance = np.diag([4.0, 1.0, 0.25])
    tuned = hmc(metric=DenseMetric()).bind(NORMAL, Tuning(step_size=0.7, covariance=covariance))
    assert tuned.step == 0.7
    assert_allclose(tuned.metric.velocity(np.ones((1, 3))), [[4.0, 1.0, 0.25]])


SPREAD = np.diag([1.0, 9.0, 4.0])


@pytest.mark.parametrize(
    ("settings", "tuning", "steps"),
    [
        ({}, {"step_size": 0.1, "covariance": SPREAD}, math.ceil(0.75 * math.pi * 3.0 / 0.1)),
        ({"randomize": False}, {"step_size": 0.1, "covariance": SPREAD}, 48),
        ({"metric": DenseMetric()}, {"step_size": 0.5, "covariance": SPREAD}, 5),
        ({}, {"step_size": 0.1, "covariance": SPREAD, "learns": True}, 95),
        ({}, {"step_size": 1e-6, "covariance": np.eye(3)}, MAX_STEPS),
        ({}, {"step_size": 1e6, "covariance": np.eye(3)}, 1),
        ({}, {"step_size": 0.1, "covariance": np.eye(3), "n_steps": 1}, 1),
        ({"n_steps": 5}, {"step_size": 0.1, "covariance": np.eye(3), "n_steps": 1}, 5),
        ({"n_steps": 7}, {"step_size": 0.1, "covariance": SPREAD}, 7),
        ({"step_size": 0.1}, {"step_size": 1.0}, 1),
    ],
)
def test_paths_are_as_long_as_given_or_asked_for_or_as_the_widest_direction(
    settings, tuning, steps
):
    assert hmc(**settings).bind(NORMAL, Tuning(**tuning)).max_steps == steps


@pytest.mark.parametrize("name", ["hmc", "nuts", "rmhmc"])
def test_the_same_covariance_is_not_factorised_again(name):
    sampler, covariance = sk.make("sampler", name), np.eye(3)
    first, second = (
        sampler.bind(NORMAL, Tuning(step_size=step, covariance=covariance)) for step in (1.0, 0.5)
    )
    assert first.metric is second.metric


# --- proposals ---


def test_the_correction_is_the_loss_of_kinetic_energy(rng):
    sampler = kernel(step_size=0.4, n_steps=4, randomize=False)
    now = state(sampler)
    proposal = sampler.propose(now, np.random.default_rng(8))
    momenta = sampler.metric.draw(np.random.default_rng(8), 5, 3)
    q, p = now.positions.copy(), momenta.copy()
    for _ in range(4):
        p -= 0.2 * q
        q += 0.4 * p
        p -= 0.2 * q
    assert_allclose(proposal.positions, q)
    kinetic = 0.5 * (np.square(momenta) - np.square(p)).sum(axis=1)
    assert_allclose(proposal.log_correction, kinetic, atol=1e-12)
    assert_allclose(proposal.log_path_ratio, now.values - NORMAL.value(q) + kinetic, atol=1e-12)


# --- what is refused ---


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("step_size", 0.0, "a positive finite number, or None to have it tuned"),
        ("step_size", -0.1, "a positive finite number"),
        ("step_size", np.nan, "a positive finite number"),
        ("n_steps", 0, "a whole number of at least 1"),
        ("n_steps", 2.0, "a whole number of at least 1"),
        ("target_acceptance", 1.0, "a number between 0 and 1"),
        ("target_acceptance", 0.0, "a number between 0 and 1"),
    ],
)
def test_settings_out_of_range_are_refused(name, value, expected):
    with pytest.raises(ConfigurationError, match=f"{name} must be {expected}"):
        hmc(**{name: value})


def test_the_number_of_steps_is_drawn_from_one_to_the_most():
    sampler, rng = kernel(step_size=0.1, n_steps=7), np.random.default_rng(0)
    at = state(sampler)
    lengths = {int(sampler.propose(at, rng).n_steps[0]) for _ in range(200)}
    assert lengths == set(range(1, 8))
    assert {sampler.draw_shared(rng).max_steps for _ in range(200)} == lengths


@pytest.mark.parametrize("step", [0.3, 1.0, 5.0])
def test_a_tuned_path_has_a_random_length_in_equal_steps_of_at_most_the_tuned_one(step, rng):
    sampler = hmc(metric=DenseMetric()).bind(NORMAL, Tuning(step_size=step, covariance=SPREAD))
    drawn = [sampler.draw_shared(rng) for _ in range(500)]
    lengths = np.array([each.step * each.max_steps for each in drawn])
    assert lengths.min() == pytest.approx(0.25 * math.pi, abs=0.02)
    assert lengths.max() == pytest.approx(0.75 * math.pi, abs=0.02)
    for each in drawn:
        assert each.step <= step
        assert each.max_steps == 1 or each.step * each.max_steps / (each.max_steps - 1) > step
        assert each.draw_shared(rng).step == each.step  # it is drawn once for all chains


def test_a_path_takes_the_steps_that_were_cut():
    """Half of pi in steps of at most 0.9: two of a quarter of pi."""
    tuning, step = Tuning(step_size=0.9, covariance=np.eye(3)), 0.25 * math.pi
    sampler = hmc(metric=DenseMetric(), randomize=False).bind(NORMAL, tuning)
    now = state(sampler)
    proposal = sampler.propose(now, np.random.default_rng(8))
    q, p = now.positions.copy(), sampler.metric.draw(np.random.default_rng(8), 5, 3)
    for _ in range(2):
        p = p - 0.5 * step * q
        q = q + step * p
        p = p - 0.5 * step * q
    assert_allclose(proposal.positions, q)


# --- in a run ---


def test_draws_of_a_gaussian_are_nearly_independent_after_tuning():
    scales = np.array([1.0, 1e-4, 1e4])
    target = sk.potential(
        lambda q: 0.5 * (scales * q * q).sum(axis=1), lambda q: scales * q, dim=3, batched=True
    )
    run = sk.sample(target, warmup=500, draws=300, seed=2, progress=False)
    assert run.ess("bulk").min() > 0.4 * 1200
    assert np.median(run.draws.std(axis=(0, 1)) * np.sqrt(scales)) == pytest.approx(1.0, rel=0.15)
