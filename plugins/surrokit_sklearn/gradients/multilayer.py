"""Multilayer perceptrons, by backpropagation to the inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.neural_network import MLPRegressor

from surrokit.types import FloatArray
from surrokit_sklearn.gradients.registry import Gradient, gradient_of


def _identity(arguments: FloatArray) -> tuple[FloatArray, FloatArray]:
    return arguments, np.ones_like(arguments)


def _relu(arguments: FloatArray) -> tuple[FloatArray, FloatArray]:
    return np.maximum(arguments, 0.0), (arguments > 0.0).astype(np.float64)


def _tanh(arguments: FloatArray) -> tuple[FloatArray, FloatArray]:
    outputs = np.tanh(arguments)
    return outputs, 1.0 - outputs**2


def _logistic(arguments: FloatArray) -> tuple[FloatArray, FloatArray]:
    outputs = expit(arguments)
    return outputs, outputs * (1.0 - outputs)


ACTIVATIONS: dict[str, Callable[[FloatArray], tuple[FloatArray, FloatArray]]] = {
    "identity": _identity,
    "relu": _relu,
    "tanh": _tanh,
    "logistic": _logistic,
}
"""What a layer puts out for its arguments, and the derivative of that."""


@gradient_of(MLPRegressor)
def multilayer_gradient(regressor: Any) -> Gradient | None:
    """Return the gradient, for a regressor whose last layer is linear."""
    if regressor.activation not in ACTIVATIONS or regressor.out_activation_ != "identity":
        return None
    return partial(_slope, regressor.activation, regressor.coefs_, regressor.intercepts_)


def _slope(
    activation: str, weights: Sequence[FloatArray], biases: Sequence[FloatArray], inputs: FloatArray
) -> FloatArray:
    outputs, slopes = inputs, []
    for matrix, bias in zip(weights[:-1], biases[:-1], strict=True):
        outputs, slope = ACTIVATIONS[activation](outputs @ matrix + bias)
        slopes.append(slope)
    back = np.broadcast_to(weights[-1][:, 0], (len(inputs), len(weights[-1])))
    for matrix, slope in zip(reversed(weights[:-1]), reversed(slopes), strict=True):
        back = (back * slope) @ matrix.T
    return np.array(back, dtype=np.float64)
