"""Gaussian processes are radial networks with a certain ridge matrix, and so is FITC."""

import attrs
import numpy as np
import pytest

import surrokit as sk
from surrokit.interfaces import Evaluations, LearningProblem
from surrokit_networks.equations import Basis, Equations
from surrokit_networks.least_squares import solve
from surrokit_networks.nodes import Nodes
from surrokit_networks.trend import TrendColumns

DIM, NOISE, LENGTH = 2, 0.3, 0.8


def kernel(first, second):
    """exp(-|x - y|^2 / (2 l^2)), shape (len(first), len(second))."""
    squares = ((first[:, None, :] - second[None, :, :]) ** 2).sum(axis=2)
    return np.exp(-0.5 * squares / LENGTH**2)


@pytest.fixture(scope="module")
def data():
    """Points that keep their distance, values of a smooth function with noise, and new points."""
    rng = np.random.default_rng(11)
    grid = np.stack(np.meshgrid(np.arange(5.0), np.arange(5.0)), axis=-1).reshape(-1, 2) - 2.0
    points = 0.8 * grid + 0.1 * rng.standard_normal(grid.shape)
    values = np.sin(points).sum(axis=1) + NOISE * rng.standard_normal(len(points))
    return points, values, rng.uniform(-2.0, 2.0, (40, DIM))


def equations(points, values, weights=None, level=False):
    return Equations(
        whitened=points,
        targets=values[:, None],
        gradients=None,
        value_weights=np.ones(len(points)) if weights is None else weights,
        gradient_weights=np.zeros(len(points)),
        count=float(len(points)),
        trains_level=level,
    )


def network_mean(rows, centres, ridge, fresh, degree=0):
    nodes = Nodes.radial(centres=centres, square_widths=np.full(len(centres), LENGTH**2))
    basis = Basis(trend=TrendColumns(dim=DIM, degree=degree), network=nodes)
    found = solve(basis, rows, ridge)
    return basis.features(fresh) @ np.vstack([found.trend, found.weights])[:, 0] + found.level


def process_mean(points, values, fresh):
    covariance = kernel(points, points) + NOISE**2 * np.eye(len(points))
    return kernel(fresh, points) @ np.linalg.solve(covariance, values)


def fitc_mean(points, values, inducing, fresh):
    """The predictive mean of Snelson and Ghahramani (2006)."""
    own, cross = kernel(inducing, inducing), kernel(inducing, points)
    reached = np.einsum("ij,ij->j", cross, np.linalg.solve(own, cross))
    noise = 1.0 - reached + NOISE**2
    whole = own + (cross / noise) @ cross.T
    return kernel(fresh, inducing) @ np.linalg.solve(whole, cross @ (values / noise))


def test_the_mean_of_a_process_is_a_network_with_centres_at_the_data(data):
    points, values, fresh = data
    ridge = NOISE**2 * kernel(points, points)
    found = network_mean(equations(points, values), points, ridge, fresh)
    np.testing.assert_allclose(found, process_mean(points, values, fresh), atol=1e-8)


def test_the_height_of_the_kernel_goes_into_the_ridge(data):
    points, values, fresh = data
    height = 2.5
    covariance = height * kernel(points, points) + NOISE**2 * np.eye(len(points))
    expected = height * kernel(fresh, points) @ np.linalg.solve(covariance, values)
    ridge = NOISE**2 / height * kernel(points, points)
    found = network_mean(equations(points, values), points, ridge, fresh)
    np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("degree", [0, 1, 2])
def test_a_mean_without_prior_is_a_trend_without_ridge(data, degree):
    # Universal kriging: generalised least squares for the mean, the process for what is left.
    points, values, fresh = data
    covariance = kernel(points, points) + NOISE**2 * np.eye(len(points))
    trend = Basis(trend=TrendColumns(dim=DIM, degree=degree), network=None)
    design, new = (
        np.hstack([np.ones((len(each), 1)), trend.features(each)]) for each in (points, fresh)
    )
    solved_design = np.linalg.solve(covariance, design)
    mean = np.linalg.solve(design.T @ solved_design, solved_design.T @ values)
    left = np.linalg.solve(covariance, values - design @ mean)
    rows = equations(points, values, level=True)
    found = network_mean(rows, points, NOISE**2 * kernel(points, points), fresh, degree)
    np.testing.assert_allclose(found, new @ mean + kernel(fresh, points) @ left, atol=1e-8)


