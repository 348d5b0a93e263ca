"""Both processes against scikit-learn, dense formulas and each other."""

import attrs
import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from surrokit.errors import SurrogateFitError
from surrokit.surrogate.whitening import Whitening
from surrokit_gp.fitted import FittedProcess
from surrokit_gp.kernels import unit_matrix
from surrokit_gp.posterior import (
    condition,
    condition_sparse,
    exact_likelihood,
    inducing_points,
    left_out,
    sparse_likelihood,
)
from surrokit_gp.rows import TrainingRows
from surrokit_gp.search import Hyperparameters
from surrokit_gp.trend import Polynomial, features

DIM, N = 3, 14
HYPER = Hyperparameters(length_scales=(1.4, 0.9, 2.0), signal_sd=2.5, noise_sd=0.4)
KINDS = ["zero", "constant", "linear", "quadratic"]


def potential(positions):
    return np.square(positions).sum(axis=1) + np.sin(positions[:, 0])


def gradient(positions):
    slopes = 2.0 * positions
    slopes[:, 0] += np.cos(positions[:, 0])
    return slopes


@pytest.fixture
def rows(rng):
    positions = rng.standard_normal((N, DIM)) * [1.0, 2.0, 0.5] + 3.0
    return TrainingRows(
        positions=positions,
        values=potential(positions),
        gradients=gradient(positions),
        copies=rng.integers(1, 4, N).astype(float),
        tail_sd=np.linspace(0.0, 1.0, N),
    )


def observed(rows, kind="zero", gradient_rows=()):
    """Values, and gradients of some rows, about a mean function in whitened coordinates."""
    whitening = Whitening.of(rows.positions, np.ones(len(rows)))
    gradients = np.full_like(rows.gradients, np.nan)
    gradients[list(gradient_rows)] = rows.gradients[list(gradient_rows)]
    rows, flat = attrs.evolve(rows, gradients=gradients), Polynomial.of(np.empty(0), DIM)
    return rows.about(whitening, kind, flat)


def of_values(positions, values, **more):
    """Values at positions as they are, about a mean function of zero."""
    n = len(values)
    rest = {"gradients": np.full_like(positions, np.nan), "copies": np.ones(n)} | more
    return TrainingRows(positions=positions, values=values, tail_sd=np.zeros(n), **rest)


def exact_of(rows, hyperparameters=HYPER):
    return condition(rows, hyperparameters)[0]


def sparse_of(rows, inducing, hyperparameters=HYPER):
    return condition_sparse(rows, hyperparameters, inducing)[0]


def kernel(left, right):
    """The covariance between positions z of a process with the hyperparameters above."""
    scales = np.array(HYPER.length_scales)
    return HYPER.signal_sd**2 * unit_matrix(left / scales, right / scales)


def z(observations):
    return observations.positions


