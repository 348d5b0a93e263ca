"""Sums of kernels with training inputs: kernel ridge, support vectors, and the Nystroem map."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVR, NuSVR

from surrokit.types import FloatArray
from surrokit_sklearn.gradients.pairwise import NamedKernel, read_kernel
from surrokit_sklearn.gradients.registry import Gradient, Pullback, gradient_of, pullback_of


@gradient_of(KernelRidge)
def kernel_ridge_gradient(regressor: Any) -> Gradient | None:
    """Return the gradient of sum_j w_j k(x, x_j) for kernels rbf, poly, sigmoid and linear."""
    kernel = _kernel(regressor)
    if kernel is None:
        return None
    centres = np.asarray(regressor.X_fit_)
    return partial(kernel.slope, centres=centres, weights=np.ravel(regressor.dual_coef_))


@gradient_of(SVR, NuSVR)
def support_vector_gradient(regressor: Any) -> Gradient | None:
    """Return the gradient of sum_j w_j k(x, s_j) + b over the support vectors, for the same."""
    # The fitted gamma, which for "scale" depends on the data, has no public name.
    kernel = _kernel(regressor, gamma=regressor._gamma)
    if kernel is None or issparse(regressor.support_vectors_):
        return None
    centres = np.asarray(regressor.support_vectors_)
    return partial(kernel.slope, centres=centres, weights=np.ravel(regressor.dual_coef_))


@pullback_of(Nystroem)
def nystroem_pullback(transformer: Any) -> Pullback | None:
    """Return the pullback of kernels with a few inputs, times a matrix, for the same."""
    kernel = _kernel(transformer)
    if kernel is None or transformer.kernel_params:
        return None
    centres = np.asarray(transformer.components_)
    return partial(_pull, kernel, centres, np.asarray(transformer.normalization_))


def _kernel(estimator: Any, **fitted: float) -> NamedKernel | None:
    settings = {name: getattr(estimator, name) for name in ("gamma", "coef0", "degree")}
    return read_kernel(estimator.kernel, estimator.n_features_in_, settings | fitted)


def _pull(
    kernel: NamedKernel,
    centres: FloatArray,
    normalization: FloatArray,
    inputs: FloatArray,
    slopes: FloatArray,
) -> FloatArray:
    return kernel.slope(inputs, centres, slopes @ normalization)
