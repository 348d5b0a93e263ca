"""Very large finite potentials are the edge of a support, as an infinite one is."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import surrokit as sk
from surrokit.errors import SamplingWarning

LARGE = [-1e100, -1e30]


def box(outside):
    """Return a normal density that is cut off, with a log density beyond that is as given."""

    def log_density(q):
        if q[0] < 0.0 or abs(q[1]) > 3.0:
            return outside
        return -0.5 * (q[0] - 1.0) ** 2 - 0.5 * q[1] ** 2

    return sk.potential(log_density=log_density, dim=2)


def sample(outside, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)
        return sk.sample(box(outside), seed=1, progress=False, **options)


@pytest.mark.parametrize("sampler", ["random-walk", "hmc"])
@pytest.mark.parametrize("outside", LARGE)
def test_a_penalty_outside_the_support_makes_the_draws_of_an_infinite_one(sampler, outside):
    gradient = {"random-walk": None, "hmc": lambda q: np.array([1.0 - q[0], -q[1]])}[sampler]

    def run(beyond):
        density = box(beyond).value

        def log_density(q):
            return -float(density(q[None])[0])

        target = sk.potential(log_density=log_density, gradient=gradient, dim=2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SamplingWarning)
            options = {"seed": 2, "progress": False, "warmup": 50, "draws": 100}
            return sk.sample(target, sampler=sampler, **options)

    penalised, infinite = run(outside), run(-math.inf)
    np.testing.assert_array_equal(penalised.draws, infinite.draws)
    assert (penalised.draws[..., 0] >= 0.0).all()


def test_a_penalty_costs_a_default_run_no_more_calls_than_an_infinite_one():
    options = {"max_calls": 400}
    penalised, infinite = sample(-1e30, **options), sample(-math.inf, **options)
    np.testing.assert_array_equal(penalised.draws, infinite.draws)
    assert penalised.calls == infinite.calls


def test_no_chain_begins_on_a_plateau():
    run = sample(-1e10, sampler="random-walk", warmup=0, draws=1, chains=8)
    assert (run.draws[..., 0] >= 0.0).all()
    assert (run.kept.values < 100.0).all()


def test_what_is_learnt_leaves_penalties_out():
    parts = {"sampler": "sub-chain", "surrogate": "additive", "explorer": "rounds"}
    run = sample(-1e10, max_calls=400, **parts)
    values = run.surrogate.value(np.array([[1.0, 0.0], [1.5, 1.0], [0.5, -1.0]]))
    exact = np.array([0.0, 0.625, 0.625])
    np.testing.assert_allclose(values - values[0], exact, atol=0.5)


def test_a_high_start_on_a_slope_is_no_penalty():
    target = sk.potential(
        log_density=lambda q: -1e12 * float(np.sum((q - 3.0) ** 2)),
        gradient=lambda q: -2e12 * (q - 3.0),
        dim=2,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)
        run = sk.sample(target, seed=1, progress=False, draws=50)
    np.testing.assert_allclose(run.draws.mean(axis=(0, 1)), 3.0, atol=1e-5)


def test_starts_outside_the_support_cost_few_calls():
    t, y = 0.5 * np.arange(6), np.array([2.13, 1.49, 1.24, 0.95, 0.74, 0.55])

    def log_density(q):
        if not (0.0 < q[0] < 10.0 and 0.0 < q[1] < 10.0):  # three of four starts
            return -math.inf
        return -0.5 * float(np.sum((y - q[0] * np.exp(-q[1] * t)) ** 2)) / 0.1**2

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)
        target = sk.potential(log_density=log_density, dim=2)
        run = sk.sample(target, seed=1, max_calls=600, progress=False)
    np.testing.assert_allclose(run.draws.mean(axis=(0, 1)), [2.08, 0.537], atol=0.05)
    assert run.ess().min() > 50.0