def test_hyperparameters_equal_predictions_of_scikit_learn(rng):
    positions, where = rng.standard_normal((40, DIM)), rng.standard_normal((15, DIM))
    values = potential(positions)
    theirs = ConstantKernel(HYPER.signal_sd**2) * RBF(HYPER.length_scales)
    other = GaussianProcessRegressor(theirs, alpha=HYPER.noise_sd**2, optimizer=None)
    other.fit(positions, values)
    mean, sd = other.predict(where, return_std=True)

    posterior = exact_of(of_values(positions, values), HYPER)

    np.testing.assert_allclose(kernel(where, positions) @ posterior.weights, mean, rtol=1e-8)
    np.testing.assert_allclose(posterior.covariance(where), sd**2, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(
        posterior.log_likelihood, other.log_marginal_likelihood_value_, rtol=1e-8
    )
    assert posterior.jitter == 0.0


@pytest.mark.parametrize("kind", ["constant", "linear", "quadratic"])
def test_coefficients_are_integrated_out(rows, kind, rng):
    vague = 1e4
    observations = observed(rows, kind)
    posterior = exact_of(observations)
    where = rng.standard_normal((5, DIM))
    basis = features(kind, where)
    # values with a proper, but vague, normal prior on the coefficients
    full = kernel(z(observations), z(observations)) + np.diag(observations.noise(HYPER.noise_sd))
    full += vague**2 * observations.basis @ observations.basis.T
    values, cross = observations.values, kernel(where, z(observations))
    both = cross + vague**2 * basis @ observations.basis.T

    mean = both @ np.linalg.solve(full, values)
    found = basis @ posterior.profile.coefficients + cross @ posterior.weights
    np.testing.assert_allclose(found, mean, rtol=1e-5)
    prior = posterior.variance + vague**2 * np.square(basis).sum(axis=1)
    variance = prior - np.einsum("nm,mn->n", both, np.linalg.solve(full, both.T))
    np.testing.assert_allclose(posterior.covariance(where), variance, rtol=1e-3)
    # equation (2.43) of Rasmussen and Williams, with the prior's own constants taken off
    p = basis.shape[1]
    evidence = -0.5 * values @ np.linalg.solve(full, values)
    evidence -= 0.5 * np.linalg.slogdet(full)[1] + 0.5 * N * np.log(2 * np.pi)
    evidence += p * np.log(vague) + 0.5 * p * np.log(2 * np.pi)
    np.testing.assert_allclose(posterior.log_likelihood, evidence, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_inducing_points_at_the_data_give_the_full_process(rows, kind, rng):
    observations = observed(rows, kind)
    exact = exact_of(observations)
    sparse = sparse_of(observations, z(observations))
    where = rng.standard_normal((6, DIM))

    np.testing.assert_allclose(sparse.log_likelihood, exact.log_likelihood, rtol=1e-10)
    np.testing.assert_allclose(sparse.weights, exact.weights, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(
        sparse.profile.coefficients, exact.profile.coefficients, rtol=1e-8, atol=1e-8
    )
    np.testing.assert_allclose(
        sparse.covariance(where), exact.covariance(where), rtol=1e-8, atol=1e-8
    )
    one = exact_likelihood(observations, HYPER)[1]
    other = sparse_likelihood(observations, HYPER, z(observations))[1]
    np.testing.assert_allclose(other[: DIM + 2], one[: DIM + 2], rtol=1e-6)


def test_fitc_is_what_the_paper_writes(rows, rng):
    observations = observed(rows)
    inducing, where = z(observations)[:5] + 0.1, rng.standard_normal((6, DIM))
    values = observations.values
    posterior = sparse_of(observations, inducing)
    among, across = kernel(inducing, inducing), kernel(inducing, z(observations))
    nystrom = across.T @ np.linalg.solve(among, across)
    independent = HYPER.signal_sd**2 - np.diag(nystrom) + observations.noise(HYPER.noise_sd)
    sigma = among + (across / independent) @ across.T
    weights = np.linalg.solve(sigma, across @ (values / independent))

    np.testing.assert_allclose(posterior.weights, weights, rtol=1e-8)
    cross = kernel(where, inducing)
    spread = HYPER.signal_sd**2 - np.einsum(
        "nm,mn->n", cross, (np.linalg.inv(among) - np.linalg.inv(sigma)) @ cross.T
    )
    np.testing.assert_allclose(posterior.covariance(where), spread, rtol=1e-8, atol=1e-8)
    covariance = nystrom + np.diag(independent)
    evidence = -0.5 * values @ np.linalg.solve(covariance, values)
    evidence -= 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1]
    np.testing.assert_allclose(posterior.log_likelihood, evidence, rtol=1e-10)


def hyperparameters(point):
    lengths, (signal, noise) = np.exp(point[:DIM]), np.exp(point[DIM : DIM + 2])
    return Hyperparameters(length_scales=lengths, signal_sd=signal, noise_sd=noise)


POINT = np.array([0.3, 0.5, -0.1, 0.7, -1.0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gradient_rows", [(), (1, 4, 5, 9)], ids=["values", "with-gradients"])
def test_derivatives_of_the_exact_likelihood(rows, kind, gradient_rows, differences):
    observations = observed(rows, kind, gradient_rows)

    def values(points):
        return np.array([exact_likelihood(observations, hyperparameters(p))[0] for p in points])

    slope = exact_likelihood(observations, hyperparameters(POINT))[1]
    expected = differences(values, POINT[None])[0]
    np.testing.assert_allclose(slope[: DIM + 2], expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_of_the_likelihood_of_fitc(rows, kind, differences):
    observations = observed(rows, kind)
    point = np.append(POINT, z(observations)[:5] + 0.1)

    def likelihood(point):
        inducing = point[DIM + 2 :].reshape(5, DIM)
        return sparse_likelihood(observations, hyperparameters(point), inducing)

    expected = differences(lambda ps: np.array([likelihood(p)[0] for p in ps]), point[None])[0]
    np.testing.assert_allclose(likelihood(point)[1], expected, rtol=1e-6, atol=1e-6)


def test_coefficients_with_a_normal_prior_are_one_more_kernel(rows, rng, differences):
    observations, where = observed(rows, "quadratic"), rng.standard_normal((5, DIM))
    sd = rng.uniform(0.5, 2.0, 10)
    posterior = condition(observations, HYPER, sd)[0]

    def prior(left, right):
        return (
            kernel(left, right)
            + features("quadratic", left) * sd**2 @ features("quadratic", right).T
        )

    full = prior(z(observations), z(observations)) + np.diag(observations.noise(HYPER.noise_sd))
    cross, values = prior(where, z(observations)), observations.values
    evidence = -0.5 * values @ np.linalg.solve(full, values)
    evidence -= 0.5 * np.linalg.slogdet(2.0 * np.pi * full)[1]
    np.testing.assert_allclose(posterior.log_likelihood, evidence)
    left = prior(where, where) - cross @ np.linalg.solve(full, cross.T)
    np.testing.assert_allclose(posterior.covariance(where, where), left, atol=1e-9)
    np.testing.assert_allclose(posterior.covariance(where), np.diag(left), atol=1e-9)

    def by_sd(logs):
        return np.array([exact_likelihood(observations, HYPER, np.exp(log))[0] for log in logs])

    slopes = exact_likelihood(observations, HYPER, sd)[1][DIM + 2 :]
    np.testing.assert_allclose(slopes, differences(by_sd, np.log(sd)[None])[0], rtol=1e-5)


@pytest.mark.parametrize("sparse", [False, True])
def test_errors_left_out_are_those_of_a_process_of_the_others(rows, sparse):
    observations = observed(rows, "linear", () if sparse else (1, 4, 5, 9))
    others = np.delete(np.arange(N), 4)
    if sparse:
        inducing = z(observations)[:5] + 0.1
        _, (*_, dual, _, own) = condition_sparse(observations, HYPER, inducing)
        errors = (dual / own)[4:5]
        without = sparse_of(observations.take(others), inducing)
    else:
        posterior, _, dual = condition(observations, HYPER)
        errors = left_out(observations, posterior, dual)[4]
        without = exact_of(observations.take(others))
    flat = Polynomial.of(np.empty(0), DIM)
    mean = FittedProcess.of(
        without,
        observations.take(others),
        Whitening.identity(DIM),
        flat,
        hyperparameters=HYPER,
        mean="linear",
    )
    values, gradients = mean.value_and_gradient(z(observations)[4:5])
    expected = np.append(observations.values[4:5] - values, observations.gradients[4] - gradients)
    np.testing.assert_allclose(errors, expected[: len(errors)], rtol=1e-6)


def test_derivatives_as_observations_are_limits_of_values(rng):
    """A derivative says what two values close by say."""
    positions, step = rng.standard_normal((4, DIM)), 1e-4
    values, slopes = potential(positions), gradient(positions)
    units = step * np.eye(DIM)
    ahead = (positions[:2, None, :] + units).reshape(-1, DIM)
    behind = (positions[:2, None, :] - units).reshape(-1, DIM)
    where = rng.standard_normal((6, DIM))
    stencil = np.zeros((4 + 2 * DIM, 4 + 4 * DIM))
    stencil[:4, :4] = np.eye(4)
    own = np.arange(2 * DIM)
    stencil[4 + own, 4 + own], stencil[4 + own, 4 + 2 * DIM + own] = 0.5 / step, -0.5 / step
    places = np.concatenate([positions, ahead, behind])
    noise = HYPER.noise_sd**2 * np.concatenate(
        [np.ones(4), np.tile(1.0 / np.square(HYPER.length_scales), 2)]
    )
    covariance = stencil @ kernel(places, places) @ stencil.T + np.diag(noise)
    targets = np.concatenate([values, slopes[:2].ravel()])
    cross = kernel(where, places) @ stencil.T
    expected = cross @ np.linalg.solve(covariance, targets)
    spread = HYPER.signal_sd**2 - np.einsum("nm,mn->n", cross, np.linalg.solve(covariance, cross.T))

    known = np.vstack([slopes[:2], np.full((2, DIM), np.nan)])
    posterior = exact_of(of_values(positions, values, gradients=known), HYPER)
    away = where[:, None, :] / np.array(HYPER.length_scales) - posterior.centres
    weighed = posterior.weights + np.einsum("nmd,md->nm", away, posterior.gradient_weights)
    found = (kernel(where, positions) * weighed).sum(axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    np.testing.assert_allclose(posterior.covariance(where), spread, rtol=1e-4, atol=1e-5)


def test_a_repeated_value_is_a_value_with_less_noise(rng):
    positions = rng.standard_normal((6, DIM))
    values = potential(positions)
    twice = np.concatenate([positions, positions[:2]]), np.concatenate([values, values[:2]])
    once = of_values(positions, values, copies=np.array([2.0, 2.0, 1, 1, 1, 1]))
    where = rng.standard_normal((5, DIM))
    means = []
    for observations in (of_values(*twice), once):
        weights = exact_of(observations).weights
        means.append(kernel(where, z(observations)) @ weights)
    np.testing.assert_allclose(means[0], means[1], rtol=1e-10)


def test_variance_is_never_negative(rng):
    positions = rng.standard_normal((60, DIM))
    hyper = Hyperparameters(length_scales=3.0, signal_sd=50.0, noise_sd=1e-4)
    observations = of_values(positions, potential(positions))
    for posterior in (
        exact_of(observations, hyper),
        sparse_of(observations, positions[:40], hyper),
    ):
        assert (posterior.covariance(positions) >= 0.0).all()
        far = posterior.covariance(np.full((1, DIM), 1e3))
        np.testing.assert_allclose(far, 50.0**2)


def test_a_value_without_noise_is_met():
    positions = np.array([[0.0], [1.0], [2.5]])
    hyper = Hyperparameters(length_scales=1.0, signal_sd=2.0, noise_sd=0.0)
    values = np.array([1.0, -1.0, 3.0])
    for posterior in (
        exact_of(of_values(positions, values), hyper),
        sparse_of(of_values(positions, values), positions, hyper),
    ):
        mean = 4.0 * unit_matrix(positions, posterior.centres) @ posterior.weights
        np.testing.assert_allclose(mean, values, rtol=1e-6)


@pytest.fixture
def positions(rng):
    return rng.standard_normal((200, 3))


def test_more_than_there_are_points(positions, rng):
    with pytest.raises(
        SurrogateFitError,
        match="n_inducing=201 inducing points cannot be found among 200 distinct training points; "
        "explore for longer, set n_inducing to 200 or less, or leave it None",
    ):
        inducing_points("data", positions, 201, rng)


def test_spread_points_leave_less_distance_than_drawn_ones(positions):
    def distance(points):
        away = positions[:, None, :] - points
        return np.square(away).sum(axis=2).min(axis=1).mean()

    drawn = inducing_points("data", positions, 20, np.random.default_rng(0))
    spread = inducing_points("k-means++", positions, 20, np.random.default_rng(0))
    assert distance(spread) < 0.7 * distance(drawn)
    assert len(np.unique(spread, axis=0)) == 20
