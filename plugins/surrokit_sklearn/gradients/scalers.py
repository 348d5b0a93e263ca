"""Scalers and rotations of the inputs."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)

from surrokit.types import BoolArray, FloatArray
from surrokit_sklearn.gradients.registry import Pullback, pullback_of


@pullback_of(StandardScaler, MaxAbsScaler, RobustScaler)
def divide(transformer: Any) -> Pullback:
    """Return the pullback of a map that divides each input by a scale, or by nothing."""
    scale = getattr(transformer, "scale_", None)
    inverse = np.ones(transformer.n_features_in_) if scale is None else 1.0 / np.asarray(scale)
    return _unless_clipped(transformer, partial(_scale, inverse))


@pullback_of(MinMaxScaler)
def multiply(transformer: Any) -> Pullback:
    """Return the pullback of a map that multiplies each input by a factor."""
    return _unless_clipped(transformer, partial(_scale, np.asarray(transformer.scale_)))


@pullback_of(FunctionTransformer)
def untouched(transformer: Any) -> Pullback | None:
    """Return the pullback of the identity; that of another function is not known."""
    return _same if transformer.func is None else None


@pullback_of(PCA)
def rotate(transformer: Any) -> Pullback:
    """Return the pullback of a projection on principal components, whitened or not."""
    rows = np.asarray(transformer.components_)
    if transformer.whiten:
        scales = np.sqrt(np.asarray(transformer.explained_variance_))
        rows = rows / np.maximum(scales, np.finfo(scales.dtype).eps)[:, None]
    return partial(_rotate, rows)


def _unless_clipped(transformer: Any, pull: Pullback) -> Pullback:
    # Only some scalers, and only in some versions of scikit-learn, can clip what they return.
    if not getattr(transformer, "clip", False):
        return pull
    if isinstance(transformer, MinMaxScaler):
        low, high = transformer.feature_range
    else:
        low, high = -1.0, 1.0
    return partial(_clip, transformer, float(low), float(high), pull)


def _clip(
    transformer: Any,
    low: float,
    high: float,
    pull: Pullback,
    inputs: FloatArray,
    slopes: FloatArray,
) -> FloatArray:
    outputs = np.asarray(transformer.transform(inputs))
    inside: BoolArray = (outputs > low) & (outputs < high)
    return pull(inputs, slopes * inside)


def _scale(factors: FloatArray, _: FloatArray, slopes: FloatArray) -> FloatArray:
    return np.asarray(slopes * factors)


def _same(_: FloatArray, slopes: FloatArray) -> FloatArray:
    return slopes


def _rotate(rows: FloatArray, _: FloatArray, slopes: FloatArray) -> FloatArray:
    return np.asarray(slopes @ rows)
