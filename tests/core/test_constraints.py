"""Parameters tied by constraints: maps, volumes, slopes, and draws of known densities."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

import surrokit as sk
from surrokit.coordinates.constraints import (
    Circular,
    Correlation,
    Covariance,
    Ordered,
    Simplex,
    UnitVector,
    from_plain,
    to_plain,
)
from surrokit.errors import ConfigurationError, TargetError

ALL = [
    Simplex(2),
    Simplex(4),
    Ordered(1),
    Ordered(3),
    UnitVector(3),
    Circular(),
    Circular((2, 2)),
    Covariance(1),
    Covariance(3),
    Correlation(2),
    Correlation(4),
]
STEP = 1e-6


@pytest.fixture(params=ALL, ids=repr)
def constraint(request):
    return request.param


def slopes(function, z):
    """Return central differences of values (n,) or (n, size), on a last axis."""
    steps = STEP * np.eye(z.shape[1])
    return np.stack([(function(z + h) - function(z - h)) / (2 * STEP) for h in steps], axis=-1)


def volume_columns(constraint):
    """Return the numbers of q that volumes are those of; None if there are fewer dimensions."""
    if isinstance(constraint, Simplex):
        return np.arange(constraint.size - 1)
    if isinstance(constraint, Ordered):
        return np.arange(constraint.size)
    if isinstance(constraint, Covariance | Correlation):
        below = np.tril_indices(constraint.size, -isinstance(constraint, Correlation))
        return np.ravel_multi_index(below, constraint.shape)
    return None


def test_positions_come_back(constraint, rng):
    z = rng.normal(size=(20, constraint.free))
    q = constraint.to_bounded(z)
    assert q.shape == (20, math.prod(constraint.shape))
    np.testing.assert_allclose(constraint.to_bounded(constraint.to_unbounded(q)), q, atol=1e-12)
    varies = np.ptp(q, axis=0) > 0
    np.testing.assert_array_equal(varies, constraint.varies)


def test_slopes_are_those_of_differences(constraint, rng):
    z = rng.normal(size=(6, constraint.free))
    weights = rng.normal(size=math.prod(constraint.shape))

    def wave(z):
        return np.sin(constraint.to_bounded(z) * weights).sum(axis=1)

    gradient = np.cos(constraint.to_bounded(z) * weights) * weights
    np.testing.assert_allclose(constraint.vjp(z, gradient), slopes(wave, z), atol=1e-6)
    given = constraint.log_jacobian_gradient(z)
    np.testing.assert_allclose(given, slopes(constraint.log_jacobian, z), atol=1e-6)


def test_volumes_are_those_of_the_map(constraint, rng):
    columns = volume_columns(constraint)
    if columns is None:
        pytest.skip("the set has fewer dimensions than z has numbers")
    z = rng.normal(size=(6, constraint.free))
    matrices = slopes(constraint.to_bounded, z)[:, columns]
    expected = np.log(np.abs(np.linalg.det(matrices)))
    np.testing.assert_allclose(constraint.log_jacobian(z), expected, atol=1e-6)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_what_is_left_of_a_direction_adds_up_to_one(size):
    """Along a ray z = r q, the volume of a shell is r^(size - 1) dr times that of the surface."""
    radius = np.linspace(0.0, 40.0, 400_001)
    z = np.zeros((len(radius), size))
    z[:, 0] = radius
    shells = np.exp(UnitVector(size).log_jacobian(z)) * radius ** (size - 1)
    assert np.trapezoid(shells, radius) == pytest.approx(1.0, abs=1e-8)


@pytest.mark.parametrize("far", [30.0, 300.0])
def test_nothing_breaks_far_out(constraint, far):
    z = np.full((1, constraint.free), far)
    with np.errstate(all="ignore"):
        for array in (constraint.log_jacobian(z), constraint.log_jacobian_gradient(z)):
            assert np.isfinite(array).all()
        if not isinstance(constraint, Ordered | Covariance):  # these grow without bound
            assert np.isfinite(constraint.vjp(z, np.ones((1, math.prod(constraint.shape))))).all()


def test_a_file_holds_constraints_as_plain_data(constraint):
    assert from_plain(to_plain(constraint)) == constraint


BROKEN = [
    (sk.simplex(3), [0.5, 0.6, 0.1], "positive numbers that sum to 1"),
    (sk.simplex(3), [0.0, 0.9, 0.1], "positive numbers"),
    (sk.ordered(2), [1.0, 1.0], "numbers in increasing order"),
    (sk.unit_vector(2), [1.0, 1.0], "a vector of length 1"),
    (sk.circular(), 4.0, "angles between -pi and pi"),
    (sk.covariance(2), [[1.0, 2.0], [2.0, 1.0]], "a symmetric positive definite matrix"),
    (sk.covariance(2), [[1.0, 0.1], [0.2, 1.0]], "a symmetric positive definite matrix"),
    (sk.correlation(2), [[1.0, 0.1], [0.1, 1.1]], "with ones on its diagonal"),
]


@pytest.mark.parametrize(("spec", "given", "meaning"), BROKEN)
def test_starts_that_break_a_constraint_are_refused(spec, given, meaning):
    target = sk.potential(lambda it: 0.0, parameters={"it": spec})
    with pytest.raises(TargetError, match=rf"initial value of 'it' in chain 0 is .*{meaning}"):
        sk.sample(target, initial={"it": given}, draws=2, warmup=2, progress=False)


@pytest.mark.parametrize(
    ("declare", "what"),
    [
        (sk.simplex, "a simplex"),
        (sk.ordered, "an ordered vector"),
        (sk.unit_vector, "a unit vector"),
        (sk.correlation, "a correlation matrix"),
        (sk.covariance, "a covariance matrix"),
    ],
)
def test_sizes_are_whole_numbers(declare, what):
    with pytest.raises(ConfigurationError, match=f"the size of {what} must be a whole number of"):
        declare(0)


def test_no_plausible_range_of_what_is_tied():
    with pytest.raises(ConfigurationError, match=r"'w' is positive numbers .* give initial"):
        sk.potential(lambda w: 0.0, parameters={"w": sk.simplex(3)}, plausible={"w": (0.1, 0.9)})


# --- draws of known densities ---

SIZES = {"chains": 8, "warmup": 300, "draws": 600, "seed": 4, "progress": False}


def draw(spec, value, gradient):
    """Return the draws of one parameter by exact HMC."""
    target = sk.potential(value, gradient, parameters={"it": spec}, batched=True)
    run = sk.sample(target, sampler="hmc", **SIZES)
    assert not [found for found in run.verdict if found.warns]
    return run["it"]


def check_mean(draws, expected):
    """Check a mean of (chains, draws) to 5 standard errors: wrong by chance once in 10^6."""
    ess = sk.effective_sample_size(draws[..., None])[0]
    assert ess > 300
    assert abs(draws.mean() - expected) < 5.0 * draws.std() / np.sqrt(ess)


def nothing(it):
    return np.zeros(len(it))


def flat(it):
    return {"it": np.zeros_like(it)}


@pytest.mark.statistical
def test_a_uniform_density_on_a_simplex():
    """Each of four numbers is Beta(1, 3), and of two the product has mean 1 / 20."""
    draws = draw(sk.simplex(4), nothing, flat)
    check_mean(draws[..., 0], 1 / 4)
    check_mean(draws[..., 3] ** 2, 1 / 10)
    check_mean(draws[..., 1] * draws[..., 2], 1 / 20)


@pytest.mark.long
@pytest.mark.statistical
def test_a_uniform_density_on_correlation_matrices():
    """Each of three correlations is 2 Beta(3/2, 3/2) - 1, of variance 1 / 4."""
    draws = draw(sk.correlation(3), nothing, flat)
    for i, j in ((1, 0), (2, 0), (2, 1)):
        check_mean(draws[..., i, j], 0.0)
        check_mean(draws[..., i, j] ** 2, 1 / 4)
    assert (draws[..., 0, 0] == 1.0).all()
    np.testing.assert_array_equal(draws[..., 0, 1], draws[..., 1, 0])


@pytest.mark.statistical
def test_a_uniform_density_on_a_sphere():
    draws = draw(sk.unit_vector(3), nothing, flat)
    check_mean(draws[..., 0], 0.0)
    check_mean(draws[..., 1] ** 2, 1 / 3)
    check_mean(draws[..., 2] ** 4, 1 / 5)


@pytest.mark.statistical
def test_a_uniform_density_on_a_circle():
    draws = draw(sk.circular(), nothing, flat)
    check_mean(np.cos(draws), 0.0)
    check_mean(draws**2, np.pi**2 / 3)


@pytest.mark.long
@pytest.mark.statistical
def test_order_statistics():
    """Normal numbers in order: of three the largest has mean 3 / (2 sqrt(pi))."""
    draws = draw(sk.ordered(3), lambda it: np.sum(it**2, axis=1) / 2, lambda it: {"it": it})
    check_mean(draws[..., 2], 1.5 / np.sqrt(np.pi))
    check_mean(draws[..., 1], 0.0)


@pytest.mark.long
@pytest.mark.statistical
def test_a_wishart_density_of_covariance_matrices():
    """Of 7 degrees of freedom and scale I: the mean is 7 I, a diagonal has variance 14."""

    def value(it):
        return -2.0 * np.linalg.slogdet(it)[1] + 0.5 * np.trace(it, axis1=1, axis2=2)

    def gradient(it):
        det = it[:, 0, 0] * it[:, 1, 1] - it[:, 0, 1] * it[:, 1, 0]
        turned = np.array([[it[:, 1, 1], -it[:, 0, 1]], [-it[:, 1, 0], it[:, 0, 0]]])
        return {"it": -2.0 * np.moveaxis(turned / det, 2, 0) + 0.5 * np.eye(2)}

    draws = draw(sk.covariance(2), value, gradient)
    check_mean(draws[..., 0, 0], 7.0)
    check_mean(draws[..., 1, 0], 0.0)
    check_mean((draws[..., 1, 1] - 7.0) ** 2, 14.0)
    check_mean(draws[..., 1, 0] ** 2, 7.0)


def test_constant_numbers_are_no_trouble(tmp_path):
    """The diagonal of a correlation matrix has no R-hat, and nobody warns of that."""
    target = sk.potential(
        lambda it, x: np.zeros(len(x)),
        lambda it, x: {"it": 0.0 * it, "x": 0.0 * x},
        parameters={"it": sk.correlation(2), "x": (0, 1)},
        batched=True,
    )
    run = sk.sample(
        target,
        sampler="hmc",
        chains=4,
        warmup=100,
        seed=1,
        path=tmp_path / "a",
        progress=False,
        budget=sk.Budget(target_rhat=1.005),
    )
    assert run.stopped == "target_rhat"
    assert not [found for found in run.verdict if found.name == "r_hat"]
    assert np.isfinite(run.to_dict()["rhat_max"])
    again = sk.open_run(tmp_path / "a")
    np.testing.assert_array_equal(again["it"], run["it"])
    assert again["it"].shape[2:] == (2, 2)


def test_what_knows_bounds_alone_refuses_ties():
    """It would sample the numbers as if they were free."""
    inner = sk.potential(lambda q: float(q @ q), dim=3)
    parameters = sk.Parameters.declare({"w": sk.simplex(2), "x": (0, 1)})
    with pytest.raises(ConfigurationError, match=r"knows bounds alone.*surrokit\.potential"):
        sk.BoundedPotential(inner, parameters)


def test_forward_maps_have_derivatives_by_what_is_tied(rng):
    def outputs(w):
        return np.array([w[0] * w[1], w[2]])

    def jacobian(w):
        return np.array([[w[1], w[0], 0.0], [0.0, 0.0, 1.0]])

    target = sk.forward_potential(
        outputs, jacobian, data=[0.1, 0.3], noise_sd=0.05, parameters={"w": sk.simplex(3)}
    )
    assert target.dim == 2
    z = rng.normal(size=(4, 2))
    np.testing.assert_allclose(
        target.forward_and_jacobian(z)[1], slopes(target.forward, z), atol=1e-6
    )
    np.testing.assert_allclose(target.value_and_gradient(z)[1], slopes(target.value, z), atol=1e-5)
    run = sk.sample(
        target,
        sampler="sub-chain",
        surrogate="additive",
        explorer="rounds",
        seed=1,
        warmup=50,
        draws=50,
        progress=False,
    )
    assert run["w"].shape == (4, 50, 3)
    np.testing.assert_allclose(run["w"].sum(axis=-1), 1.0)


def test_paid_evaluations_are_led_to_the_line(rng):
    at = rng.dirichlet(np.ones(3), size=30)
    target = sk.potential(
        lambda w: float(-np.log(w).sum()), lambda w: -1.0 / w, parameters={"w": sk.simplex(3)}
    )
    run = sk.sample(
        target,
        sampler="sub-chain",
        surrogate="additive",
        explorer="rounds",
        warmup=50,
        draws=50,
        seed=1,
        progress=False,
        warm_start=(at, -np.log(at).sum(axis=1), -1.0 / at),
    )
    assert run["w"].shape == (4, 50, 3)


@pytest.mark.statistical
def test_priors_beside_parameters_are_added_and_have_slopes(rng):
    spec = {
        "rate": sk.positive(prior=scipy.stats.gamma(2)),
        "x": sk.real(2, prior=scipy.stats.norm(1, 2)),
    }
    target = sk.potential(
        lambda rate, x: np.zeros(len(x)),
        lambda rate, x: {"rate": 0.0 * rate, "x": 0.0 * x},
        parameters=spec,
        batched=True,
    )
    z = rng.normal(size=(5, 3))
    np.testing.assert_allclose(target.value_and_gradient(z)[1], slopes(target.value, z), atol=1e-6)
    run = sk.sample(target, sampler="hmc", **SIZES)
    check_mean(run["rate"], 2.0)
    check_mean(run["x"][..., 1], 1.0)
    check_mean((run["x"][..., 0] - 1.0) ** 2, 4.0)


def test_priors_are_given_once():
    spec = {"a": sk.real(prior=scipy.stats.norm())}
    with pytest.raises(ConfigurationError, match="priors beside them, and prior is given too"):
        sk.forward_potential(
            lambda a: np.array([a]),
            data=[0.0],
            noise_sd=1.0,
            parameters=spec,
            prior=sk.gaussian_prior(0, 1),
        )
    target = sk.forward_potential(
        lambda a: np.array([a]), data=[0.0], noise_sd=1.0, parameters=spec
    )
    ends = target.value(np.array([[0.0], [1.0]]))
    assert ends[1] - ends[0] == pytest.approx(1.0)


@pytest.mark.parametrize("prior", [scipy.stats.gamma, 3.0, "normal"])
def test_a_prior_is_a_frozen_distribution(prior):
    with pytest.raises(ConfigurationError, match="a prior must be a frozen distribution of scipy"):
        sk.positive(prior=prior)
