"""Snippets of the guide "Use scikit-learn"."""

# ruff: noqa: E402, N803 (imports stand where they are shown, and X is scikit-learn's name)

# [surrogate]
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import surrokit as sk

target = sk.make("potential", "simulated-logistic", n_rows=20_000, dim=5)
cubic = make_pipeline(PolynomialFeatures(3, include_bias=False), Ridge(alpha=1e-6))
run = sk.sample(target, surrogate=("sklearn", {"estimator": cubic}), warmup=200, draws=500, seed=1)
print("acceptance", run.acceptance)
print("R-hat", run.rhat().max().round(3))
print("gradients are", run.surrogate.gradient_kind)
print(run.fit_quality)
# [trees]
from sklearn.ensemble import ExtraTreesRegressor

trees = {"estimator": ExtraTreesRegressor(20), "max_points": 500}
run = sk.sample(
    target,
    sampler=("hmc", {"n_steps": 4}),
    surrogate=("sklearn", trees),
    warmup=150,
    draws=100,
    chains=2,
    seed=1,
)
print("acceptance", run.acceptance)
print("gradients are", run.surrogate.gradient_kind)
# [gradient]
import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin


class Quartic(RegressorMixin, BaseEstimator):
    """Least squares on the fourth powers of the inputs."""

    def fit(self, X, y):
        self.weights_ = np.linalg.lstsq(X**4, y, rcond=None)[0]
        return self

    def predict(self, X):
        return X**4 @ self.weights_

    def predict_gradient(self, X):
        return 4 * X**3 * self.weights_


# [regressor]
from surrokit_sklearn import AdditiveNetworkRegressor

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, (40, 3))
y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
slopes = np.column_stack([3 * np.cos(3 * X[:, 0]), X[:, 2], X[:, 1]])
slopes[30:] = np.nan  # not known at the last ten

values_only = AdditiveNetworkRegressor(random_state=0).fit(X, y)
network = AdditiveNetworkRegressor(random_state=0).fit(X, y, gradients=slopes)

new = rng.uniform(-1.5, 1.5, (500, 3))
truth = np.sin(3 * new[:, 0]) + new[:, 1] * new[:, 2]
print("R2 with values alone", round(values_only.score(new, truth), 3))
print("R2 with gradients", round(network.score(new, truth), 3))
print(network.predict_gradient(np.zeros((1, 3))).round(2))
# [process]
from surrokit_sklearn import GPRegressor

process = GPRegressor(random_state=0).fit(X, y)
mean, std = process.predict(new[:2], return_std=True)
print(mean.round(2), std.round(2))
# [search]
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

made = make_pipeline(StandardScaler(), AdditiveNetworkRegressor(random_state=0))
grid = {
    "additivenetworkregressor__n_nodes": [20, 200],
    "additivenetworkregressor__ridge": [1e-6, 1.0],
}
search = GridSearchCV(made, grid, cv=3).fit(new[:100], truth[:100])
print(search.best_params_, round(search.best_score_, 3))
# [more]
process.partial_fit(new[:10], truth[:10])
# [end]
