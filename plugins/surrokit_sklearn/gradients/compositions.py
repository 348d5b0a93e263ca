"""Estimators made of estimators: pipelines, searches, averages, transformed targets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import VotingRegressor
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, MinMaxScaler, StandardScaler

from surrokit.types import FloatArray
from surrokit_sklearn.gradients.registry import (
    Gradient,
    Pullback,
    analytic_gradient,
    analytic_pullback,
    gradient_of,
)


@gradient_of(Pipeline)
def pipeline_gradient(pipeline: Any) -> Gradient | None:
    """Return the gradient by the chain rule, if every step has its own."""
    last = analytic_gradient(pipeline.steps[-1][1])
    if last is None:
        return None
    steps = []
    for _, step in pipeline.steps[:-1]:
        if step in (None, "passthrough"):
            continue
        pull = analytic_pullback(step)
        if pull is None:
            return None
        steps.append((step, pull))
    return partial(_chain, steps, last)


def _chain(steps: Sequence[tuple[Any, Pullback]], last: Gradient, inputs: FloatArray) -> FloatArray:
    seen = [inputs]
    for transformer, _ in steps:
        seen.append(np.asarray(transformer.transform(seen[-1]), dtype=np.float64))
    slopes = last(seen[-1])
    for (_, pull), before in zip(reversed(steps), reversed(seen[:-1]), strict=True):
        slopes = pull(before, slopes)
    return slopes


@gradient_of(GridSearchCV, RandomizedSearchCV)
def search_gradient(search: Any) -> Gradient | None:
    """Return the gradient of the best estimator."""
    return analytic_gradient(search.best_estimator_)


@gradient_of(VotingRegressor)
def voting_gradient(voting: Any) -> Gradient | None:
    """Return the average of the gradients, if every regressor has its own."""
    gradients = [analytic_gradient(regressor) for regressor in voting.estimators_]
    known = [gradient for gradient in gradients if gradient is not None]
    if len(known) < len(gradients):
        return None
    shares = np.ones(len(known)) if voting.weights is None else _weights_in_use(voting)
    return partial(_average, known, shares / shares.sum())


def _weights_in_use(voting: Any) -> FloatArray:
    pairs = zip(voting.estimators, voting.weights, strict=True)
    return np.array([weight for (_, each), weight in pairs if each != "drop"], dtype=np.float64)


def _average(gradients: Sequence[Gradient], shares: FloatArray, inputs: FloatArray) -> FloatArray:
    return np.asarray(np.tensordot(shares, [gradient(inputs) for gradient in gradients], axes=1))


@gradient_of(TransformedTargetRegressor)
def transformed_target_gradient(regressor: Any) -> Gradient | None:
    """Return the gradient where the target is only shifted and scaled."""
    inner, transformer = analytic_gradient(regressor.regressor_), regressor.transformer_
    scale = _target_scale(transformer)
    if inner is None or scale is None:
        return None
    return partial(_times, scale, inner)


def _target_scale(transformer: Any) -> float | None:
    if type(transformer) is FunctionTransformer:
        return 1.0 if transformer.inverse_func is None else None
    if type(transformer) is MinMaxScaler:
        return float(1.0 / transformer.scale_[0])
    if type(transformer) in (StandardScaler, MaxAbsScaler):
        return 1.0 if transformer.scale_ is None else float(transformer.scale_[0])
    return None


def _times(scale: float, inner: Gradient, inputs: FloatArray) -> FloatArray:
    return np.asarray(scale * inner(inputs))
