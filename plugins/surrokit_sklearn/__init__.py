"""scikit-learn on both sides: its regressors as surrogates, and surrogates as its regressors.

The regressors are imported when they are first asked for, so that listing plugins stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surrokit_sklearn.posteriors.glm import BayesianGLMRegressor
    from surrokit_sklearn.posteriors.logistic import BayesianLogisticRegression
    from surrokit_sklearn.regressors.gaussian_processes import FITCRegressor, GPRegressor
    from surrokit_sklearn.regressors.networks import AdditiveNetworkRegressor, RBFNetworkRegressor

__all__ = [
    "AdditiveNetworkRegressor",
    "RBFNetworkRegressor",
    "GPRegressor",
    "FITCRegressor",
    "BayesianLogisticRegression",
    "BayesianGLMRegressor",
]

_MODULES = {
    "AdditiveNetworkRegressor": "surrokit_sklearn.regressors.networks",
    "RBFNetworkRegressor": "surrokit_sklearn.regressors.networks",
    "GPRegressor": "surrokit_sklearn.regressors.gaussian_processes",
    "FITCRegressor": "surrokit_sklearn.regressors.gaussian_processes",
    "BayesianLogisticRegression": "surrokit_sklearn.posteriors.logistic",
    "BayesianGLMRegressor": "surrokit_sklearn.posteriors.glm",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
