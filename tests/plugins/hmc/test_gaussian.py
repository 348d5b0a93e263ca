"""Moves on a normal surrogate."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.capabilities import GAUSSIAN
from surrokit.coordinates.parameters import Parameters
from surrokit.errors import CapabilityError, ConfigurationError
from surrokit.interfaces import ChainState, Evaluations, LearningProblem, Status, Tuning
from surrokit.testing.targets import Banana, Gaussian
from surrokit.testing.wrappers import Fenced
from surrokit_hmc.independent import GaussianMoves

TARGET = Gaussian()


def moves(potential=TARGET, tuned=0.5, **settings):
    return GaussianMoves(**settings).bind(potential, Tuning(step_size=tuned))


def started(sampler, n=5, seed=0):
    q = TARGET.sample(np.random.default_rng(seed), n)
    return ChainState(positions=q, values=TARGET.value(q), cache=sampler.cache(q))


def test_the_move_is_the_formula(rng):
    sampler = moves(step_size=0.6)
    now = started(sampler)
    proposal = sampler.propose(now, np.random.default_rng(1))
    z = np.random.default_rng(1).standard_normal((5, 2))
    factor = np.linalg.cholesky(TARGET.covariance)
    expected = TARGET.mean + 0.8 * (now.positions - TARGET.mean) + 0.6 * z @ factor.T
    assert_allclose(proposal.positions, expected)
    assert_allclose(
        proposal.log_correction, TARGET.value(expected) - TARGET.value(now.positions), rtol=1e-9
    )
    assert proposal.log_path_ratio is None
    assert proposal.source is TARGET
    assert proposal.moved.all()
    assert_array_equal(proposal.status, Status.OK)


@pytest.mark.parametrize("step_size", [1.0, 7.0])
def test_from_a_step_size_of_one_on_proposals_are_independent_of_the_start(step_size):
    sampler = moves(step_size=step_size)
    one, other = started(sampler), started(sampler, seed=1)
    first = sampler.propose(one, np.random.default_rng(2))
    second = sampler.propose(other, np.random.default_rng(2))
    assert_array_equal(first.positions, second.positions)
    assert sampler.step == 1.0


def test_the_step_size_is_tuned_unless_given():
    assert GaussianMoves().tunes == {"step_size"}
    assert GaussianMoves(step_size=0.3).tunes == frozenset()
    assert moves(step_size=0.3, tuned=0.7).step == 0.3
    assert moves(tuned=0.7).step == 0.7


def test_an_end_where_the_potential_fails_is_a_status(rng):
    fenced = Fenced(TARGET, 0.5)
    sampler = moves(step_size=1.0, potential=fenced)
    q = np.zeros((50, 2))
    proposal = sampler.propose(
        ChainState(positions=q, values=np.zeros(50), cache=sampler.cache(q)), rng
    )
    outside = np.square(proposal.positions).sum(axis=1) >= 0.25
    assert 0 < outside.sum() < 50
    assert_array_equal(proposal.status == Status.NOT_FINITE, outside)


def test_settings_out_of_range_are_refused():
    with pytest.raises(ConfigurationError, match="step_size must be a positive finite number"):
        moves(step_size=-1.0)
    with pytest.raises(ConfigurationError, match="target_acceptance must be a number between"):
        moves(target_acceptance=1.0)


def test_a_potential_that_is_not_normal_is_refused():
    with pytest.raises(CapabilityError, match="needs gaussian from Banana"):
        moves(potential=Banana())
    with pytest.raises(CapabilityError, match="the sampler needs gaussian from the surrogate"):
        sk.sample(TARGET, sampler="gaussian", surrogate=Banana(), warmup=5, draws=5)


# --- who is normal ---


def fitted_quadratic(dim=3, trend="quadratic"):
    rng = np.random.default_rng(5)
    root = np.tril(rng.standard_normal((dim, dim))) + 2 * np.eye(dim)
    precision, mean = root @ root.T, rng.standard_normal(dim)
    q = rng.standard_normal((80, dim))
    gradients = (q - mean) @ precision
    rows = Evaluations(
        positions=q,
        values=0.5 * ((q - mean) * gradients).sum(axis=1) + 3.0,
        gradients=gradients,
    )
    surrogate = sk.make("surrogate", "quadratic", trend=trend)
    problem = LearningProblem(dim=dim, capabilities=frozenset({"gradient"}))
    learner = surrogate.learner(problem, np.random.default_rng(0))
    learner.observe(rows)
    return learner.fit(), mean, precision


def test_a_fitted_quadratic_knows_its_mean_and_factor():
    fitted, mean, precision = fitted_quadratic()
    assert GAUSSIAN in fitted.capabilities
    assert_allclose(fitted.mean, mean, rtol=1e-4, atol=1e-4)
    assert_allclose(fitted.factor @ fitted.factor.T, np.linalg.inv(precision), rtol=1e-3, atol=1e-5)
    assert_array_equal(np.triu(fitted.factor, 1), 0.0)


def test_bounds_make_a_normal_potential_another(rng):
    def normal(q):
        return 0.5 * q @ q

    bounded = sk.potential(normal, parameters={"a": (0, None)})
    assert GAUSSIAN not in bounded.capabilities
    from surrokit.targets.bounds import BoundedPotential

    fenced = BoundedPotential(TARGET, Parameters.declare({"a": (0, None), "b": None}))
    assert GAUSSIAN not in fenced.capabilities


# --- in a run ---


def skewed(skew, dim=10):
    """A target whose curvature at the mode is the identity: U = (exp(a q) - a q) / a^2."""

    def value(q):
        return ((np.exp(skew * q) - skew * q) / skew**2).sum(axis=1)

    def gradient(q):
        return (np.exp(skew * q) - 1.0) / skew

    return sk.potential(value, gradient, dim=dim, batched=True)


LAPLACE = sk.make("potential", "gaussian", mean=np.zeros(10), covariance=np.eye(10))


def test_where_draws_are_accepted_often_tuning_ends_at_independent_ones():
    run = sk.sample(
        skewed(0.2), sampler="gaussian", surrogate=LAPLACE, warmup=200, draws=50, seed=1,
        progress=False,
    )  # fmt: skip
    assert run.kernel.step == 1.0
    assert 0.6 < run.acceptance.mean() < 0.95
    assert run.calls["value"] <= 4 * 252


def test_where_they_are_accepted_too_rarely_they_are_shortened():
    run = sk.sample(
        skewed(0.3), sampler=("gaussian", {"target_acceptance": 0.85}), surrogate=LAPLACE,
        warmup=400, draws=200, seed=1, progress=False,
    )  # fmt: skip
    assert 0.02 < run.kernel.step < 0.95
    assert run.acceptance.mean() == pytest.approx(0.85, abs=0.07)
    assert len(np.unique(run.kept.step_size)) == 1


def test_on_the_exact_potential_every_draw_is_accepted_and_evaluated_once():
    run = sk.sample(LAPLACE, sampler="gaussian", warmup=60, draws=30, seed=1, progress=False)
    assert_allclose(run.acceptance, 1.0)
    assert run.calls["value"] == 4 * 91
    assert math.isclose(run.kernel.step, 1.0)
