"""Kernel ridge regression: sum_j w_j k(x, x_j)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.kernel_ridge import KernelRidge

from surrokit.types import FloatArray
from surrokit_sklearn.gradients.pairwise import NamedKernel, named_kernel
from surrokit_sklearn.gradients.registry import Gradient, gradient_of


@gradient_of(KernelRidge)
def kernel_ridge_gradient(regressor: Any) -> Gradient | None:
    """Return the gradient for kernels rbf, poly, sigmoid and linear."""
    settings = {name: getattr(regressor, name) for name in ("gamma", "coef0", "degree")}
    kernel = named_kernel(regressor.kernel, regressor.n_features_in_, settings)
    if kernel is None:
        return None
    centres = np.asarray(regressor.X_fit_)
    return partial(_slope, kernel, centres, np.ravel(regressor.dual_coef_))


def _slope(
    kernel: NamedKernel, centres: FloatArray, weights: FloatArray, inputs: FloatArray
) -> FloatArray:
    return kernel.slope(inputs, centres, weights)
