"""Every analytic gradient against differences, and how one is found."""

import pickle
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.decomposition import PCA
from sklearn.ensemble import VotingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor, kernels
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import BayesianRidge, LinearRegression, PoissonRegressor, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR, LinearSVR, NuSVR

from surrokit_sklearn import AdditiveNetworkRegressor
from surrokit_sklearn.gradients import analytic_gradient

DIM = 3
SCALES = np.array([0.6, 1.5, 3.0])


def data(n=60):
    inputs = np.random.default_rng(0).standard_normal((n, DIM)) * [1.0, 0.7, 1.4]
    targets = np.sin(inputs[:, 0]) + inputs[:, 1] * inputs[:, 2] + 0.3 * inputs[:, 2] ** 2
    return inputs, targets


def fitted(regressor):
    return regressor.fit(*data())


def process(kernel, **settings):
    return GaussianProcessRegressor(kernel, optimizer=None, alpha=1e-4, **settings)


KNOWN = [
    *(LinearRegression(), Ridge(), BayesianRidge(), LinearSVR()),
    make_pipeline(StandardScaler(with_std=False), KernelRidge(kernel="rbf")),
    make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), LinearRegression())),
    Pipeline([("nothing", "passthrough"), ("none", None), ("last", Ridge())]),
    make_pipeline(StandardScaler(), AdditiveNetworkRegressor(n_nodes=20, random_state=0)),
    *[KernelRidge(kernel=name, alpha=100.0) for name in ("linear", "rbf")],
    *[SVR(kernel=name, C=2.0) for name in ("linear", "rbf")],
    SVR(gamma="auto"),
    NuSVR(gamma=0.2),
    GaussianProcessRegressor(optimizer=None, alpha=1e-4),
    process(2.0 * kernels.RBF(1.3) + kernels.WhiteKernel(0.1), normalize_y=True),
    process(kernels.RBF(SCALES)),
    *[process(kernels.Matern(1.4, nu=nu)) for nu in (0.5, 1.5, np.inf)],
    process(kernels.Matern(SCALES, nu=2.5)),
    process(kernels.DotProduct(0.5) * kernels.RBF() + kernels.ConstantKernel(3.0)),
    process(kernels.RBF() * kernels.Matern(nu=1.5) + kernels.DotProduct(0.7)),
]
UNKNOWN = [
    KNeighborsRegressor(),
    KernelRidge(kernel="laplacian"),
    KernelRidge(kernel=lambda x, y: x @ y),
    process(kernels.RBF() * kernels.Matern(nu=0.7)),
    process(kernels.ExpSineSquared(1.5, 6.0) + kernels.WhiteKernel(100.0)),
    make_pipeline(PCA(), Ridge()),
    make_pipeline(StandardScaler(), KNeighborsRegressor()),
    VotingRegressor([("one", Ridge()), ("two", SVR())]),
]


def label(regressor):
    # without addresses of functions: parallel workers must name tests alike
    return re.sub(r" at 0x[0-9a-f]+", "", " ".join(repr(regressor).split()))[:60]


@pytest.mark.parametrize("regressor", KNOWN, ids=label)
def test_analytic_gradients_are_those_of_predictions(regressor, differences):
    made = fitted(regressor)
    gradient = analytic_gradient(made)
    assert gradient is not None
    inputs = 0.5 * np.random.default_rng(1).standard_normal((6, DIM))
    found = gradient(inputs)
    expected = differences(made.predict, inputs)
    assert found.shape == (6, DIM)
    assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    # One row gives what it gives among others.
    assert_allclose(gradient(inputs[:1]), found[:1], rtol=1e-9, atol=1e-12)
    again = pickle.loads(pickle.dumps(gradient))
    assert_array_equal(again(inputs), found)


@pytest.mark.parametrize("regressor", UNKNOWN, ids=label)
def test_what_is_not_known_is_not_made_up(regressor):
    assert analytic_gradient(fitted(regressor)) is None


def test_coefficients_behind_a_link_are_no_gradient():
    inputs, targets = data()
    assert analytic_gradient(PoissonRegressor().fit(inputs, np.exp(targets))) is None


def test_kernels_are_finite_where_an_input_is_a_centre():
    inputs, _ = data()
    kinked = fitted(process(kernels.Matern(nu=0.5)))
    assert np.isfinite(analytic_gradient(kinked)(inputs)).all()


class Sloped(RegressorMixin, BaseEstimator):
    """A regressor with a gradient of its own."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return (X**3).sum(axis=1)

    def predict_gradient(self, X):
        return 3.0 * X**2


class Calmed(KernelRidge):
    """A subclass that predicts in a way of its own."""

    def predict(self, X):
        return np.tanh(super().predict(X))


class Renamed(KernelRidge):
    """A subclass that predicts like its parent."""


def test_a_gradient_of_its_own_is_taken_and_types_count_unless_they_predict_otherwise():
    inputs = np.ones((2, DIM))
    assert_array_equal(analytic_gradient(fitted(Sloped()))(inputs), 3.0 * inputs)
    assert analytic_gradient(fitted(Renamed(kernel="rbf"))) is not None
    assert analytic_gradient(fitted(Calmed(kernel="rbf"))) is None
