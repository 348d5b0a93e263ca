"""Hamiltonian Monte Carlo: what is given, what is tuned, and how long paths are."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.errors import ConfigurationError
from surrokit.interfaces import ChainState, Status, Tuning
from surrokit_hmc.hmc import HMC, MAX_STEPS, PATH_LENGTH
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


def test_what_is_given_is_not_tuned():
    tuned = hmc(step_size=0.1, n_steps=3).bind(
        NORMAL, Tuning(step_size=9.0, covariance=100 * np.eye(3), n_steps=77)
    )
    assert (tuned.step, tuned.max_steps) == (0.1, 3)
    assert tuned.metric == IdentityMetric()


def test_what_is_tuned_is_used():
    covariance = np.diag([4.0, 1.0, 0.25])
    tuned = hmc(metric=DenseMetric()).bind(NORMAL, Tuning(step_size=0.7, covariance=covariance))
    assert tuned.step == 0.7
    assert_allclose(tuned.metric.velocity(np.ones((1, 3))), [[4.0, 1.0, 0.25]])


def test_tuning_leaves_the_sampler_as_it_is():
    sampler = hmc()
    first = sampler.bind(NORMAL, Tuning(step_size=0.7, n_steps=4))
    second = sampler.bind(NORMAL, Tuning(step_size=0.3, n_steps=2))
    assert (first.step, first.max_steps) == (0.7, 4)
    assert (second.step, second.max_steps) == (0.3, 2)
    assert sampler.step_size is sampler.n_steps is None


def test_without_covariance_the_metric_stays():
    assert hmc(metric=DenseMetric()).bind(NORMAL, Tuning(step_size=1.0)).metric.learnt is None


# --- how long paths are ---


def test_paths_reach_pi_of_the_widest_direction():
    sampler = hmc().bind(NORMAL, Tuning(step_size=0.1, covariance=np.diag([1.0, 9.0, 4.0])))
    assert sampler.max_steps == math.ceil(PATH_LENGTH * 3.0 / 0.1)


def test_paths_reach_as_far_as_they_are_told_to():
    tuning = Tuning(step_size=0.1, covariance=np.diag([1.0, 9.0, 4.0]))
    assert hmc(path_length=5.0).bind(NORMAL, tuning).max_steps == math.ceil(5.0 * 3.0 / 0.1)
    assert hmc(path_length=5.0, n_steps=7).bind(NORMAL, tuning).max_steps == 7


def test_a_metric_that_fits_makes_paths_short():
    sampler = hmc(metric=DenseMetric())
    tuned = sampler.bind(NORMAL, Tuning(step_size=0.5, covariance=np.diag([1.0, 1e4, 4.0])))
    assert tuned.max_steps == math.ceil(PATH_LENGTH / 0.5)


@pytest.mark.parametrize(("step_size", "most"), [(1e-6, MAX_STEPS), (1e6, 1)])
def test_paths_are_neither_endless_nor_empty(step_size, most):
    tuned = hmc().bind(NORMAL, Tuning(step_size=step_size, covariance=np.eye(3)))
    assert tuned.max_steps == most


def test_the_length_follows_the_step_while_the_covariance_stays():
    covariance = np.eye(3)
    sampler = hmc()
    assert sampler.bind(NORMAL, Tuning(step_size=0.5, covariance=covariance)).max_steps == 7
    assert sampler.bind(NORMAL, Tuning(step_size=0.1, covariance=covariance)).max_steps == 32


def test_a_new_covariance_counts():
    sampler = hmc()
    sampler.bind(NORMAL, Tuning(step_size=0.1, covariance=np.eye(3)))
    assert sampler.bind(NORMAL, Tuning(step_size=0.1, covariance=4 * np.eye(3))).max_steps == 63


def test_a_length_that_tuning_asks_for_comes_first():
    assert hmc().bind(NORMAL, Tuning(step_size=0.1, covariance=np.eye(3), n_steps=1)).max_steps == 1


def test_a_number_of_steps_given_comes_before_all():
    tuned = hmc(n_steps=5).bind(NORMAL, Tuning(step_size=0.1, covariance=np.eye(3), n_steps=1))
    assert tuned.max_steps == 5


def test_without_any_tuning_a_path_is_one_step():
    assert kernel(step_size=0.1).max_steps == 1


# --- randomised lengths ---


@pytest.mark.statistical
def test_lengths_are_uniform(rng):
    """Chi-squared with 4 degrees of freedom: 30 is exceeded once in 200,000."""
    sampler = kernel(step_size=0.1, n_steps=5)
    now = state(sampler, n=1)
    lengths = [int(sampler.propose(now, rng).n_steps[0]) for _ in range(2000)]
    counts = np.bincount(lengths, minlength=6)
    assert counts[0] == 0
    assert len(counts) == 6
    assert (np.square(counts[1:] - 400) / 400).sum() < 30


def test_all_chains_share_the_length(rng):
    sampler = kernel(step_size=0.1, n_steps=50)
    for _ in range(5):
        assert len(set(sampler.propose(state(sampler), rng).n_steps)) == 1


def test_lengths_can_be_fixed(rng):
    sampler = kernel(step_size=0.1, n_steps=5, randomize=False)
    for _ in range(5):
        assert_array_equal(sampler.propose(state(sampler), rng).n_steps, 5)


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


def test_proposals_carry_what_was_evaluated(rng):
    sampler = kernel(step_size=0.4, n_steps=4)
    proposal = sampler.propose(state(sampler), rng)
    assert proposal.source is NORMAL
    assert_allclose(proposal.cache["value"], NORMAL.value(proposal.positions))
    assert_allclose(proposal.cache["gradient"], proposal.positions)
    assert proposal.moved.all()
    assert_array_equal(proposal.status, Status.OK)


def test_the_same_generator_gives_the_same_proposal():
    sampler = kernel(step_size=0.4, n_steps=4)
    one, two = (sampler.propose(state(sampler), np.random.default_rng(3)) for _ in range(2))
    assert_array_equal(one.positions, two.positions)


def test_a_path_that_overflows_is_a_status_and_no_warning(rng):
    class Steep(Normal):
        def gradient(self, q):
            return 1e300 * q**3

        def value_and_gradient(self, q):
            return self.value(q), self.gradient(q)

    sampler = kernel(Steep(), step_size=10.0, n_steps=20, randomize=False)
    proposal = sampler.propose(state(sampler), rng)
    assert_array_equal(proposal.status, Status.NOT_FINITE)
    assert not proposal.moved.any()


def test_another_potential_makes_another_kernel():
    sampler, other = hmc(step_size=0.1), Normal()
    first, moved = sampler.bind(NORMAL, TUNING), sampler.bind(other, TUNING)
    assert moved.potential is other
    assert first.potential is NORMAL
    assert moved.step == 0.1


# --- what is refused ---


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("step_size", 0.0, "a positive finite number, or None to have it tuned"),
        ("step_size", -0.1, "a positive finite number"),
        ("step_size", np.nan, "a positive finite number"),
        ("n_steps", 0, "a whole number of at least 1"),
        ("n_steps", 2.0, "a whole number of at least 1"),
        ("shortest", 1.0, "a number of at least 0 and below 1"),
        ("shortest", -0.1, "a number of at least 0 and below 1"),
        ("path_length", 0.0, "a positive finite number"),
        ("target_acceptance", 1.0, "a number between 0 and 1"),
        ("target_acceptance", 0.0, "a number between 0 and 1"),
    ],
)
def test_settings_out_of_range_are_refused(name, value, expected):
    with pytest.raises(ConfigurationError, match=f"{name} must be {expected}"):
        hmc(**{name: value})


def test_the_needs_are_those_of_the_integrator():
    assert hmc().needs == {"gradient"}


@pytest.mark.parametrize(("shortest", "least"), [(0.0, 1), (0.01, 1), (1 / 3, 3), (0.9, 7)])
def test_no_path_is_shorter_than_its_part_of_the_longest(shortest, least):
    sampler, rng = kernel(step_size=0.1, n_steps=7, shortest=shortest), np.random.default_rng(0)
    at = state(sampler)
    lengths = {int(sampler.propose(at, rng).n_steps[0]) for _ in range(200)}
    assert lengths == set(range(least, 8))
    assert {sampler.draw_shared(rng).max_steps for _ in range(200)} == lengths


def test_paths_that_are_not_short_turn_positions_round():
    rng = np.random.default_rng(3)
    correlations = []
    for shortest in (0.0, 1 / 3):
        sampler = kernel(step_size=0.1, n_steps=31, shortest=shortest)
        products = []
        for seed in range(300):
            start = state(sampler, n=50, seed=seed)
            products.append((start.positions * sampler.propose(start, rng).positions).mean())
        correlations.append(np.mean(products))
    # the mean cosine over [0, pi] and over [pi / 3, pi]; standard errors are 0.04 and 0.03
    assert_allclose(correlations, [0.0, -0.41], atol=0.13)


# --- in a run ---


def test_draws_of_a_gaussian_are_nearly_independent_after_tuning():
    scales = np.array([1.0, 1e-4, 1e4])
    target = sk.potential(
        lambda q: 0.5 * (scales * q * q).sum(axis=1), lambda q: scales * q, dim=3, batched=True
    )
    run = sk.sample(target, warmup=500, draws=300, seed=2, progress=False)
    assert run.ess("bulk").min() > 0.4 * 1200
    assert np.median(run.draws.std(axis=(0, 1)) * np.sqrt(scales)) == pytest.approx(1.0, rel=0.15)
