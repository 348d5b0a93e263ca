"""scikit-learn on both sides: its regressors as surrogates, and surrogates as its regressors.

Estimators are imported when they are first used, so that listing plugins stays light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surrokit_sklearn.posteriors import BayesianGLMRegressor, BayesianLogisticRegression

__all__ = [
    "AdditiveNetworkRegressor",
    "RBFNetworkRegressor",
    "GPRegressor",
    "FITCRegressor",
    "BayesianLogisticRegression",
    "BayesianGLMRegressor",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from surrokit_sklearn import posteriors, regressors

    if name in regressors.SURROGATES:
        return regressors.regressor_class(name)
    return getattr(posteriors, name)
