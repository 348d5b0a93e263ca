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
    Ordered,
    Simplex,
    UnitVector,
    from_plain,
    to_plain,
)
from surrokit.coordinates.transforms import map_of
from surrokit.errors import ConfigurationError, TargetError

ALL = [Simplex(2), Simplex(4), Ordered(1), Ordered(3), UnitVector(3), Circular(), Circular((2, 2))]
ALL += [Correlation(2), Correlation(4)]
SHORT = {"warmup": 50, "draws": 50, "seed": 1, "progress": False}
FEW_NODES = ("additive", {"n_nodes": 60})
LEARNT = {"sampler": "sub-chain", "surrogate": FEW_NODES, "explorer": "rounds", **SHORT}


@pytest.fixture(params=ALL, ids=repr)
def constraint(request):
    return request.param


def volume_columns(constraint):
    """Return the numbers of q that volumes are those of; None if there are fewer dimensions."""
    if isinstance(constraint, Simplex):
        return np.arange(constraint.size - 1)
    if isinstance(constraint, Ordered):
        return np.arange(constraint.size)
    if isinstance(constraint, Correlation):
        below = np.tril_indices(constraint.size, -1)
        return np.ravel_multi_index(below, constraint.shape)
    return None


def test_positions_come_back_and_files_hold_constraints(constraint, rng):
    z = rng.normal(size=(20, constraint.free))
    q = constraint.to_bounded(z)
    assert q.shape == (20, math.prod(constraint.shape))
    np.testing.assert_allclose(constraint.to_bounded(constraint.to_unbounded(q)), q, atol=1e-12)
    np.testing.assert_array_equal(np.ptp(q, axis=0) > 0, constraint.varies)
    assert from_plain(to_plain(constraint)) == constraint


def test_slopes_and_volumes_are_those_of_differences(constraint, rng, differences):
    z = rng.normal(size=(6, constraint.free))
    weights = rng.normal(size=math.prod(constraint.shape))

    def wave(z):
        return np.sin(constraint.to_bounded(z) * weights).sum(axis=1)

    gradient = np.cos(constraint.to_bounded(z) * weights) * weights
    np.testing.assert_allclose(constraint.vjp(z, gradient), differences(wave, z, 1e-6), atol=1e-6)
    given = constraint.volume(z)[1]
    np.testing.assert_allclose(given, differences(constraint.log_jacobian, z, 1e-6), atol=1e-6)
    columns = volume_columns(constraint)
    if columns is not None:
        matrices = differences(constraint.to_bounded, z, 1e-6)[:, columns]
        expected = np.log(np.abs(np.linalg.det(matrices)))
        np.testing.assert_allclose(constraint.log_jacobian(z), expected, atol=1e-6)


def test_numbers_between_two_bounds_are_known_beside_what_is_tied():
    declared = {"w": sk.simplex(3), "p": sk.interval(0, 1), "x": (0, None), "r": sk.correlation(2)}
    found = map_of(sk.Parameters.declare(declared)).between
    np.testing.assert_array_equal(found, [False, False, True, False, False])


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
        for array in constraint.volume(z):
            assert np.isfinite(array).all()
        if not isinstance(constraint, Ordered):  # which grows without bound
            assert np.isfinite(constraint.vjp(z, np.ones((1, math.prod(constraint.shape))))).all()


BROKEN = [
    (sk.simplex(3), [0.5, 0.6, 0.1], "positive numbers that sum to 1"),
    (sk.simplex(3), [0.0, 0.9, 0.1], "positive numbers"),
    (sk.ordered(2), [1.0, 1.0], "numbers in increasing order"),
    (sk.unit_vector(2), [1.0, 1.0], "a vector of length 1"),
    (sk.circular(), 4.0, "angles between -pi and pi"),
    (sk.correlation(2), [[1.0, 2.0], [2.0, 1.0]], "a symmetric positive definite matrix"),
    (sk.correlation(2), [[1.0, 0.1], [0.2, 1.0]], "a symmetric positive definite matrix"),
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
    ],
)
def test_sizes_are_whole_numbers(declare, what):
    with pytest.raises(ConfigurationError, match=f"the size of {what} must be a whole number of"):
        declare(0)


def test_no_plausible_range_of_what_is_tied():
    with pytest.raises(ConfigurationError, match=r"'w' is positive numbers .* give initial"):
        sk.potential(lambda w: 0.0, parameters={"w": sk.simplex(3)}, plausible={"w": (0.1, 0.9)})


# --- draws of known densities ---

SIZES = {"chains": 8, "warmup": 300, "draws": 600, "seed": 4, "progress": False, "sampler": "hmc"}


def check_mean(draws, expected):
    """Check a mean of (chains, draws) to 5 standard errors: wrong by chance once in 10^6."""
    ess = sk.effective_sample_size(draws[..., None])[0]
    assert ess > 300
    assert abs(draws.mean() - expected) < 5.0 * draws.std() / np.sqrt(ess)


def nothing(it):
    return np.zeros(len(it))


def flat(it):
    return {"it": np.zeros_like(it)}


