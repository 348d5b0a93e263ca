"""Validation of input as scikit-learn's estimators do it, in every supported version."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from surrokit.errors import ShapeError
from surrokit.types import FloatArray


def check_inputs(estimator: Any, inputs: Any) -> FloatArray:
    """Return inputs of a fitted estimator as finite numbers, shape (n, n_features).

    Raises
    ------
    ValueError
        If they are something else, or have other features than those in the fit.
    """
    found: FloatArray = validate(estimator, X=inputs, reset=False, dtype=np.float64)
    return found


def check_rows(
    estimator: Any, inputs: Any, targets: Any, *, reset: bool, multi_output: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Return inputs (n, n_features) and targets (n,) or (n, n_outputs) as finite numbers.

    Parameters
    ----------
    estimator
        Is told of its features, or asked for them.
    inputs, targets
        X and y.
    reset
        Whether this is the first that the estimator sees.
    multi_output
        Whether targets may have several columns.

    Raises
    ------
    ValueError
        If they are something else.
    """
    X, y = validate(  # noqa: N806
        estimator,
        X=inputs,
        y=targets,
        reset=reset,
        dtype=np.float64,
        y_numeric=True,
        multi_output=multi_output,
        # A partial fit may bring a single row.
        ensure_min_samples=2 if reset else 1,
    )
    return X, np.asarray(y, dtype=np.float64)


def check_gradients(
    gradients: npt.ArrayLike | None, inputs: FloatArray, targets: FloatArray
) -> FloatArray | None:
    """Return gradients as an array with NaN where they are not known.

    Its shape is (n, n_features), or (n, n_outputs, n_features) for targets of several columns.

    Raises
    ------
    ShapeError
        If they have another shape.
    ValueError
        If one is infinite, or none is a number.
    """
    if gradients is None:
        return None
    found = np.asarray(gradients, dtype=np.float64)
    expected = (*targets.shape, inputs.shape[1])
    if found.shape != expected:
        raise ShapeError(
            f"gradients must have the shape of X, {inputs.shape}, got {found.shape}; pass one row "
            "for each sample, of NaN where the gradient is not known"
            if targets.ndim == 1
            else f"gradients must have shape {expected} for targets of shape {targets.shape}, got "
            f"{found.shape}; pass one row for each sample and output, of NaN where it is not known"
        )
    if np.isinf(found).any():
        row = int(np.isinf(found).reshape(len(found), -1).any(axis=1).argmax())
        raise ValueError(
            f"gradients must be finite, or NaN where they are not known, but row {row} is infinite"
        )
    return found


def check_weights(sample_weight: Any, n: int) -> FloatArray | None:
    """Return how often each row counts, shape (n,); None where each counts once.

    Raises
    ------
    ValueError
        If a weight is negative or not finite, there is not one for each row, or all are 0.
    """
    if sample_weight is None:
        return None
    found = np.asarray(sample_weight, dtype=np.float64)
    if found.ndim == 0:
        found = np.full(n, found)
    if found.shape != (n,):
        raise ValueError(
            f"sample_weight.shape == {found.shape}, expected {(n,)}: one weight for each row"
        )
    if not (np.isfinite(found).all() and (found >= 0.0).all()):
        raise ValueError(
            "sample_weight must be finite and not negative, as it says how often each row counts"
        )
    if not found.any():
        raise ValueError("sample_weight is zero for all rows; give at least one a positive weight")
    return None if (found == 1.0).all() else found


def drop_unweighted(
    inputs: FloatArray, targets: Any, weights: FloatArray | None
) -> tuple[FloatArray, Any, FloatArray | None]:
    """Return inputs, targets and weights without the rows that do not count."""
    if weights is None:
        return inputs, targets, None
    kept = weights > 0.0
    return inputs[kept], targets[kept], weights[kept]


def merge_rows(
    inputs: FloatArray, targets: FloatArray, weights: FloatArray | None
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Return distinct rows in an order of their own, and how often each counts.

    A fit to them does not depend on the order of rows, nor on whether a row counts twice or is
    there twice: not even by rounding, which other draws would follow from.
    """
    table = np.column_stack([inputs, targets]) + 0.0  # -0 becomes 0
    _, first, group = np.unique(table, axis=0, return_index=True, return_inverse=True)
    counts = np.bincount(group.ravel(), weights, len(first)).astype(np.float64)
    merged = None if (counts == 1.0).all() else counts
    return inputs[first], targets[first], merged


def validate(estimator: Any, **arguments: Any) -> Any:
    """Return arrays as scikit-learn checks them, and note the features; raises ValueError."""
    try:
        from sklearn.utils.validation import validate_data
    except ImportError:  # scikit-learn 1.5
        return estimator._validate_data(**arguments)
    return validate_data(estimator, **arguments)
