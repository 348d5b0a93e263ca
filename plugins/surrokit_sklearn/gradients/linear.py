"""The gradient of whatever predicts linearly: its coefficients."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from surrokit.types import FloatArray

_PROBES = 4
_SCALES = np.array([[0.1], [1.0], [3.0], [10.0]])
_TOLERANCE = 1e-9


def linear_gradient(regressor: Any) -> partial[FloatArray] | None:
    """Return the gradient of a fitted regressor with ``coef_``, if it predicts linearly.

    Linear models are too many to list, and not all that have coefficients predict with them
    alone: some have a link function. So predictions are compared with the coefficients at a few
    points.
    """
    found = getattr(regressor, "coef_", None)
    if found is None:
        return None
    try:
        coefficients = np.asarray(found, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        return None  # sparse, or ragged
    if coefficients.shape != (getattr(regressor, "n_features_in_", None),):
        return None
    normal = np.random.default_rng(0).standard_normal((_PROBES, len(coefficients)))
    probes = np.vstack([np.zeros_like(coefficients), _SCALES * normal])
    predicted = np.ravel(regressor.predict(probes))
    expected = predicted[0] + probes @ coefficients
    room = _TOLERANCE * max(1.0, float(np.abs(expected).max()))
    if len(predicted) != len(probes) or not np.abs(predicted - expected).max() <= room:
        return None
    return partial(_constant, coefficients)


def _constant(coefficients: FloatArray, inputs: FloatArray) -> FloatArray:
    return np.tile(coefficients, (len(inputs), 1))
