"""Weights of rows, for regressors that take them."""

from __future__ import annotations

from typing import Any

from surrokit.types import FloatArray

_NAME = "sample_weight"


def takes_weights(regressor: Any) -> bool:
    """Return whether ``fit`` takes weights, in every regressor that it hands them to.

    With metadata routing an estimator made of estimators passes on only what was asked for, and
    counts as one that does not.
    """
    from sklearn import get_config
    from sklearn.base import is_regressor
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import has_fit_parameter

    routing = get_config()["enable_metadata_routing"]
    if isinstance(regressor, Pipeline):
        return not routing and takes_weights(regressor.steps[-1][1])
    if not has_fit_parameter(regressor, _NAME):
        return False
    inner = [
        part
        for part in regressor.get_params(deep=True).values()
        if hasattr(part, "fit") and hasattr(part, "predict") and is_regressor(part)
    ]
    return all(not routing and takes_weights(part) for part in inner)


def weight_arguments(regressor: Any, weights: FloatArray) -> dict[str, FloatArray]:
    """Return the keyword of ``fit`` with the weights, shape (n,), of the rows.

    A pipeline hands them to its last step.
    """
    from sklearn.pipeline import Pipeline

    name = _NAME
    prefix = ""
    while isinstance(regressor, Pipeline):
        step, regressor = regressor.steps[-1]
        prefix += f"{step}__"
    return {prefix + name: weights}
