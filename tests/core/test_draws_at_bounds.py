"""Densities that are infinite at a bound, and penalties at the edge of a support."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy import stats

import surrokit as sk
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import SamplingWarning, TargetError
from surrokit.limits import are_penalties

QUIET = pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")


def beta(a, b):
    def value(q):
        with np.errstate(divide="ignore"):
            return -(a - 1) * np.log(q[:, 0]) - (b - 1) * np.log1p(-q[:, 0])

    def gradient(q):
        with np.errstate(divide="ignore"):
            return -(a - 1) / q + (b - 1) / (1 - q)

    return sk.potential(value, gradient, parameters={"p": (0, 1)}, batched=True)


@pytest.mark.statistical
@pytest.mark.parametrize("sampler", ["hmc", "random-walk"])
def test_a_density_that_is_infinite_at_both_bounds_does_not_hold_chains(sampler):
    """Beta(1/2, 1/2); |z| of P(p < 0.9) above 4 once in 16,000, ESS as reported."""
    run = sk.sample(beta(0.5, 0.5), sampler=sampler, warmup=400, draws=1000, seed=3, progress=False)
    below = run.draws < 0.9
    p = stats.beta(0.5, 0.5).cdf(0.9)
    ess = sk.diagnostics.effective_sample_size(below.astype(float))[0]
    assert abs(below.mean() - p) / np.sqrt(p * (1 - p) / ess) < 4
    assert ((run.draws > 0) & (run.draws < 1)).all()
    assert run.failures == run.broken_gradients.count  # 1 / p overflows at the least number


@pytest.mark.filterwarnings("ignore:at .* positions:surrokit.errors.SamplingWarning")
@pytest.mark.filterwarnings("ignore:.* diverged:surrokit.errors.SamplingWarning")
def test_draws_that_cannot_be_told_from_a_bound_are_told_of_unless_it_is_zero():
    """Beta(1/20, 1/20) has 8 % of its probability beyond the last number below 1.

    Beta(1/20, 4) is as steep at 0, where numbers are dense.
    """
    settings = {"sampler": "hmc", "draws": 200, "seed": 1, "progress": False}
    message = "of 'p' lie within 1000 floating-point numbers of its bound 1"
    with pytest.warns(SamplingWarning, match=message):
        sk.sample(beta(0.05, 0.05), warmup=200, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SamplingWarning)
        warnings.filterwarnings("ignore", "R-hat is|the draws of|at .* positions", SamplingWarning)
        sk.sample(beta(0.05, 4.0), warmup=300, **settings)


def test_an_infinite_density_is_refused_and_counted_and_no_chain_starts_there():
    target = sk.potential(lambda q: -np.inf if q[0] > 1 else q[0] ** 2, dim=1)
    recording = RecordingPotential(target, keep=False)
    values = recording.value(np.array([[2.0], [0.5]]))
    np.testing.assert_array_equal(values, [np.inf, 0.25])
    assert recording.failures == 1
    with pytest.raises(TargetError, match="at the start of chain 0"):
        sk.sample(target, sampler="random-walk", initial=[2.0], seed=1, progress=False)


# --- very large potentials are the edge of a support, as an infinite one is ---


def box(outside, slopes=False):
    """Return a normal density that is cut off, with a log density beyond that is as given."""

    def log_density(q):
        if q[0] < 0.0 or abs(q[1]) > 3.0:
            return outside
        return -0.5 * (q[0] - 1.0) ** 2 - 0.5 * q[1] ** 2

    gradient = (lambda q: np.array([1.0 - q[0], -q[1]])) if slopes else None
    return sk.potential(log_density=log_density, gradient=gradient, dim=2)


@QUIET
@pytest.mark.parametrize("sampler", ["random-walk", "hmc"])
@pytest.mark.parametrize("outside", [-1e100, -1e30])
def test_a_penalty_outside_the_support_makes_the_draws_of_an_infinite_one(sampler, outside):
    options = {"sampler": sampler, "seed": 2, "progress": False, "warmup": 50, "draws": 100}
    penalised, infinite = (
        sk.sample(box(each, slopes=sampler == "hmc"), **options) for each in (outside, -math.inf)
    )
    np.testing.assert_array_equal(penalised.draws, infinite.draws)
    assert (penalised.draws[..., 0] >= 0.0).all()


@QUIET
@pytest.mark.long
def test_a_penalty_costs_a_default_run_no_more_calls_than_an_infinite_one():
    options = {"max_calls": 120, "seed": 1, "progress": False}
    penalised, infinite = (sk.sample(box(each), **options) for each in (-1e30, -math.inf))
    np.testing.assert_array_equal(penalised.draws, infinite.draws)
    assert penalised.calls == infinite.calls


@QUIET
def test_no_chain_begins_on_a_plateau_and_what_is_learnt_leaves_penalties_out():
    short = {"seed": 1, "progress": False}
    run = sk.sample(box(-1e10), sampler="random-walk", warmup=0, draws=1, chains=8, **short)
    assert (run.draws[..., 0] >= 0.0).all()
    assert (run.kept.values < 100.0).all()
    parts = {"sampler": "sub-chain", "surrogate": "additive", "explorer": "rounds"}
    run = sk.sample(box(-1e10), max_calls=400, **parts, **short)
    values = run.surrogate.value(np.array([[1.0, 0.0], [1.5, 1.0], [0.5, -1.0]]))
    np.testing.assert_allclose(values - values[0], [0.0, 0.625, 0.625], atol=0.5)


def test_a_penalty_is_high_and_the_same_at_three_positions():
    positions = np.array([[0.0], [1.0], [2.0], [2.0], [2.0], [3.0], [4.0], [5.0], [6.0]])
    densities = np.array([1e9, 1e9, 1e7, 1e7, 1e7, 1e9, 1e8, 1e8, np.inf])
    expected = [True, True, False, False, False, True, False, False, False]
    np.testing.assert_array_equal(are_penalties(positions, densities), expected)
    assert not are_penalties(positions, densities * 1e-4).any()


@QUIET
def test_a_high_start_on_a_slope_is_no_penalty():
    target = sk.potential(
        log_density=lambda q: -1e12 * float(np.sum((q - 3.0) ** 2)),
        gradient=lambda q: -2e12 * (q - 3.0),
        dim=2,
    )
    run = sk.sample(target, seed=1, progress=False, draws=50)
    np.testing.assert_allclose(run.draws.mean(axis=(0, 1)), 3.0, atol=1e-5)


@QUIET
def test_starts_outside_the_support_cost_few_calls():
    t, y = 0.5 * np.arange(6), np.array([2.13, 1.49, 1.24, 0.95, 0.74, 0.55])

    def log_density(q):
        if not (0.0 < q[0] < 10.0 and 0.0 < q[1] < 10.0):  # three of four starts
            return -math.inf
        return -0.5 * float(np.sum((y - q[0] * np.exp(-q[1] * t)) ** 2)) / 0.1**2

    target = sk.potential(log_density=log_density, dim=2)
    run = sk.sample(target, seed=1, max_calls=600, progress=False)
    np.testing.assert_allclose(run.draws.mean(axis=(0, 1)), [2.08, 0.537], atol=0.05)
    assert run.ess().min() > 50.0
