"""Regressors that need a name only, for settings that are text, as on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline


def polynomial_ridge(*, degree: int = 3, alpha: float = 1e-6) -> Pipeline:
    """Return ridge regression on all monomials up to a degree.

    Parameters
    ----------
    degree
        The greatest degree.
    alpha
        The ridge.
    """
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures

    return make_pipeline(PolynomialFeatures(degree, include_bias=False), Ridge(alpha=alpha))


def nystroem_ridge(
    *, n_components: int = 300, gamma: float | None = None, alpha: float = 1e-6
) -> Pipeline:
    """Return ridge regression on squared-exponential kernels with some of the points.

    Parameters
    ----------
    n_components
        How many points; at most as many as there are.
    gamma
        The kernel is exp(-gamma |x - c|^2); None for 1 / dim.
    alpha
        The ridge.
    """
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    return make_pipeline(
        Nystroem(kernel="rbf", gamma=gamma, n_components=n_components), Ridge(alpha=alpha)
    )
