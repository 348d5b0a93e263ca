"""Both processes against scikit-learn, dense formulas and each other."""

import attrs
import numpy as np
import pytest
from plain_observations import of_values
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from surrokit.errors import SurrogateFitError
from surrokit.surrogate.whitening import Whitening
from surrokit_gp.data.mean_functions import features
from surrokit_gp.data.observations import Frame, Observations
from surrokit_gp.data.training_rows import TrainingRows
from surrokit_gp.kernel.hyperparameters import Hyperparameters
from surrokit_gp.kernel.kernel import SquaredExponential
from surrokit_gp.posterior.exact import ExactPosterior, exact_likelihood
from surrokit_gp.posterior.sparse import SparsePosterior, sparse_likelihood

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


def observed(rows, kind="zero", slope_rows=(), whiten=True):
    whitening = Whitening.of(rows.positions, np.ones(len(rows)))
    frame = Frame(whitening=whitening, whiten=whiten)
    return Observations.of_rows(rows, np.array(slope_rows, dtype=int), frame, kind)


def no_features(positions):
    return np.empty((len(positions), 0))


def test_hyperparameters_equal_predictions_of_scikit_learn(rng):
    positions, where = rng.standard_normal((40, DIM)), rng.standard_normal((15, DIM))
    values = potential(positions)
    kernel = ConstantKernel(HYPER.signal_sd**2) * RBF(HYPER.length_scales)
    other = GaussianProcessRegressor(kernel, alpha=HYPER.noise_sd**2, optimizer=None)
    other.fit(positions, values)
    mean, sd = other.predict(where, return_std=True)

    posterior = ExactPosterior.of(of_values(positions, values), HYPER)

    cross = posterior.kernel.matrix(where, posterior.centres)
    np.testing.assert_allclose(cross @ posterior.weights, mean, rtol=1e-8)
    np.testing.assert_allclose(
        posterior.variance(where, no_features(where)), sd**2, rtol=1e-8, atol=1e-8
    )
    np.testing.assert_allclose(
        posterior.log_likelihood, other.log_marginal_likelihood_value_, rtol=1e-8
    )
    assert posterior.jitter == 0.0


def test_kernel_is_that_of_scikit_learn_with_large_offsets(rng):
    left, right = rng.standard_normal((6, DIM)) + 1e3, rng.standard_normal((5, DIM)) + 1e3
    kernel = SquaredExponential.of(HYPER, DIM)
    expected = (ConstantKernel(HYPER.signal_sd**2) * RBF(HYPER.length_scales))(left, right)
    np.testing.assert_allclose(kernel.matrix(left, right), expected, rtol=1e-9)
    assert (np.diag(kernel.matrix(left, left)) == kernel.variance).all()


def dense(observations, hyperparameters, vague):
    """Covariance of values with a proper, but vague, normal prior on the coefficients."""
    kernel = SquaredExponential.of(hyperparameters, DIM)
    plain = kernel.matrix(observations.positions, observations.positions)
    plain += np.diag(observations.noise(hyperparameters.noise_sd))
    return plain + vague**2 * observations.basis @ observations.basis.T


