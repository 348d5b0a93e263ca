"""scikit-learn regressors by what they are: made, seeded, and what they take and return."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from surrokit.errors import ConfigurationError
from surrokit.types import FloatArray

_EXAMPLE = (
    "give an unfitted regressor, such as SVR(C=100.0), or its name, such as 'sklearn.svm.SVR'"
)


def unfitted_regressor(estimator: Any, parameters: Mapping[str, Any] | None = None) -> Any:
    """Return an unfitted copy of a regressor.

    ``estimator`` is one, or the dotted name of its class or of a function that makes one;
    ``parameters`` are keywords for these, or set on the regressor. ConfigurationError is raised if
    it cannot be imported, is no regressor, or has no such parameters.
    """
    given = dict(parameters or {})
    if isinstance(estimator, str):
        estimator = _make(estimator, given)
        given = {}
    if isinstance(estimator, type):
        name = estimator.__name__
        raise ConfigurationError(
            f"estimator must be a regressor, got the class {name}; write {name}()"
        )
    name = type(estimator).__name__
    try:
        known = hasattr(type(estimator), "get_params") and is_regressor(estimator)
    except Exception:  # tags of estimators that do not follow scikit-learn's rules
        known = False
    if not known:
        raise ConfigurationError(f"estimator must be a regressor, got a {name}; {_EXAMPLE}")
    try:
        copy = clone(estimator)
    except (TypeError, RuntimeError) as error:
        raise ConfigurationError(
            f"estimator cannot be copied: {error}; a class of your own must keep what its "
            "constructor is given unchanged"
        ) from error
    try:
        return copy.set_params(**given)
    except ValueError as error:
        raise ConfigurationError(f"parameters cannot be set on {name}: {error}") from error


def _make(name: str, parameters: Mapping[str, Any]) -> Any:
    module, _, attribute = name.rpartition(".")
    try:
        factory = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(
            f"estimator {name!r} cannot be imported: {error}; {_EXAMPLE}"
        ) from error
    try:
        return factory(**parameters)
    except (TypeError, ValueError) as error:
        given = ", ".join(f"{key}={value!r}" for key, value in parameters.items()) or "(none)"
        raise ConfigurationError(
            f"estimator {name!r} could not be made of parameters {given}: {error}"
        ) from error


def seeded(estimator: Any, seed: int) -> Any:
    """Return an unfitted copy in which every random state that is None is an integer."""
    copy, rng = clone(estimator), np.random.default_rng(seed)
    free = sorted(
        name
        for name, value in copy.get_params(deep=True).items()
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    )
    return copy.set_params(**{name: int(rng.integers(2**31 - 1)) for name in free})


def _last_step(regressor: Any) -> tuple[str, Any]:
    """Return the last step of pipelines, and the prefix of keywords for it."""
    prefix = ""
    while isinstance(regressor, Pipeline):
        step, regressor = regressor.steps[-1]
        prefix += f"{step}__"
    return prefix, regressor


def takes_weights(regressor: Any) -> bool:
    """Return whether ``fit`` takes weights, in every regressor that it passes them to."""
    _, last = _last_step(regressor)
    parts = last.get_params(deep=True).values()
    inner = [part for part in parts if hasattr(part, "predict") and is_regressor(part)]
    return has_fit_parameter(last, "sample_weight") and all(map(takes_weights, inner))


def weight_arguments(regressor: Any, weights: FloatArray) -> dict[str, FloatArray]:
    """Return the keyword of ``fit`` with the weights (n,); a pipeline's go to its last step."""
    return {f"{_last_step(regressor)[0]}sample_weight": weights}


def polynomial_ridge(*, degree: int = 3, alpha: float = 1e-6) -> Pipeline:
    """Return ridge regression, with ridge ``alpha``, on all monomials up to a degree.

    It needs a name only, for settings that are text, as on the command line.
    """
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures

    return make_pipeline(PolynomialFeatures(degree, include_bias=False), Ridge(alpha=alpha))