NORMAL = (lambda it: np.sum(it**2, axis=1) / 2, lambda it: {"it": it})
LONG = pytest.mark.long
DENSITIES = {
    # each of four numbers is Beta(1, 3), and of two the product has mean 1 / 20
    "simplex": (
        sk.simplex(4),
        (nothing, flat),
        lambda q: [(q[..., 0], 1 / 4), (q[..., 3] ** 2, 1 / 10), (q[..., 1] * q[..., 2], 1 / 20)],
    ),
    # each of three correlations is 2 Beta(3/2, 3/2) - 1, of variance 1 / 4
    "correlations": (
        sk.correlation(3),
        (nothing, flat),
        lambda q: [
            pair
            for i, j in ((1, 0), (2, 0), (2, 1))
            for pair in ((q[..., i, j], 0.0), (q[..., j, i] ** 2, 1 / 4))
        ],
    ),
    "sphere": (
        sk.unit_vector(3),
        (nothing, flat),
        lambda q: [(q[..., 0], 0.0), (q[..., 1] ** 2, 1 / 3), (q[..., 2] ** 4, 1 / 5)],
    ),
    "circle": (
        sk.circular(),
        (nothing, flat),
        lambda q: [(np.cos(q), 0.0), (q**2, np.pi**2 / 3)],
    ),
    # normal numbers in order: of three the largest has mean 3 / (2 sqrt(pi))
    "order statistics": (
        sk.ordered(3),
        NORMAL,
        lambda q: [(q[..., 2], 1.5 / np.sqrt(np.pi)), (q[..., 1], 0.0)],
    ),
}
QUICK = ("simplex", "circle")


@pytest.mark.statistical
@pytest.mark.parametrize(
    "name", [each if each in QUICK else pytest.param(each, marks=LONG) for each in DENSITIES]
)
def test_draws_of_known_densities(name):
    spec, functions, means = DENSITIES[name]
    run = sk.sample(sk.potential(*functions, parameters={"it": spec}, batched=True), **SIZES)
    assert not [found for found in run.verdict if found.warns]
    for draws, expected in means(run["it"]):
        check_mean(draws, expected)


def test_constant_numbers_are_no_trouble(tmp_path):
    """The diagonal of a correlation matrix has no R-hat, and nobody warns of that."""
    target = sk.potential(
        lambda it, x: np.zeros(len(x)),
        lambda it, x: {"it": 0.0 * it, "x": 0.0 * x},
        parameters={"it": sk.correlation(2), "x": (0, 1)},
        batched=True,
    )
    settings = {"sampler": "hmc", "warmup": 100, "seed": 1, "progress": False}
    budget = sk.Budget(target_rhat=1.005)
    run = sk.sample(target, path=tmp_path / "a", budget=budget, **settings)
    assert run.stopped == "target_rhat"
    assert not [found for found in run.verdict if found.name == "r_hat"]
    assert np.isfinite(run.to_dict()["rhat_max"])
    assert (run["it"][..., 0, 0] == 1.0).all()
    np.testing.assert_array_equal(run["it"][..., 0, 1], run["it"][..., 1, 0])
    np.testing.assert_array_equal(sk.open_run(tmp_path / "a")["it"], run["it"])


def test_forward_maps_have_derivatives_by_what_is_tied(rng, differences):
    target = sk.forward_potential(
        lambda w: np.array([w[0] * w[1], w[2]]),
        lambda w: np.array([[w[1], w[0], 0.0], [0.0, 0.0, 1.0]]),
        data=[0.1, 0.3],
        noise_sd=0.05,
        parameters={"w": sk.simplex(3)},
    )
    assert target.dim == 2
    z = rng.normal(size=(4, 2))
    for found, function in (
        (target.forward_and_jacobian(z)[1], target.forward),
        (target.value_and_gradient(z)[1], target.value),
    ):
        np.testing.assert_allclose(found, differences(function, z), atol=1e-5)
    run = sk.sample(target, **LEARNT)
    assert run["w"].shape == (4, 50, 3)
    np.testing.assert_allclose(run["w"].sum(axis=-1), 1.0)


@pytest.mark.long
def test_paid_evaluations_are_led_to_the_line(rng):
    at = rng.dirichlet(np.ones(3), size=30)
    target = sk.potential(
        lambda w: float(-np.log(w).sum()), lambda w: -1.0 / w, parameters={"w": sk.simplex(3)}
    )
    warm_start = (at, -np.log(at).sum(axis=1), -1.0 / at)
    assert sk.sample(target, warm_start=warm_start, **LEARNT)["w"].shape == (4, 50, 3)


@pytest.mark.statistical
def test_priors_beside_parameters_are_added_and_have_slopes(rng, differences):
    target = sk.potential(
        lambda rate, x: np.zeros(len(x)),
        lambda rate, x: {"rate": 0.0 * rate, "x": 0.0 * x},
        parameters={
            "rate": sk.positive(prior=scipy.stats.gamma(2)),
            "x": sk.real(2, prior=scipy.stats.norm(1, 2)),
        },
        batched=True,
    )
    z = rng.normal(size=(5, 3))
    slopes = differences(target.value, z)
    np.testing.assert_allclose(target.value_and_gradient(z)[1], slopes, atol=1e-6)
    run = sk.sample(target, **{**SIZES, "draws": 200, "warmup": 150})
    check_mean(run["rate"], 2.0)
    check_mean(run["x"][..., 1], 1.0)
    check_mean((run["x"][..., 0] - 1.0) ** 2, 4.0)


def test_priors_are_given_once():
    spec = {"a": sk.real(prior=scipy.stats.norm())}
    given = {"data": [0.0], "noise_sd": 1.0, "parameters": spec}
    with pytest.raises(ConfigurationError, match="priors beside them, and prior is given too"):
        sk.forward_potential(lambda a: np.array([a]), prior=sk.gaussian_prior(0, 1), **given)
    ends = sk.forward_potential(lambda a: np.array([a]), **given).value(np.array([[0.0], [1.0]]))
    assert ends[1] - ends[0] == pytest.approx(1.0)
