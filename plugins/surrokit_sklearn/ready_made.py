"""Regressors that need a name only, for settings that are text, as on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline


def polynomial_ridge(*, degree: int = 3, alpha: float = 1e-6) -> Pipeline:
    """Return ridge regression, with ridge ``alpha``, on all monomials up to a degree."""
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures

    return make_pipeline(PolynomialFeatures(degree, include_bias=False), Ridge(alpha=alpha))
