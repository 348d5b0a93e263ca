"""Gaussian processes: the posterior mean sum_j a_j k(x, x_j)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor

from surrokit_sklearn.gradients.covariances import is_known, slope
from surrokit_sklearn.gradients.registry import Gradient, gradient_of


@gradient_of(GaussianProcessRegressor)
def gaussian_process_gradient(regressor: Any) -> Gradient | None:
    """Return the gradient of the posterior mean, if that of every kernel in it is known."""
    if not is_known(regressor.kernel_):
        return None
    # The scale that normalize_y divides by has no public name; 1 without.
    weights = np.ravel(regressor.alpha_) * float(np.ravel(regressor._y_train_std)[0])
    centres = np.asarray(regressor.X_train_)
    return partial(slope, regressor.kernel_, centres=centres, weights=weights)
