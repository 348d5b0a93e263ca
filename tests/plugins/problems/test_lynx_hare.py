from __future__ import annotations

import time
from threading import Thread

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp
from scipy.optimize import minimize
from scipy.stats import lognorm, norm

from surrokit.cost.recording import RecordingPotential
from surrokit.errors import EvaluationError, NumericalError
from surrokit.targets.bounds import BoundedPotential
from surrokit_problems.lynx_hare import COUNTS, TIMES, LynxHare

# Means and standard deviations of posteriordb's reference draws of
# hudson_lynx_hare-lotka_volterra (BSD-3-Clause).
REFERENCE_MEAN = np.array([0.5469, 0.02775, 0.8001, 0.02409, 34.04, 5.936, 0.2481, 0.2510])
REFERENCE_SD = np.array([0.0631, 0.00415, 0.0894, 0.00353, 2.92, 0.531, 0.0433, 0.0436])
WILD = [1e3, 1.0, 1e3, 1.0, 34.0, 6.0, 0.25, 0.25]  # thousands of oscillations


@pytest.fixture(scope="module")
def potential():
    return LynxHare()


@pytest.fixture
def positions():
    return REFERENCE_MEAN * np.exp(0.1 * np.random.default_rng(0).standard_normal((4, 8)))


def slow_minus_log_density(position):
    alpha, beta, gamma, delta, hare, lynx, *sigmas = position

    def slopes(_, z):
        return [(alpha - beta * z[1]) * z[0], (delta * z[0] - gamma) * z[1]]

    path = solve_ivp(
        slopes, (0, 20), [hare, lynx], "DOP853", t_eval=TIMES, rtol=1e-11, atol=1e-11
    ).y
    total = norm(1, 0.5).logpdf([alpha, gamma]).sum()
    total += norm(0.05, 0.05).logpdf([beta, delta]).sum()
    total += lognorm(1.0, scale=10.0).logpdf([hare, lynx]).sum()
    total += lognorm(1.0, scale=np.exp(-1.0)).logpdf(sigmas).sum()
    for counts, populations, sigma in zip(COUNTS.T, path, sigmas, strict=True):
        total += lognorm(sigma, scale=populations).logpdf(counts).sum()
    return -total


def test_value_is_minus_the_log_density_up_to_a_constant(potential, positions):
    assert LynxHare.parameters.labels[0] == "alpha"
    by_year = potential.forward(REFERENCE_MEAN[None])[0].reshape(21, 2)  # hare first
    assert np.abs(by_year - np.log(COUNTS)).max() < 4 * 0.25
    expected = [slow_minus_log_density(position) for position in positions]
    assert_allclose(np.diff(potential.value(positions)), np.diff(expected), atol=1e-5)


def test_the_curvature_in_the_positions(potential, positions, differences):
    # In logarithms it is the second derivative itself, where normal priors have their mean and
    # the mean square of the residuals is sigma^2.
    energy = BoundedPotential(potential, potential.parameters).energy
    positions[:, :4] = [1.0, 0.05, 1.0, 0.05]
    z = np.log(positions)
    signs = np.where(np.arange(21) % 2, 1.0, -1.0)[:, None]
    outputs = (np.log(COUNTS) + signs * positions[:, None, 6:]).reshape(4, 42)
    _, by_positions = energy.curvatures(outputs, z)
    exact = differences(lambda x: energy.value_and_gradients(outputs, x)[2], z)
    assert_allclose(by_positions, exact, rtol=1e-5, atol=1e-5)
    assert_allclose(
        np.diagonal(by_positions, axis1=1, axis2=2)[:, 4:], [[1.0, 1.0, 43.0, 43.0]] * 4
    )


def test_outside_the_support_the_value_is_infinite(potential, positions):
    expected = potential.value(positions)
    bad = np.concatenate([positions, positions])
    bad[4:, :4] = [[-1, 1, 1, 1], [np.inf, 1, 1, 1], [np.nan, 1, 1, 1], [1, 0, 1, 1]]
    value, gradient = potential.value_and_gradient(bad)
    assert_allclose(value[:4], expected, atol=1e-6)
    assert_allclose(value[4:], np.inf)
    assert np.isfinite(gradient[:4]).all()
    assert np.isnan(gradient[4:]).all()
    assert_allclose(potential.value(bad), value, atol=1e-6)
    assert_allclose(potential.value(bad[4:]), np.inf)
    assert np.isnan(potential.forward(bad)[4:]).all()
    metric = potential.metric(bad)
    assert np.isfinite(metric[:4]).all()
    assert np.isnan(metric[4:]).all()


def test_a_wild_row_costs_the_others_nothing(potential, positions):
    expected = potential.value(positions)
    batch = np.concatenate([[-positions[0], WILD], positions])
    start = time.perf_counter()
    with pytest.raises(EvaluationError) as caught:
        potential.value(batch)
    assert time.perf_counter() - start < 5.0
    assert list(caught.value.causes) == [1]
    assert isinstance(caught.value.causes[1], NumericalError)
    recording = RecordingPotential(potential, keep=False)
    values, gradients = recording.value_and_gradient(batch)
    assert np.isinf(values[:2]).all()
    assert_allclose(values[2:], expected, atol=1e-6)
    assert np.isnan(gradients[:2]).all()
    assert np.isfinite(gradients[2:]).all()
    outputs, jacobians = recording.forward_and_jacobian(batch)
    assert (outputs.shape, jacobians.shape) == ((6, 42), (6, 42, 8))
    assert recording.failures == 2


def test_threads_do_not_disturb_each_other(potential, positions):
    expected = potential.value(positions)
    results = {}

    def evaluate(i):
        results[i] = potential.value(positions)

    threads = [Thread(target=evaluate, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(8):
        assert_allclose(results[i], expected, rtol=1e-12)


def test_starts_reach_the_mode_of_the_reference():
    inner = LynxHare()
    potential = BoundedPotential(inner, inner.parameters)

    def objective(z):
        value, gradient = potential.value_and_gradient(z[None])
        return value[0], gradient[0]

    starts = potential.initial(np.random.default_rng(1), 6)
    ends = [minimize(objective, z, jac=True, method="L-BFGS-B", tol=1e-6) for z in starts]
    assert_allclose([end.fun for end in ends], ends[0].fun, atol=1e-2)
    mode = np.exp(ends[0].x)
    assert (np.abs(mode - REFERENCE_MEAN) < REFERENCE_SD).all()
