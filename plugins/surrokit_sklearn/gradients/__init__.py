"""Analytic gradients of what fitted scikit-learn regressors predict.

One module for each family of estimators. Importing this package registers all of them; to add one,
decorate a function with :func:`~surrokit_sklearn.gradients.registry.gradient_of`, or
:func:`~surrokit_sklearn.gradients.registry.pullback_of` for a transformer.
"""

from surrokit_sklearn.gradients import (
    compositions,
    gaussian_process,
    kernel_machines,
    multilayer,
    polynomials,
    scalers,
)
from surrokit_sklearn.gradients.registry import (
    analytic_gradient,
    analytic_pullback,
    gradient_of,
    pullback_of,
)

__all__ = [
    "analytic_gradient",
    "analytic_pullback",
    "gradient_of",
    "pullback_of",
    # families
    "compositions",
    "gaussian_process",
    "kernel_machines",
    "multilayer",
    "polynomials",
    "scalers",
]
