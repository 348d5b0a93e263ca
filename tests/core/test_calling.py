"""Functions take parameters by their names, or all numbers as one vector."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

import surrokit as sk
from surrokit.errors import ConfigurationError, ShapeError

NAMES = {"mu": sk.real(), "tau": sk.positive(), "theta": sk.real((2, 3))}


def by_name(mu, tau, theta):
    assert np.shape(mu) == np.shape(tau) == ()
    assert theta.shape == (2, 3)
    return -(mu**2) / 2 - tau - np.sum(theta**2 * [1.0, 2.0, 3.0]) / 2


def by_vector(q):
    assert q.shape == (8,)
    return by_name(q[0], q[1], q[2:].reshape(2, 3))


def slope(mu, tau, theta):
    return {"theta": -theta * [1.0, 2.0, 3.0], "mu": -mu, "tau": -1.0}


def some_names(mu, tau, theta, scale=1.0):
    return scale * by_name(mu, tau, theta)


def any_names(**values):
    return by_name(**values)


def only_keywords(*, theta, mu, tau):
    return by_name(mu, tau, theta)


@pytest.mark.parametrize("function", [by_name, some_names, any_names, only_keywords])
def test_functions_of_names_are_those_of_a_vector(function, rng):
    z = rng.normal(size=(4, 8))
    named = sk.potential(log_density=function, parameters=NAMES)
    plain = sk.potential(log_density=by_vector, parameters=NAMES)
    np.testing.assert_array_equal(named.value(z), plain.value(z))


def test_gradients_come_by_name_or_as_a_vector(rng):
    z = rng.normal(size=(4, 8))
    named = sk.potential(log_density=by_name, gradient=slope, parameters=NAMES)
    assert sk.check_gradient(named, rng.uniform(0.5, 1.0, 8)).ok

    def as_vector(q):
        parts = slope(q[0], q[1], q[2:].reshape(2, 3))
        return np.concatenate([[parts["mu"]], [parts["tau"]], parts["theta"].ravel()])

    plain = sk.potential(log_density=by_vector, gradient=as_vector, parameters=NAMES)
    np.testing.assert_array_equal(named.value_and_gradient(z)[1], plain.value_and_gradient(z)[1])

    def both(mu, tau, theta):
        return -by_name(mu, tau, theta), {n: -g for n, g in slope(mu, tau, theta).items()}

    joint = sk.potential(value_and_gradient=both, parameters=NAMES)
    np.testing.assert_array_equal(joint.value_and_gradient(z)[1], plain.value_and_gradient(z)[1])


def test_rows_come_with_one_more_axis(rng):
    def rows(mu, theta):
        assert mu.shape == (5,)
        assert theta.shape == (5, 2)
        return mu**2 + np.sum(theta**2, axis=1)

    names = {"mu": None, "theta": sk.real(2)}
    target = sk.potential(rows, parameters=names, batched=True)
    z = rng.normal(size=(5, 3))
    np.testing.assert_allclose(target.value(z), np.sum(z**2, axis=1))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            lambda mu, sigma: 0.0,
            "log_density takes mu, sigma, but the parameters are mu, tau, theta",
        ),
        (
            lambda mu, tau: 0.0,
            "log_density takes mu, tau, but .* one argument for the whole vector",
        ),
        (lambda: 0.0, "log_density takes no argument"),
        (lambda *, q: 0.0, "log_density takes q, but"),
    ],
)
def test_other_names_are_told_at_once(function, message):
    with pytest.raises(ConfigurationError, match=message):
        sk.potential(log_density=function, parameters=NAMES)


def test_a_compiled_function_takes_the_vector():
    target = sk.potential(np.linalg.norm, parameters={"x": sk.real(2)})
    assert target.value(np.array([[3.0, 4.0]]))[0] == 5.0


@pytest.mark.parametrize(
    ("gradient", "message"),
    [
        (lambda a, b: {"a": a}, "must be given for a, b, got a"),
        (lambda a, b: {"a": b, "b": b}, r"must return shape \(3,\), got \(2, 3\)"),
        (lambda a, b: {"a": b, "b": a}, r"parameter 'b' must have shape \(2,\), got \(\)"),
    ],
)
def test_a_gradient_by_name_has_all_names_and_shapes(gradient, message):
    names = {"a": None, "b": sk.real(2)}
    target = sk.potential(lambda a, b: 0.0, gradient, parameters=names)
    with pytest.raises(ShapeError, match=message):
        target.value_and_gradient(np.zeros((1, 3)))


def test_draws_have_the_shapes_of_the_names():
    target = sk.potential(
        log_density=by_name, gradient=slope, parameters={**NAMES, "tau": sk.interval(0, 2)}
    )
    run = sk.sample(target, sampler="hmc", chains=2, warmup=20, draws=10, seed=1, progress=False)
    assert run["theta"].shape == (2, 10, 2, 3)
    assert "theta[1,2]" in run.labels
    given = {"mu": 0.0, "tau": 1.0, "theta": np.zeros((2, 3))}
    sk.sample(target, sampler="hmc", initial=given, warmup=2, draws=2, progress=False)


def test_programs_take_priors_beside_parameters():
    names = {"a": sk.real(prior=scipy.stats.norm())}
    target = sk.command_potential("cat", parameters=names)
    assert target.priors is not None
    twice = {"data": [0.0], "noise_sd": 1.0, "prior": sk.gaussian_prior(0, 1)}
    with pytest.raises(ConfigurationError, match="give priors once"):
        sk.command_potential("cat", parameters=names, **twice)
