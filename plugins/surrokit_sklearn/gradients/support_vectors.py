"""Support vector regression: sum_j w_j k(x, s_j) + b over the support vectors."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.svm import SVR, NuSVR

from surrokit.types import FloatArray
from surrokit_sklearn.gradients.pairwise import NamedKernel, named_kernel
from surrokit_sklearn.gradients.registry import Gradient, gradient_of


@gradient_of(SVR, NuSVR)
def support_vector_gradient(regressor: Any) -> Gradient | None:
    """Return the gradient for kernels rbf, poly, sigmoid and linear."""
    # The fitted gamma, which for "scale" depends on the data, has no public name.
    settings = {
        "gamma": regressor._gamma,
        "coef0": regressor.coef0,
        "degree": regressor.degree,
    }
    kernel = named_kernel(regressor.kernel, regressor.n_features_in_, settings)
    if kernel is None or issparse(regressor.support_vectors_):
        return None
    centres = np.asarray(regressor.support_vectors_)
    return partial(_slope, kernel, centres, np.ravel(regressor.dual_coef_))


def _slope(
    kernel: NamedKernel, centres: FloatArray, weights: FloatArray, inputs: FloatArray
) -> FloatArray:
    return kernel.slope(inputs, centres, weights)
