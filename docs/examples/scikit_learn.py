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


# [end]
