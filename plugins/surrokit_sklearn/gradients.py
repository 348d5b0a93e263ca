"""Analytic gradients of what fitted scikit-learn regressors predict.

They are those of linear functions and of sums of kernels sum_j w_j k(x, c_j), also behind scalers.
There differences of predictions take 2 to 100 times as long. In pipelines with other transformers,
where it is 1.3 to 2.7 times, they are taken. A regressor of one's own has ``predict_gradient``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from inspect import getattr_static
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import issparse
from scipy.spatial.distance import cdist
from sklearn.gaussian_process import GaussianProcessRegressor, kernels
from sklearn.kernel_ridge import KernelRidge
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR, NuSVR

from surrokit.types import FloatArray

Gradient: TypeAlias = Callable[[FloatArray], FloatArray]
"""Derivatives of the prediction, shape (n, n_features), at inputs of shape (n, n_features)."""


def analytic_gradient(regressor: Any) -> Gradient | None:
    """Return the gradient of what a fitted regressor predicts, or None if it is not known.

    In this order: its own method ``predict_gradient``; what is known of its type, which a subclass
    has too, unless it predicts in a way of its own; its ``coef_``, if it predicts linearly.
    """
    own: Gradient | None = getattr(regressor, "predict_gradient", None)
    if own is not None:
        return own
    # Looked up without descriptors: those of meta-estimators make a new function at each access.
    predict = getattr_static(type(regressor), "predict", None)
    for ancestor in type(regressor).__mro__:
        if ancestor in _GRADIENTS and getattr_static(ancestor, "predict", None) is predict:
            found = _GRADIENTS[ancestor](regressor)
            return _linear(regressor) if found is None else found
    return _linear(regressor)


def _pipeline(pipeline: Any) -> Gradient | None:
    """Return the gradient behind scalers; None behind other transformers."""
    last = analytic_gradient(pipeline.steps[-1][1])
    steps = [step for _, step in pipeline.steps[:-1] if step not in (None, "passthrough")]
    if last is None or any(type(step) is not StandardScaler for step in steps):
        return None
    return partial(_behind, steps, last)


def _behind(scalers: Sequence[Any], last: Gradient, inputs: FloatArray) -> FloatArray:
    factor: Any = 1.0
    for scaler in scalers:
        inputs = np.asarray(scaler.transform(inputs), dtype=np.float64)
        factor = factor if scaler.scale_ is None else factor / scaler.scale_
    return np.asarray(last(inputs) * factor)


def _linear(regressor: Any) -> Gradient | None:
    """Return the coefficients, if predictions at a few points are linear in them.

    Linear models are too many to list, and some with coefficients have a link function.
    """
    try:
        coefficients = np.asarray(regressor.coef_, dtype=np.float64).ravel()
    except (AttributeError, TypeError, ValueError):
        return None  # there are none, or they are sparse or ragged
    if coefficients.shape != (regressor.n_features_in_,):
        return None
    scales = np.array([[0.0], [0.1], [1.0], [3.0], [10.0]])
    probes = scales * np.random.default_rng(0).standard_normal((5, len(coefficients)))
    predicted = np.ravel(regressor.predict(probes))
    expected = predicted[0] + probes @ coefficients
    room = 1e-9 * max(1.0, float(np.abs(expected).max()))
    if len(predicted) != len(probes) or not np.abs(predicted - expected).max() <= room:
        return None
    return partial(_constant, coefficients)


def _constant(coefficients: FloatArray, inputs: FloatArray) -> FloatArray:
    return np.tile(coefficients, (len(inputs), 1))


# --- sums of kernels ---


def _of_kernels(regressor: Any) -> Gradient | None:
    """Return the gradient of kernel ridge or support vector regression."""
    of_vectors = isinstance(regressor, SVR | NuSVR)
    centres = regressor.support_vectors_ if of_vectors else regressor.X_fit_
    # The fitted gamma, which for "scale" depends on the data, has no public name.
    gamma = regressor._gamma if of_vectors else regressor.gamma
    gamma = 1.0 / regressor.n_features_in_ if gamma is None else float(gamma)
    if regressor.kernel == "linear":
        kernel = kernels.DotProduct(0.0)
    elif regressor.kernel == "rbf" and gamma > 0.0:
        kernel = kernels.RBF(1.0 / np.sqrt(2.0 * gamma))
    else:
        return None
    weights = np.ravel(regressor.dual_coef_)
    return None if issparse(centres) else partial(_slope, kernel, centres, weights)


def _process(regressor: Any) -> Gradient | None:
    """Return the gradient of the posterior mean, if that of every kernel in it is known."""
    if not _is_known(regressor.kernel_):
        return None
    # The scale that normalize_y divides by has no public name; 1 without.
    weights = np.ravel(regressor.alpha_) * float(np.ravel(regressor._y_train_std)[0])
    return partial(_slope, regressor.kernel_, np.asarray(regressor.X_train_), weights)


def _is_known(kernel: Any) -> bool:
    if type(kernel) in (kernels.Sum, kernels.Product):
        return _is_known(kernel.k1) and _is_known(kernel.k2)
    if type(kernel) is kernels.Matern:
        return kernel.nu in (0.5, 1.5, 2.5, np.inf)
    known = (kernels.ConstantKernel, kernels.WhiteKernel, kernels.DotProduct, kernels.RBF)
    return type(kernel) in known


def _slope(kernel: Any, c: FloatArray, w: FloatArray, x: FloatArray) -> FloatArray:
    """Return the derivatives by x of sum_j w_j k(x, c_j), shape (n, dim).

    ``x (n, dim)`` are inputs, ``c (m, dim)`` centres, and ``w`` weights, shape (m,), or (n, m)
    within a product.
    """
    kind = type(kernel)
    if kind is kernels.Sum:
        return _slope(kernel.k1, c, w, x) + _slope(kernel.k2, c, w, x)
    if kind is kernels.Product:
        first = _slope(kernel.k1, c, w * kernel.k2(x, c), x)
        return first + _slope(kernel.k2, c, w * kernel.k1(x, c), x)
    if kind is kernels.DotProduct:
        return np.asarray(np.broadcast_to(w, (len(x), len(c))) @ c)
    if kind not in (kernels.RBF, kernels.Matern):  # constant, or noise of each sample by itself
        return np.zeros(x.shape)
    scale = kernel.length_scale
    pulls = w * _by_square(kernel, cdist(x / scale, c / scale, metric="sqeuclidean"))
    difference = pulls @ c - x * pulls.sum(axis=1, keepdims=True)
    return np.asarray(-2.0 * difference / np.square(scale))


def _by_square(kernel: Any, squares: FloatArray) -> FloatArray:
    """Return the derivative of a radial kernel by r^2 = |(x - c) / l|^2."""
    nu = kernel.nu if type(kernel) is kernels.Matern else np.inf
    if nu == np.inf:
        return np.asarray(-0.5 * np.exp(-0.5 * squares))
    distances = np.sqrt(2.0 * nu * squares)
    decay = np.exp(-distances)
    if nu == 0.5:
        # Has a kink at its centre; the slope there is taken as 0.
        kinked = np.divide(decay, distances, out=np.zeros_like(decay), where=distances > 0.0)
        return np.asarray(-0.5 * kinked)
    if nu == 1.5:
        return np.asarray(-1.5 * decay)
    return np.asarray(-5.0 / 6.0 * (1.0 + distances) * decay)


_GRADIENTS: dict[type, Callable[[Any], Gradient | None]] = {
    Pipeline: _pipeline,
    KernelRidge: _of_kernels,
    SVR: _of_kernels,
    NuSVR: _of_kernels,
    GaussianProcessRegressor: _process,
}
