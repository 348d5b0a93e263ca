"""Densities that are infinite at a bound, and what floating-point numbers lose beside one."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import stats

import surrokit as sk
from surrokit.coordinates.parameters import Parameters
from surrokit.coordinates.transforms import Transform
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import EvaluationWarning, SamplingWarning

LOST = "floating-point numbers of its bound"


def beta(a, b, **options):
    def value(q):
        with np.errstate(divide="ignore"):
            return -(a - 1) * np.log(q[:, 0]) - (b - 1) * np.log1p(-q[:, 0])

    def gradient(q):
        with np.errstate(divide="ignore"):
            return -(a - 1) / q + (b - 1) / (1 - q)

    return sk.potential(value, gradient, parameters={"p": (0, 1)}, batched=True, **options)


@pytest.mark.parametrize(
    "bounds", [(0, 1), (0, None), (None, 1), (5, None), (None, -5), (5, 6), (-1e300, 1e300)]
)
def test_no_position_on_the_line_is_taken_to_a_bound(bounds):
    transform = Transform.of(Parameters.declare({"a": bounds}))
    z = np.array([[-800.0], [-40.0], [0.0], [40.0], [700.0]])
    q = transform.to_bounded(z)
    lower, upper = transform.lower[0], transform.upper[0]
    assert ((q > lower) & (q < upper)).all()
    assert (np.diff(q[:, 0]) * (-1 if bounds[0] is None else 1) >= 0).all()


def test_positions_away_from_bounds_are_what_they_were():
    transform = Transform.of(Parameters.declare({"a": (0, 1)}))
    z = np.linspace(-30, 30, 61)[:, None]
    np.testing.assert_array_equal(transform.to_bounded(z), 1.0 / (1.0 + np.exp(-z)))


@pytest.mark.statistical
@pytest.mark.parametrize("sampler", ["hmc", "random-walk"])
def test_a_density_that_is_infinite_at_both_bounds_does_not_hold_chains(sampler):
    """Beta(1/2, 1/2); |z| of P(p < 0.9) above 4 once in 16,000, ESS as reported."""
    run = sk.sample(beta(0.5, 0.5), sampler=sampler, warmup=500, draws=2000, seed=3)
    below = run.draws < 0.9
    p = stats.beta(0.5, 0.5).cdf(0.9)
    ess = sk.diagnostics.effective_sample_size(below.astype(float))[0]
    assert abs(below.mean() - p) / np.sqrt(p * (1 - p) / ess) < 4
    assert ((run.draws > 0) & (run.draws < 1)).all()
    assert run.failures == run.broken_gradients.count  # 1 / p overflows at the least number


@pytest.mark.filterwarnings("ignore:at .* positions:surrokit.errors.SamplingWarning")
def test_draws_that_cannot_be_told_from_a_bound_are_told_of():
    """Beta(1/20, 1/20) has 8 % of its probability beyond the last number below 1."""
    with pytest.warns(SamplingWarning, match=rf"of 'p' lie within 1000 {LOST} 1"):
        sk.sample(beta(0.05, 0.05), sampler="hmc", warmup=200, draws=200, seed=1)


def test_a_bound_at_zero_loses_nothing():
    """Beta(1/20, 4) is as steep at 0, where numbers are dense."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", SamplingWarning)
        warnings.filterwarnings("ignore", "R-hat is|the draws of", SamplingWarning)
        sk.sample(beta(0.05, 4.0), sampler="hmc", warmup=500, draws=200, seed=1)


def test_an_infinite_density_is_refused_and_counted_with_a_message_of_its_own():
    target = sk.potential(lambda q: -np.inf if q[0] > 1 else q[0], dim=1)
    recording = RecordingPotential(target, keep=False)
    with pytest.warns(EvaluationWarning, match="returned U = -inf, an infinite density"):
        values = recording.value(np.array([[2.0], [0.5]]))
    np.testing.assert_array_equal(values, [np.inf, 0.5])
    assert recording.failures == 1


def test_no_chain_starts_at_an_infinite_density():
    target = sk.potential(lambda q: -np.inf if q[0] > 1 else q[0] ** 2, dim=1)
    with (
        pytest.warns(EvaluationWarning, match="an infinite density"),
        pytest.raises(sk.errors.TargetError, match="at the start of chain 0"),
    ):
        sk.sample(target, sampler="random-walk", initial=[2.0], seed=1)
