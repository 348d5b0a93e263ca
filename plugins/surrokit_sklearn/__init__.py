"""scikit-learn on both sides: its regressors as surrogates, and posteriors as its estimators.

Estimators are imported when they are first used, so that listing plugins stays light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from surrokit import Component, hookimpl

if TYPE_CHECKING:
    from surrokit_sklearn.posteriors import BayesianGLMRegressor, BayesianLogisticRegression

__all__ = ["BayesianLogisticRegression", "BayesianGLMRegressor"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from surrokit_sklearn import posteriors

    return getattr(posteriors, name)


_KERNEL_RIDGE = {
    "estimator": "sklearn.kernel_ridge.KernelRidge",
    "parameters": {"kernel": "rbf", "alpha": 1e-6},
}
_PROCESS = "sklearn.gaussian_process.GaussianProcessRegressor"

_COMPONENTS = (
    Component(
        kind="surrogate",
        name="sklearn",
        factory="surrokit_sklearn.surrogate:EstimatorSurrogate",
        summary="any scikit-learn regressor, analytic gradients where known, else differences",
        references=(
            "Pedregosa and others 2011, Journal of Machine Learning Research 12, 2825-2830",
            "https://scikit-learn.org",
        ),
        examples=(
            _KERNEL_RIDGE,
            {"estimator": "surrokit_sklearn.estimators.polynomial_ridge"},
            {"estimator": _PROCESS, "parameters": {"alpha": 1e-6, "optimizer": None}},
            {**_KERNEL_RIDGE, "max_points": 100},
        ),
    ),
)


@hookimpl
def surrokit_components() -> tuple[Component, ...]:
    """Offer scikit-learn's regressors as surrogates."""
    return _COMPONENTS
