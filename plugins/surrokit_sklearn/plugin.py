"""What this plugin offers to surrokit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from surrokit.components import Component
from surrokit.markers import hookimpl

if TYPE_CHECKING:
    from surrokit.distinct import Tail
    from surrokit_sklearn.surrogate import EstimatorSurrogate, Gradient, Trend


def sklearn(
    *,
    estimator: Any,
    parameters: Mapping[str, Any] | None = None,
    whiten: bool = True,
    trend: Trend = "isotropic",
    tail: Tail = "down-weighted",
    gradient: Gradient = "auto",
    step: float | None = None,
    max_points: int | None = 2000,
    hold_out: float = 0.1,
) -> EstimatorSurrogate:
    """Return a surrogate; see :class:`surrokit_sklearn.surrogate.EstimatorSurrogate`.

    ``estimator`` may also be the dotted name of a class, or of a function that makes a regressor,
    and ``parameters`` are what it is called with.
    """
    from surrokit_sklearn.estimator_setting import regressor_given
    from surrokit_sklearn.surrogate import EstimatorSurrogate

    return EstimatorSurrogate(
        estimator=regressor_given(estimator, parameters),
        whiten=whiten,
        trend=trend,
        tail=tail,
        gradient=gradient,
        step=step,
        max_points=max_points,
        hold_out=hold_out,
    )


@hookimpl
def surrokit_register_surrogates() -> Sequence[Component]:
    """Register scikit-learn regressors as surrogates."""
    kernel_ridge = {
        "estimator": "sklearn.kernel_ridge.KernelRidge",
        "parameters": {"kernel": "rbf", "alpha": 1e-6},
    }
    process = "sklearn.gaussian_process.GaussianProcessRegressor"
    return [
        Component(
            kind="surrogate",
            name="sklearn",
            factory=sklearn,
            summary="any scikit-learn regressor, analytic gradients where known, else differences",
            references=(
                "Pedregosa and others 2011, Journal of Machine Learning Research 12, 2825-2830",
                "https://scikit-learn.org",
            ),
            examples=(
                kernel_ridge,
                {"estimator": "surrokit_sklearn.ready_made.polynomial_ridge", "trend": "none"},
                {"estimator": process, "parameters": {"alpha": 1e-6, "optimizer": None}},
                {**kernel_ridge, "gradient": "differences", "hold_out": 0.0, "whiten": False},
            ),
        ),
    ]
