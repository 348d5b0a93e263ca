"""The Nystroem map: kernels with a few of the training inputs, times a matrix."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.kernel_approximation import Nystroem

from surrokit.types import FloatArray
from surrokit_sklearn.gradients.pairwise import NamedKernel, named_kernel
from surrokit_sklearn.gradients.registry import Pullback, pullback_of


@pullback_of(Nystroem)
def nystroem_pullback(transformer: Any) -> Pullback | None:
    """Return the pullback for kernels rbf, poly, sigmoid and linear."""
    settings = {name: getattr(transformer, name) for name in ("gamma", "coef0", "degree")}
    kernel = named_kernel(transformer.kernel, transformer.n_features_in_, settings)
    if kernel is None or transformer.kernel_params:
        return None
    centres = np.asarray(transformer.components_)
    return partial(_pulled, kernel, centres, np.asarray(transformer.normalization_))


def _pulled(
    kernel: NamedKernel,
    centres: FloatArray,
    normalization: FloatArray,
    inputs: FloatArray,
    slopes: FloatArray,
) -> FloatArray:
    return kernel.slope(inputs, centres, slopes @ normalization)
