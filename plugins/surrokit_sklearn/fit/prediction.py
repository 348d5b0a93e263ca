"""Predictions of fitted regressors, in the shapes of potentials."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from surrokit.errors import SurrogateFitError
from surrokit.types import FloatArray


def predicted(regressor: Any, inputs: FloatArray) -> FloatArray:
    """Return the predictions, shape (n,), at inputs of shape (n, dim).

    Raises
    ------
    SurrogateFitError
        If the regressor returns another shape.
    """
    from sklearn import config_context

    # Inputs are checked already, and its checks cost more than a small prediction.
    with config_context(assume_finite=True, skip_parameter_validation=True):
        found = np.asarray(regressor.predict(inputs), dtype=np.float64)
    n = len(inputs)
    if found.shape not in ((n,), (n, 1)):
        raise SurrogateFitError(
            f"{type(regressor).__name__}.predict must return one number for each of {n} rows, got "
            f"shape {found.shape}; use a regressor for a single target"
        )
    return found.reshape(n)


def predicted_deviations(regressor: Any, inputs: FloatArray) -> FloatArray:
    """Return the standard deviations of the predictions, shape (n,), at inputs (n, dim)."""
    _, deviations = regressor.predict(inputs, return_std=True)
    return np.asarray(deviations, dtype=np.float64).reshape(len(inputs))


def returns_deviations(regressor: Any) -> bool:
    """Return whether ``predict`` takes ``return_std``; of a pipeline, whether its last step's does.

    With metadata routing a pipeline passes on only what was asked for, and counts as one that
    does not.
    """
    from sklearn import get_config
    from sklearn.pipeline import Pipeline

    while isinstance(regressor, Pipeline):
        if get_config()["enable_metadata_routing"]:
            return False
        regressor = regressor.steps[-1][1]
    try:
        return "return_std" in inspect.signature(regressor.predict).parameters
    except (AttributeError, TypeError, ValueError):
        return False  # without such a method before it is fitted, or not written in Python