def test_the_mean_of_fitc_is_a_network_with_centres_at_the_inducing_points(data):
    points, values, fresh = data
    inducing = np.random.default_rng(3).permutation(points)[:9] + 0.05
    own, cross = kernel(inducing, inducing), kernel(inducing, points)
    short = 1.0 - np.einsum("ij,ij->j", cross, np.linalg.solve(own, cross))
    rows = equations(points, values, weights=1.0 / (short + NOISE**2))
    found = network_mean(rows, inducing, own, fresh)
    np.testing.assert_allclose(found, fitc_mean(points, values, inducing, fresh), atol=1e-8)


def test_fitc_with_inducing_points_at_the_data_is_the_process(data):
    points, values, fresh = data
    rows = equations(points, values, weights=np.full(len(points), NOISE**-2))
    found = network_mean(rows, points, kernel(points, points), fresh)
    np.testing.assert_allclose(found, process_mean(points, values, fresh), atol=1e-8)
    np.testing.assert_allclose(found, fitc_mean(points, values, points, fresh), atol=1e-8)


def test_a_ridge_matrix_that_is_a_number_times_the_identity_is_that_number(data):
    points, values, _ = data
    nodes = Nodes.radial(centres=points, square_widths=np.full(len(points), LENGTH**2))
    basis = Basis(trend=TrendColumns(dim=DIM, degree=0), network=nodes)
    rows = equations(points, values, level=True)
    one, other = (solve(basis, rows, ridge) for ridge in (0.2, 0.2 * np.eye(len(points))))
    for name in attrs.fields_dict(type(one)):
        np.testing.assert_allclose(getattr(other, name), getattr(one, name), rtol=1e-9)


@pytest.mark.parametrize("name", ["gp", "fitc"])
def test_the_registered_process_has_the_mean_of_a_network(data, name):
    # Whatever a plugin computes in its own way: at given hyperparameters it is this network.
    points, values, fresh = data
    surrogate = sk.make(
        "surrogate",
        name,
        mean="constant",
        whiten=False,
        tail="full",
        hyperparameters={"length_scales": LENGTH, "signal_sd": 1.0, "noise_sd": NOISE},
        **({"n_inducing": len(points), "inducing": "data"} if name == "fitc" else {}),
    )
    learner = surrogate.learner(
        LearningProblem(dim=DIM, capabilities=frozenset()), np.random.default_rng(0)
    )
    learner.observe(Evaluations(positions=points, values=values))
    rows = equations(points, values, level=True)
    expected = network_mean(rows, points, NOISE**2 * kernel(points, points), fresh)
    np.testing.assert_allclose(learner.fit().value(fresh), expected, atol=1e-8)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_registered_sparse_process_has_the_mean_of_a_network(data, seed):
    points, values, fresh = data
    surrogate = sk.make(
        "surrogate",
        "fitc",
        mean="constant",
        whiten=False,
        tail="full",
        n_inducing=9,
        inducing="data",
        hyperparameters={"length_scales": LENGTH, "signal_sd": 1.0, "noise_sd": NOISE},
    )
    learner = surrogate.learner(
        LearningProblem(dim=DIM, capabilities=frozenset()), np.random.default_rng(seed)
    )
    learner.observe(Evaluations(positions=points, values=values))
    process = learner.fit()
    inducing = process.centres
    own, cross = kernel(inducing, inducing), kernel(inducing, points)
    short = 1.0 - np.einsum("ij,ij->j", cross, np.linalg.solve(own, cross))
    rows = equations(points, values, weights=1.0 / (short + NOISE**2), level=True)
    expected = network_mean(rows, inducing, own, fresh)
    np.testing.assert_allclose(process.value(fresh), expected, atol=1e-8)
