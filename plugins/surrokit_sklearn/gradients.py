"""Analytic gradients of what fitted scikit-learn regressors predict.

They are those of linear functions, of sums of kernels sum_j w_j k(x, c_j), and of perceptrons, also
behind scalers. There differences of predictions take 2 to 100 times as long. In pipelines with
other transformers, where it is 1.3 to 2.7 times, they are taken. :func:`gradient_of` adds more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from inspect import getattr_static
from typing import Any, TypeAlias, TypeVar

import numpy as np
from scipy.sparse import issparse
from scipy.spatial.distance import cdist
from scipy.special import expit
from sklearn.gaussian_process import GaussianProcessRegressor, kernels
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR, NuSVR

from surrokit.types import FloatArray

Gradient: TypeAlias = Callable[[FloatArray], FloatArray]
"""Derivatives of the prediction, shape (n, n_features), at inputs of shape (n, n_features)."""

Maker = TypeVar("Maker", bound=Callable[[Any], Any])

_GRADIENTS: dict[type, Callable[[Any], Gradient | None]] = {}


def gradient_of(*regressors: type) -> Callable[[Maker], Maker]:
    """Register a function that makes the gradient of fitted regressors of some types.

    It returns a :data:`Gradient`, or None where a regressor's settings have none. It is used for
    subclasses too, unless those predict in a way of their own.

    Examples
    --------
    >>> @gradient_of(MyRegressor)  # doctest: +SKIP
    ... def my_gradient(fitted):
    ...     return lambda inputs: 2.0 * inputs * fitted.slopes_
    """

    def register(make: Maker) -> Maker:
        _GRADIENTS.update(dict.fromkeys(regressors, make))
        return make

    return register


def analytic_gradient(regressor: Any) -> Gradient | None:
    """Return the gradient of what a fitted regressor predicts, or None if it is not known.

    In this order: its own method ``predict_gradient``; what :func:`gradient_of` registered for
    its type; its ``coef_``, if it predicts linearly.
    """
    own: Gradient | None = getattr(regressor, "predict_gradient", None)
    if own is not None:
        return own
    cls, found = type(regressor), None
    # Looked up without descriptors: those of meta-estimators make a new function at each access.
    predict = getattr_static(cls, "predict", None)
    for ancestor in cls.__mro__:
        if ancestor in _GRADIENTS and getattr_static(ancestor, "predict", None) is predict:
            found = _GRADIENTS[ancestor](regressor)
            break
    return _linear_gradient(regressor) if found is None else found


@gradient_of(GridSearchCV, RandomizedSearchCV)
def search_gradient(search: Any) -> Gradient | None:
    """Return the gradient of the best estimator."""
    return analytic_gradient(search.best_estimator_)


@gradient_of(Pipeline)
def pipeline_gradient(pipeline: Any) -> Gradient | None:
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


# --- linear functions ---

_SCALES = np.array([[0.1], [1.0], [3.0], [10.0]])  # of the points at which linearity is tested
_TOLERANCE = 1e-9


def _linear_gradient(regressor: Any) -> Gradient | None:
    """Return the coefficients, if predictions at a few points are linear in them.

    Linear models are too many to list, and some with coefficients have a link function.
    """
    try:
        coefficients = np.asarray(regressor.coef_, dtype=np.float64).ravel()
    except (AttributeError, TypeError, ValueError):
        return None  # there are none, or they are sparse or ragged
    if coefficients.shape != (regressor.n_features_in_,):
        return None
    normal = np.random.default_rng(0).standard_normal((len(_SCALES), len(coefficients)))
    probes = np.vstack([np.zeros_like(coefficients), _SCALES * normal])
    predicted = np.ravel(regressor.predict(probes))
    expected = predicted[0] + probes @ coefficients
    room = _TOLERANCE * max(1.0, float(np.abs(expected).max()))
    if len(predicted) != len(probes) or not np.abs(predicted - expected).max() <= room:
        return None
    return partial(_constant, coefficients)


def _constant(coefficients: FloatArray, inputs: FloatArray) -> FloatArray:
    return np.tile(coefficients, (len(inputs), 1))


# --- sums of kernels ---


@gradient_of(KernelRidge)
def kernel_ridge_gradient(regressor: Any) -> Gradient | None:
    """Return the gradient of sum_j w_j k(x, x_j) for kernels rbf, poly and linear."""
    kernel = _named_kernel(regressor, regressor.gamma)
    if kernel is None:
        return None
    return partial(kernel_slope, kernel, regressor.X_fit_, np.ravel(regressor.dual_coef_))


@gradient_of(SVR, NuSVR)
def support_vector_gradient(regressor: Any) -> Gradient | None:
    """Return the gradient of sum_j w_j k(x, s_j) over the support vectors, for the same."""
    # The fitted gamma, which for "scale" depends on the data, has no public name.
    kernel = _named_kernel(regressor, regressor._gamma)
    if kernel is None or issparse(regressor.support_vectors_):
        return None
    return partial(kernel_slope, kernel, regressor.support_vectors_, np.ravel(regressor.dual_coef_))


@gradient_of(GaussianProcessRegressor)
def gaussian_process_gradient(regressor: Any) -> Gradient | None:
    """Return the gradient of the posterior mean, if that of every kernel in it is known."""
    if not is_known(regressor.kernel_):
        return None
    # The scale that normalize_y divides by has no public name; 1 without.
    weights = np.ravel(regressor.alpha_) * float(np.ravel(regressor._y_train_std)[0])
    return partial(kernel_slope, regressor.kernel_, np.asarray(regressor.X_train_), weights)


def _named_kernel(estimator: Any, gamma: float | None) -> Any | None:
    """Return a kernel by the name and the settings of ``sklearn.metrics.pairwise`` as an object."""
    name, coef0, degree = estimator.kernel, estimator.coef0, estimator.degree
    gamma = 1.0 / estimator.n_features_in_ if gamma is None else float(gamma)
    if not isinstance(name, str) or not gamma > 0.0:
        return None
    if name == "linear":
        return kernels.DotProduct(0.0)
    if name == "rbf":
        return kernels.RBF(1.0 / np.sqrt(2.0 * gamma))
    coef0, degree = 1.0 if coef0 is None else coef0, 3.0 if degree is None else degree
    if name not in ("poly", "polynomial") or coef0 < 0.0:
        return None
    return kernels.DotProduct(np.sqrt(coef0 / gamma)) ** degree * gamma**degree


def is_known(kernel: Any) -> bool:
    """Return whether :func:`kernel_slope` can differentiate a kernel object and its parts."""
    kind = type(kernel)
    if kind in (kernels.Sum, kernels.Product):
        return is_known(kernel.k1) and is_known(kernel.k2)
    if kind is kernels.Exponentiation:
        return is_known(kernel.kernel)
    if kind is kernels.Matern:
        return kernel.nu in (0.5, 1.5, 2.5, np.inf)
    return kind in _SLOPES


def kernel_slope(
    kernel: Any, centres: FloatArray, weights: FloatArray, inputs: FloatArray
) -> FloatArray:
    """Return the derivatives by x of sum_j w_j k(x, c_j), shape (n, dim).

    It is for kernel objects of which :func:`is_known` is true. ``inputs (n, dim)`` are x,
    ``centres (m, dim)`` are c_j, and ``weights`` w_j, shape (m,), or (n, m) within a product.
    """
    return _SLOPES[type(kernel)](kernel, centres, weights, inputs)


def _sum(kernel: Any, c: FloatArray, w: FloatArray, x: FloatArray) -> FloatArray:
    return kernel_slope(kernel.k1, c, w, x) + kernel_slope(kernel.k2, c, w, x)


def _product(kernel: Any, c: FloatArray, w: FloatArray, x: FloatArray) -> FloatArray:
    first = kernel_slope(kernel.k1, c, w * kernel.k2(x, c), x)
    return first + kernel_slope(kernel.k2, c, w * kernel.k1(x, c), x)


def _power(kernel: Any, c: FloatArray, w: FloatArray, x: FloatArray) -> FloatArray:
    exponent, inner = kernel.exponent, kernel.kernel
    return kernel_slope(inner, c, w * exponent * inner(x, c) ** (exponent - 1.0), x)


def _zero(_: Any, _c: FloatArray, _w: FloatArray, x: FloatArray) -> FloatArray:
    return np.zeros(x.shape)


def _dot_product(_: Any, c: FloatArray, w: FloatArray, x: FloatArray) -> FloatArray:
    return np.asarray(np.broadcast_to(w, (len(x), len(c))) @ c)


def _radial(by_square: Callable[[Any, FloatArray], FloatArray]) -> Callable[..., FloatArray]:
    """Return the slope of a kernel from its derivative by r^2 = |(x - c) / l|^2."""

    def slope(kernel: Any, c: FloatArray, w: FloatArray, x: FloatArray) -> FloatArray:
        scale = kernel.length_scale
        pulls = w * by_square(kernel, cdist(x / scale, c / scale, metric="sqeuclidean"))
        difference = pulls @ c - x * pulls.sum(axis=1, keepdims=True)
        return np.asarray(-2.0 * difference / np.square(scale))

    return slope


def _squared_exponential(_: Any, squares: FloatArray) -> FloatArray:
    return np.asarray(-0.5 * np.exp(-0.5 * squares))


def _matern(kernel: Any, squares: FloatArray) -> FloatArray:
    if kernel.nu == np.inf:
        return _squared_exponential(kernel, squares)
    distances = np.sqrt(2.0 * kernel.nu * squares)
    decay = np.exp(-distances)
    if kernel.nu == 0.5:
        # Has a kink at its centre; the slope there is taken as 0.
        where = distances > 0.0
        kinked = np.divide(decay, distances, out=np.zeros_like(decay), where=where)
        return np.asarray(-0.5 * kinked)
    if kernel.nu == 1.5:
        return np.asarray(-1.5 * decay)
    return np.asarray(-5.0 / 6.0 * (1.0 + distances) * decay)


def _rational(kernel: Any, squares: FloatArray) -> FloatArray:
    base = 1.0 + squares / (2.0 * kernel.alpha)
    return np.asarray(-0.5 * base ** (-kernel.alpha - 1.0))


_SLOPES: dict[type, Callable[..., FloatArray]] = {
    kernels.Sum: _sum,
    kernels.Product: _product,
    kernels.Exponentiation: _power,
    kernels.ConstantKernel: _zero,
    kernels.WhiteKernel: _zero,  # independent noise: k(x, c) = 0 between different samples
    kernels.DotProduct: _dot_product,
    kernels.RBF: _radial(_squared_exponential),
    kernels.Matern: _radial(_matern),
    kernels.RationalQuadratic: _radial(_rational),
}


# --- perceptrons ---

_ACTIVATIONS: dict[str, Callable[[FloatArray], tuple[FloatArray, FloatArray]]] = {
    "identity": lambda x: (x, np.ones_like(x)),
    "relu": lambda x: (np.maximum(x, 0.0), (x > 0.0).astype(np.float64)),
    "tanh": lambda x: ((y := np.tanh(x)), 1.0 - y**2),
    "logistic": lambda x: ((y := expit(x)), y * (1.0 - y)),
}
"""Outputs of a layer by its arguments, and their derivatives."""


@gradient_of(MLPRegressor)
def perceptron_gradient(regressor: Any) -> Gradient | None:
    """Return the gradient by backpropagation to the inputs, if the last layer is linear."""
    if regressor.activation not in _ACTIVATIONS or regressor.out_activation_ != "identity":
        return None
    return partial(_backpropagate, regressor.activation, regressor.coefs_, regressor.intercepts_)


def _backpropagate(
    activation: str, weights: Sequence[FloatArray], biases: Sequence[FloatArray], inputs: FloatArray
) -> FloatArray:
    outputs, slopes = inputs, []
    for matrix, bias in zip(weights[:-1], biases[:-1], strict=True):
        outputs, slope = _ACTIVATIONS[activation](outputs @ matrix + bias)
        slopes.append(slope)
    back = np.broadcast_to(weights[-1][:, 0], (len(inputs), len(weights[-1])))
    for matrix, slope in zip(reversed(weights[:-1]), reversed(slopes), strict=True):
        back = (back * slope) @ matrix.T
    return np.array(back, dtype=np.float64)