@pytest.mark.parametrize("kind", ["constant", "linear", "quadratic"])
def test_coefficients_are_integrated_out(rows, kind, rng):
    vague = 1e4
    observations = observed(rows, kind)
    posterior = ExactPosterior.of(observations, HYPER)
    where = rng.standard_normal((5, DIM))
    basis = features(kind, where)
    full = dense(observations, HYPER, vague)
    cross = posterior.kernel.matrix(where, observations.positions)
    both = cross + vague**2 * basis @ observations.basis.T

    mean = both @ np.linalg.solve(full, observations.values)
    found = basis @ posterior.coefficients + cross @ posterior.weights
    np.testing.assert_allclose(found, mean, rtol=1e-5)
    prior = posterior.kernel.variance + vague**2 * np.square(basis).sum(axis=1)
    variance = prior - np.einsum("nm,mn->n", both, np.linalg.solve(full, both.T))
    np.testing.assert_allclose(posterior.variance(where, basis), variance, rtol=1e-3)
    # equation (2.43) of Rasmussen and Williams, with the prior's own constants taken off
    p = basis.shape[1]
    evidence = -0.5 * observations.values @ np.linalg.solve(full, observations.values)
    evidence -= 0.5 * np.linalg.slogdet(full)[1] + 0.5 * N * np.log(2 * np.pi)
    evidence += p * np.log(vague) + 0.5 * p * np.log(2 * np.pi)
    np.testing.assert_allclose(posterior.log_likelihood, evidence, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_inducing_points_at_the_data_give_the_full_process(rows, kind, rng):
    observations = observed(rows, kind)
    exact = ExactPosterior.of(observations, HYPER)
    sparse = SparsePosterior.of(observations, HYPER, observations.positions)
    where = rng.standard_normal((6, DIM))
    basis = features(kind, where)

    np.testing.assert_allclose(sparse.log_likelihood, exact.log_likelihood, rtol=1e-10)
    np.testing.assert_allclose(sparse.weights, exact.weights, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(sparse.coefficients, exact.coefficients, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(
        sparse.variance(where, basis), exact.variance(where, basis), rtol=1e-8, atol=1e-8
    )
    one = exact_likelihood(observations, HYPER)
    other = sparse_likelihood(observations, HYPER, observations.positions)
    np.testing.assert_allclose(other.length_scales, one.length_scales, rtol=1e-6)
    np.testing.assert_allclose(other.noise, one.noise, rtol=1e-6)


def test_fitc_is_what_the_paper_writes(rows, rng):
    observations = observed(rows)
    inducing, where = observations.positions[:5] + 0.1, rng.standard_normal((6, DIM))
    posterior = SparsePosterior.of(observations, HYPER, inducing)
    kernel = posterior.kernel
    among, across = (
        kernel.matrix(inducing, inducing),
        kernel.matrix(inducing, observations.positions),
    )
    nystrom = across.T @ np.linalg.solve(among, across)
    independent = kernel.variance - np.diag(nystrom) + observations.noise(HYPER.noise_sd)
    sigma = among + (across / independent) @ across.T
    weights = np.linalg.solve(sigma, across @ (observations.values / independent))

    np.testing.assert_allclose(posterior.weights, weights, rtol=1e-8)
    cross = kernel.matrix(where, inducing)
    spread = kernel.variance - np.einsum(
        "nm,mn->n", cross, (np.linalg.inv(among) - np.linalg.inv(sigma)) @ cross.T
    )
    np.testing.assert_allclose(
        posterior.variance(where, no_features(where)), spread, rtol=1e-8, atol=1e-8
    )
    covariance = nystrom + np.diag(independent)
    evidence = -0.5 * observations.values @ np.linalg.solve(covariance, observations.values)
    evidence -= 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1]
    np.testing.assert_allclose(posterior.log_likelihood, evidence, rtol=1e-10)


def hyperparameters(point):
    lengths, (signal, noise) = np.exp(point[:DIM]), np.exp(point[DIM : DIM + 2])
    return Hyperparameters(length_scales=lengths, signal_sd=signal, noise_sd=noise)


POINT = np.array([0.3, 0.5, -0.1, 0.7, -1.0])


@pytest.mark.parametrize("whiten", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("slope_rows", [(), (1, 4, 5, 9)], ids=["values", "with-gradients"])
def test_derivatives_of_the_exact_likelihood(rows, kind, slope_rows, whiten, differences):
    observations = observed(rows, kind, slope_rows, whiten)

    def values(points):
        return np.array([exact_likelihood(observations, hyperparameters(p)).value for p in points])

    found = exact_likelihood(observations, hyperparameters(POINT))
    slope = np.array([*found.length_scales, found.signal, found.noise])
    expected = differences(values, POINT[None])[0]
    np.testing.assert_allclose(slope, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_of_the_likelihood_of_fitc(rows, kind, differences):
    observations = observed(rows, kind)
    inducing = observations.positions[:5] + 0.1

    def likelihood(point):
        moved = point[DIM + 2 :].reshape(inducing.shape)
        return sparse_likelihood(observations, hyperparameters(point), moved)

    point = np.concatenate([POINT, inducing.ravel()])
    found = likelihood(point)
    slope = np.array([*found.length_scales, found.signal, found.noise, *found.inducing.ravel()])
    expected = differences(lambda ps: np.array([likelihood(p).value for p in ps]), point[None])[0]
    np.testing.assert_allclose(slope, expected, rtol=1e-6, atol=1e-6)


def test_derivatives_as_observations_are_limits_of_values(rng):
    """A derivative says what two values close by say."""
    positions, step = rng.standard_normal((4, DIM)), 1e-4
    values, slopes = potential(positions), gradient(positions)
    units = step * np.eye(DIM)
    ahead = (positions[:2, None, :] + units).reshape(-1, DIM)
    behind = (positions[:2, None, :] - units).reshape(-1, DIM)
    kernel = SquaredExponential.of(HYPER, DIM)
    where = rng.standard_normal((6, DIM))
    stencil = np.zeros((4 + 2 * DIM, 4 + 4 * DIM))
    stencil[:4, :4] = np.eye(4)
    own = np.arange(2 * DIM)
    stencil[4 + own, 4 + own], stencil[4 + own, 4 + 2 * DIM + own] = 0.5 / step, -0.5 / step
    places = np.concatenate([positions, ahead, behind])
    noise = HYPER.noise_sd**2 * np.concatenate(
        [np.ones(4), np.tile(1.0 / np.square(HYPER.length_scales), 2)]
    )
    covariance = stencil @ kernel.matrix(places, places) @ stencil.T + np.diag(noise)
    targets = np.concatenate([values, slopes[:2].ravel()])
    cross = kernel.matrix(where, places) @ stencil.T
    expected = cross @ np.linalg.solve(covariance, targets)
    spread = kernel.variance - np.einsum("nm,mn->n", cross, np.linalg.solve(covariance, cross.T))

    observations = attrs.evolve(
        of_values(positions, values),
        slope_rows=np.array([0, 1]),
        slopes=slopes[:2],
        slope_basis=np.empty((2, DIM, 0)),
    )
    posterior = ExactPosterior.of(observations, HYPER)
    scaled = where / posterior.kernel.length_scales
    away = scaled[:, None, :] - posterior.scaled
    weighed = posterior.weights + np.einsum("nmd,md->nm", away, posterior.slope_weights)
    found = (kernel.matrix(where, positions) * weighed).sum(axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    np.testing.assert_allclose(
        posterior.variance(where, no_features(where)), spread, rtol=1e-4, atol=1e-5
    )


def test_a_repeated_value_is_a_value_with_less_noise(rng):
    positions = rng.standard_normal((6, DIM))
    values = potential(positions)
    twice = np.concatenate([positions, positions[:2]]), np.concatenate([values, values[:2]])
    once = attrs.evolve(of_values(positions, values), copies=np.array([2.0, 2.0, 1, 1, 1, 1]))
    where = rng.standard_normal((5, DIM))
    means = []
    for observations in (of_values(*twice), once):
        posterior = ExactPosterior.of(observations, HYPER)
        means.append(posterior.kernel.matrix(where, posterior.centres) @ posterior.weights)
    np.testing.assert_allclose(means[0], means[1], rtol=1e-10)


def test_variance_is_never_negative(rng):
    positions = rng.standard_normal((60, DIM))
    hyper = Hyperparameters(length_scales=3.0, signal_sd=50.0, noise_sd=1e-4)
    observations = of_values(positions, potential(positions))
    for posterior in (
        ExactPosterior.of(observations, hyper),
        SparsePosterior.of(observations, hyper, positions[:40]),
    ):
        assert (posterior.variance(positions, no_features(positions)) >= 0.0).all()
    assert posterior.slope_weights is None


def test_far_from_all_data_the_variance_is_that_of_the_signal(rng):
    positions = rng.standard_normal((10, DIM))
    posterior = ExactPosterior.of(of_values(positions, potential(positions)), HYPER)
    far = np.full((1, DIM), 1e3)
    np.testing.assert_allclose(posterior.variance(far, no_features(far)), HYPER.signal_sd**2)


def test_a_value_without_noise_is_met():
    positions = np.array([[0.0], [1.0], [2.5]])
    hyper = Hyperparameters(length_scales=1.0, signal_sd=2.0, noise_sd=0.0)
    values = np.array([1.0, -1.0, 3.0])
    for posterior in (
        ExactPosterior.of(of_values(positions, values), hyper),
        SparsePosterior.of(of_values(positions, values), hyper, positions),
    ):
        mean = posterior.kernel.matrix(positions, posterior.centres) @ posterior.weights
        np.testing.assert_allclose(mean, values, rtol=1e-6)


def test_length_scales_of_another_dimension():
    observations = of_values(np.zeros((2, 2)), np.zeros(2))
    with pytest.raises(ValueError, match="3 length scales, but positions have 2 coordinates; give"):
        exact_likelihood(observations, HYPER)


def test_a_kernel_that_cannot_be_factorised():
    observations = attrs.evolve(of_values(np.zeros((3, 1)), np.zeros(3)), copies=np.full(3, np.nan))
    hyper = Hyperparameters(length_scales=1.0, signal_sd=1.0, noise_sd=1.0)
    with pytest.raises(SurrogateFitError, match="3 x 3 kernel matrix has no Cholesky factor even"):
        ExactPosterior.of(observations, hyper)
