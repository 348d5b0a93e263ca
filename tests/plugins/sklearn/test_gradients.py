"""Analytic gradients against differences, and how one is found."""

import pickle
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.gaussian_process import GaussianProcessRegressor, kernels
from sklearn.kernel_ridge import KernelRidge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.svm import SVR, NuSVR

from surrokit_sklearn.fitted import CentralDifferences, gradient_of

DIM = 3
SCALES = np.array([0.6, 1.5, 3.0])


def fitted(regressor):
    """Return a fitted regressor and its gradient."""
    inputs = np.random.default_rng(0).standard_normal((60, DIM)) * [1.0, 0.7, 1.4]
    targets = np.sin(inputs[:, 0]) + inputs[:, 1] * inputs[:, 2] + 0.3 * inputs[:, 2] ** 2
    made = regressor.fit(inputs, targets)
    return made, gradient_of(made, inputs)


def process(kernel, **settings):
    return GaussianProcessRegressor(kernel, optimizer=None, alpha=1e-4, **settings)


KNOWN = [
    KernelRidge(kernel="rbf", alpha=100.0),
    SVR(kernel="rbf", C=2.0),
    SVR(gamma="auto"),
    NuSVR(gamma=0.2),
    GaussianProcessRegressor(optimizer=None, alpha=1e-4),
    process(2.0 * kernels.RBF(1.3) + kernels.WhiteKernel(0.1), normalize_y=True),
    process(kernels.RBF(SCALES)),
    *[process(kernels.Matern(1.4, nu=nu)) for nu in (1.5, np.inf)],
    process(kernels.Matern(SCALES, nu=2.5)),
    process(kernels.RBF() * kernels.Matern(nu=1.5) + kernels.ConstantKernel(3.0)),
]


class Calmed(KernelRidge):
    """A subclass that predicts in a way of its own."""

    def predict(self, X):
        return np.tanh(super().predict(X))


UNKNOWN = [
    KNeighborsRegressor(),
    KernelRidge(kernel="laplacian"),
    KernelRidge(kernel=lambda x, y: x @ y),
    process(kernels.RBF() * kernels.Matern(nu=0.7)),
    Calmed(kernel="rbf"),
]


def label(regressor):
    # without addresses of functions: parallel workers must name tests alike
    return re.sub(r" at 0x[0-9a-f]+", "", " ".join(repr(regressor).split()))[:60]


@pytest.mark.parametrize("regressor", KNOWN, ids=label)
def test_analytic_gradients_are_those_of_predictions(regressor, differences):
    made, gradient = fitted(regressor)
    assert not isinstance(gradient, CentralDifferences)
    inputs = 0.5 * np.random.default_rng(1).standard_normal((6, DIM))
    found = gradient(inputs)
    assert found.shape == (6, DIM)
    assert_allclose(found, differences(made.predict, inputs), rtol=1e-5, atol=1e-6)
    # One row gives what it gives among others.
    assert_allclose(gradient(inputs[:1]), found[:1], rtol=1e-9, atol=1e-12)
    assert_array_equal(pickle.loads(pickle.dumps(gradient))(inputs), found)


@pytest.mark.parametrize("regressor", UNKNOWN, ids=label)
def test_what_is_not_known_has_differences(regressor):
    assert isinstance(fitted(regressor)[1], CentralDifferences)


class Sloped(RegressorMixin, BaseEstimator):
    """A regressor with a gradient of its own."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return (X**3).sum(axis=1)

    def predict_gradient(self, X):
        return 3.0 * X**2


def test_a_gradient_of_its_own_is_taken():
    inputs = np.ones((2, DIM))
    assert_array_equal(fitted(Sloped())[1](inputs), 3.0 * inputs)
